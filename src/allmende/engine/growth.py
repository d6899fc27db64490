"""Step 6 of a pass: elastic workloads take what nobody's minimum wants, a pod at a time, by share."""

from __future__ import annotations

from allmende.engine.admit import on_hold, over_daily
from allmende.engine.line import Entry
from allmende.engine.place import Site
from allmende.engine.shape import Shape
from allmende.engine.tree import Branch
from allmende.engine.work import Began, Pass
from allmende.model.cluster import Pod
from allmende.model.standing import Phase, Standing


class Wish:
    """One elastic workload that wants more pods: what it has (`have`), and what it gets in this pass (`pods`)."""

    def __init__(
        self, branch: Branch, entry: Entry, standing: Standing, shape: Shape, have: tuple[Pod, ...], attempt: int
    ) -> None:
        self.branch = branch
        self.entry = entry
        self.standing = standing
        self.shape = shape
        self.have = have
        self.attempt = attempt
        self.pods: list[Pod] = []


def grow_elastic(work: Pass) -> None:
    """Give one pod at a time to whoever is due by share, until none fits."""
    wishes = _wishes(work)
    while wishes:
        due = min(range(len(wishes)), key=lambda i: (wishes[i].branch.key(), wishes[i].entry))
        if not _one_more(work, wishes[due]):
            wish = wishes.pop(due)
            if wish.pods:
                work.made.append(Began(wish.standing.workload, wish.shape, wish.pods, True))


def _wishes(work: Pass) -> list[Wish]:
    index = work.index
    found = []
    for began in work.starts:
        standing = work.state.standings[began.name]
        if began.workload.elastic and standing.phase is Phase.QUEUED:
            branch = index.tree.leaf(began.workload.project)
            found.append(
                Wish(branch, work.order(began.name), standing, began.shape, tuple(began.pods), standing.attempt + 2)
            )
    for name in sorted(index.growing):
        standing = work.state.standings[name]
        if not standing.workload.elastic or name in work.busy or not standing.holds_together(standing.pods):
            continue
        branch, shape, _, entry, _ = index.place_in_line(standing)
        if work.is_live(shape.size) and not on_hold(branch) and over_daily(work.state, branch, work.now) is None:
            found.append(Wish(branch, entry, standing, shape, standing.pods, standing.attempt + 1))
    return found


def _one_more(work: Pass, wish: Wish) -> bool:
    """Add one pod of the first role that wants one."""
    workload = wish.standing.workload
    ban = work.ban(wish.standing)
    for role, wanted in enumerate(wish.standing.wanted):
        if sum(pod.role == role for pod in (*wish.have, *wish.pods)) >= wanted:
            continue
        mark, before = work.draft.mark, len(wish.pods)
        site = Site(work.draft, workload, wish.shape, wish.attempt, wish.have)
        if site.one_more(role, ban, wish.pods):
            model = work.index.rooms[wish.pods[-1].node].node.model
            if work.more(wish.branch, workload, model):
                return True
        work.draft.back(mark)
        del wish.pods[before:]
    return False
