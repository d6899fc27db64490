"""Who may be a victim, and at what price.

Naive meaning (tests/reference/victims.py): of all legal sets of victims that make room for the whole request, the
least by GPUs evicted, workloads that lose all their pods, priorities (fewest at the highest level first), work lost,
ages (youngest first), names. Every field is a sum over victims, so the order does not change when equal victims are
added on both sides, and the best sets of parts compose.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from msgspec import Struct

from allmende.engine.state import State
from allmende.engine.tree import Branch
from allmende.model.cluster import Pod
from allmende.model.standing import Phase, Standing
from allmende.model.workload import Workload

_COUNT = 20  # bits for a number of workloads
_LOST = 112  # bits for a sum of GPU units x microseconds
_AGE = 72  # bits for a sum of microseconds


class Victim(Struct, frozen=True):
    """Pods of one workload that go together: one surplus pod, or (`whole`) all of them."""

    name: str
    pods: tuple[Pod, ...]
    whole: bool
    key: int
    units: int
    branch: Branch
    workload: Workload


Price = tuple[int, tuple[str, ...]]
"""(the additive key as one integer, sorted names): compared as it stands."""

FREE: Price = (0, ())
UNBOUNDED = 1 << 80  # more units than any cluster has


def add(one: Price, other: Price) -> Price:
    """The price of two disjoint sets together."""
    if not other[1]:
        return one
    if not one[1]:
        return other
    return (one[0] + other[0], tuple(sorted(one[1] + other[1])))


def price(victims: Iterable[Victim]) -> Price:
    """The price of a set of victims."""
    found = tuple(victims)
    return (sum(v.key for v in found), tuple(sorted(v.name for v in found)))


def surplus(standing: Standing) -> list[Pod]:
    """Pods above the gang's and the roles' minima: the last role's highest ranks first, never a role's rank 0."""
    count = [0] * len(standing.wanted)
    for pod in standing.pods:
        count[pod.role] += 1
    total = len(standing.pods)
    found = []
    for pod in sorted(standing.pods, key=lambda p: (-p.role, -p.rank)):
        least = standing.least[pod.role]
        if total > standing.minimum and count[pod.role] > least and pod.rank > 0:
            found.append(pod)
            total -= 1
            count[pod.role] -= 1
    return found


Gift = tuple[int, int, object]
"""Nodes, GPU units, and a sign that changes when what is run or may be lost there does."""

NOTHING: Gift = (0, 0, 0)


class Herd:
    """The running workloads as possible victims, priced at one moment; made once a pass."""

    def __init__(self, state: State, now: int) -> None:
        self.state = state
        self.now = now
        self.spared: set[str] = set()
        self.cut = 0  # searches that ended because their steps were spent
        self._leaving = {pod_id[0] for pod_id in state.leaving}
        self._gifts: dict[tuple[Branch, int | None], Gift] = {}
        self._together: dict[Branch, int] = {}
        self._found: dict[str, tuple[list[Victim], Victim]] = {}
        levels = sorted({p for b in state.index.tree.branches.values() for p in b.priorities})
        self._shift = {level: _AGE + _LOST + _COUNT * i for i, level in enumerate(levels)}
        self._top = _AGE + _LOST + _COUNT * len(levels)

    def of(self, name: str) -> tuple[list[Victim], Victim]:
        """(surplus pods one by one, the whole workload)."""
        found = self._found.get(name)
        if found is None:
            standing = self.state.standings[name]
            branch = self.state.index.tree.leaf(standing.workload.project)
            whole = self._victim(standing, branch, standing.pods, True)
            extra = surplus(standing) if len(standing.pods) > 1 else []
            found = self._found[name] = ([self._victim(standing, branch, (pod,), False) for pod in extra], whole)
        return found

    def _victim(self, standing: Standing, branch: Branch, pods: tuple[Pod, ...], whole: bool) -> Victim:
        workload = standing.workload
        started = self.now if standing.started is None else standing.started
        safe = started if standing.checkpoint is None else max(started, standing.checkpoint)
        units = 0
        for pod in pods:
            for part in pod.slices:
                units += part.units
        key = (units << (_COUNT + self._top)) + (whole << self._top) + (1 << self._shift[workload.priority])
        key += (units * max(0, self.now - safe) << _AGE) + max(0, self.now - started)
        return Victim(workload.id, pods, whole, key, units, branch, workload)

    def takable(self, branch: Branch, slack: int, below: int | None, own: bool = False) -> tuple[int, int]:
        """(nodes, GPU units) of a project's work that could go: victims of at most `slack` units, of lower priority
        than `below` where that is given; `own` work need not borrow for it. Kept until what it runs changes."""
        if below is not None and min(branch.priorities, default=below) >= below:
            return (0, 0)
        key = (bisect_right(self._sizes(branch), slack), below, own)
        known = branch.takable.get(key)
        if known is not None:
            return known
        nodes: set[str] = set()
        units = 0
        for name in branch.workloads:
            workload = self.state.standings[name].workload
            if not (own or workload.borrow) or (below is not None and workload.priority >= below):
                continue
            extra, whole = self.of(name)
            for victim in (whole,) if whole.units <= slack else extra:
                if victim.units <= slack:
                    units += victim.units
                    nodes.update(pod.node for pod in victim.pods)
        mask = 0
        for node in nodes:
            mask |= 1 << self.state.index.rooms[node].pos
        branch.takable[key] = (mask, units)
        return (mask, units)

    def gift(self, branch: Branch, below: int | None = None) -> Gift:
        """What a subtree could lose to somebody outside it, as the pass began: within it that only falls."""
        key = (branch, below)
        found = self._gifts.get(key)
        if found is None:
            found = self._gifts[key] = self._give(branch, below)
        return found

    def together(self, branch: Branch) -> int:
        """GPU units that the subtrees below a project could give in all."""
        found = self._together.get(branch)
        if found is None:
            found = self._together[branch] = sum(self.gift(child)[1] for child in branch.children)
        return found

    def _give(self, branch: Branch, below: int | None) -> Gift:
        by_model = bool(branch.project.guarantee_by_model)
        surplus = UNBOUNDED if by_model else branch.use - branch.project.guarantee
        if surplus <= 0:
            return NOTHING
        mask, units = self.takable(branch, surplus, below) if branch.workloads else (0, 0)
        signs: list[object] = [branch.name, branch.stamp, branch.use if by_model else surplus]
        for child in branch.children:
            there, given, sign = self.gift(child, below)
            if there:
                mask |= there
                units += given
                signs.append(sign)
        return (mask, min(units, surplus), tuple(signs)) if mask else NOTHING

    def _sizes(self, branch: Branch) -> list[int]:
        """The sizes of all victims of a project, rising: between two of them a slack makes no difference."""
        if not branch.sizes:
            found: set[int] = set()
            for name in branch.workloads:
                extra, whole = self.of(name)
                found.add(whole.units)
                found.update(victim.units for victim in extra)
            branch.sizes = sorted(found)
        return branch.sizes

    def spare(self, name: str) -> None:
        """This workload may not be (or be again) a victim in this pass."""
        self.spared.add(name)

    def running(self, name: str) -> bool:
        """Whether a workload may be looked at as a victim at all."""
        if name in self.spared or name in self._leaving:
            return False  # one disturbance at a time
        standing = self.state.standings.get(name)
        return standing is not None and standing.phase is Phase.RUNNING

    def gpu_units(self, key: int) -> int:
        """GPU units evicted, read off a key."""
        return key >> (_COUNT + self._top)

    def floor(self, units: int) -> int:
        """The least key of any set that evicts so many units."""
        return units << (_COUNT + self._top)
