"""Whose work a request may take, how far, and which sets of victims are legal for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from allmende.engine.tree import Branch, common_ancestor
from allmende.engine.victim import UNBOUNDED, Herd, Victim
from allmende.model.workload import Workload


class Claimant:
    """One request for room: whose work it may take, and how far.

    `units` it needs on `model` ("" = whichever); `priority` inside its project. `capped`: a cap is in its way too.
    `sure` levels are inside the guarantee as things stand, `inside` ones could be once others have gone.
    `evict_borrowers` and `even_shares` are the two optional rules of the policy.
    """

    __slots__ = (
        "_may",
        "_slack",
        "branch",
        "capped",
        "herd",
        "inside",
        "model",
        "name",
        "policy",
        "priority",
        "sure",
        "units",
    )

    def __init__(self, herd: Herd, branch: Branch, priority: int, units: int, model: str, name: str = "") -> None:
        self.herd = herd
        self.name = name
        self.branch = branch
        self.priority = priority
        self.units = units
        self.model = model
        self.policy = herd.state.policy
        self.capped = False
        self.sure = self.reach()
        self.inside = self._furthest()
        self._may: dict[Branch, bool] = {}
        self._slack: dict[Branch, tuple[Branch, ...]] = {}

    def _own_lower(self) -> int:
        """Units that lower-priority work of the own project holds: evicting it brings the project down."""
        branch = self.branch
        if not any(level < self.priority for level in branch.priorities):
            return 0
        standings = self.herd.state.standings
        return sum(
            pod.units
            for name in branch.workloads
            if (standing := standings[name]).workload.priority < self.priority
            for pod in standing.pods
        )

    def reach(self, freed: int = 0) -> int:
        """Levels of the path, from the project upwards, at which the request stays inside the guarantee."""
        steps = 0
        for branch in self.branch.path:
            use, guarantee = branch.against(self.model)
            if use - freed + self.units > guarantee:
                break
            steps += 1
        return steps

    def narrow(self, levels: int) -> None:
        """Count on so many levels from here on."""
        self.inside = levels
        self._may.clear()

    def _furthest(self) -> int:
        """Levels at which it could be inside once others have gone: its own lower priorities, and what may be taken
        from the siblings below each level."""
        freed = self._own_lower() + self.herd.together(self.branch)
        steps = 0
        for branch in self.branch.path:
            if steps:
                freed += self.herd.together(branch) - self.herd.gift(self.branch.path[steps - 1])[1]
            use, guarantee = branch.against(self.model)
            if use - freed + self.units > guarantee:
                break
            steps += 1
        return steps

    @property
    def anybody(self) -> bool:
        """Whether there can be a victim at all."""
        lower = any(level < self.priority for level in self.branch.priorities)
        return (
            lower
            or self.inside > 0
            or bool(self.branch.children)
            or self.policy.fair_share_eviction
            or self.policy.borrowers_evict
        )

    def may_take(self, workload: Workload, branch: Branch) -> bool:
        """Whether work of this project (of this priority) can be a victim, as far as it can be told alone."""
        if branch is self.branch:
            return workload.priority < self.priority
        if not workload.borrow or not self.may_take_from(branch):
            return False
        return workload.priority < self.priority if self.by_priority(branch) else True

    @property
    def has_taken(self) -> bool:
        """Whether somebody that runs has given way to it before: nobody does so twice for the same claimant."""
        return self.name in self.herd.state.index.gave_way

    def took(self, name: str) -> bool:
        """Whether this workload has given way to the claimant before."""
        return self.has_taken and self.herd.state.standings[name].gave_way_to == self.name

    def may_take_from(self, branch: Branch) -> bool:
        """Whether another project's work can be a victim at all; nobody who asks for no GPU takes from others."""
        if not self.units:
            return False
        found = self._may.get(branch)
        if found is None:
            mine, _ = common_ancestor(self.branch, branch)
            by_rule = self.policy.borrowers_evict or self.policy.fair_share_eviction
            found = self._may[branch] = mine <= self.inside or by_rule
        return found

    def by_priority(self, branch: Branch) -> bool:
        """Whether only lower-priority work of another project can be: outside the guarantee, by `borrowers_evict`
        alone."""
        if not self.policy.borrowers_evict or self.policy.fair_share_eviction:
            return False
        mine, _ = common_ancestor(self.branch, branch)
        return mine > self.inside

    def slack(self, branch: Branch) -> int:
        """GPU units that may go from a project at most: the least surplus on its path below the common ancestor.

        A victim larger than this is in no legal set, since whatever goes with it only lowers the surplus further.
        """
        found = self._slack.get(branch)
        if found is None:
            _, theirs = common_ancestor(self.branch, branch)
            found = self._slack[branch] = branch.path[:theirs]
        least = UNBOUNDED
        for step in found:
            if not step.project.guarantee_by_model:  # by model it is judged for the whole set
                least = min(least, step.use - step.project.guarantee)
        return least

    def legal(self, victims: Iterable[Victim]) -> bool:
        """Whether these may all go for the claimant: no guarantee on a victim's path is cut into, and where another
        project gives, the claimant stays inside its own."""
        freed: dict[tuple[Branch, str], int] = {}
        others: dict[Branch, list[Victim]] = {}
        rooms = self.herd.state.index.rooms
        for victim in victims:
            if victim.branch is not self.branch:
                others.setdefault(victim.branch, []).append(victim)
            for pod in victim.pods:
                model = rooms[pod.node].node.model
                for branch in victim.branch.path:
                    units = pod.units
                    freed[branch, ""] = freed.get((branch, ""), 0) + units
                    freed[branch, model or "-"] = freed.get((branch, model or "-"), 0) + units
        if self.capped and not self._under_caps(freed):
            return False
        if self.has_taken and any(self.took(victim.name) for group in others.values() for victim in group):
            return False
        return all(self._gives(branch, group, freed) for branch, group in others.items())

    def _under_caps(self, freed: Mapping[tuple[Branch, str], int]) -> bool:
        """Whether the request passes no cap once these have gone."""
        for step in self.branch.path:
            cap, by_model = step.project.cap, step.project.cap_by_model.get(self.model)
            if cap is not None and step.use - freed.get((step, ""), 0) + self.units > cap:
                return False
            used = step.use_model.get(self.model, 0) - freed.get((step, self.model or "-"), 0)
            if by_model is not None and used + self.units > by_model:
                return False
        return True

    def _gives(self, branch: Branch, group: list[Victim], freed: Mapping[tuple[Branch, str], int]) -> bool:
        mine, theirs = common_ancestor(self.branch, branch)
        rooms = self.herd.state.index.rooms
        models = (
            {rooms[pod.node].node.model for victim in group for pod in victim.pods}
            if self.herd.state.index.tree.by_model
            else {""}
        )
        for step in branch.path[:theirs]:
            for model in models:
                use, guarantee = step.against(model)
                if use <= guarantee or use - self._freed(step, freed, model) < guarantee:
                    return False
        inside = all(
            use - self._freed(step, freed, self.model) + self.units <= guarantee
            for step in self.branch.path[:mine]
            for use, guarantee in (step.against(self.model),)
        )
        if inside:
            return True
        if self.policy.borrowers_evict and all(v.workload.priority < self.priority for v in group):
            return True
        return self.policy.fair_share_eviction and self._fairer(
            self.branch.path[mine - 1], branch.path[theirs - 1], freed
        )

    def _freed(self, step: Branch, freed: Mapping[tuple[Branch, str], int], model: str) -> int:
        return freed.get((step, (model or "-") if step.project.guarantee_by_model else ""), 0)

    def _fairer(self, mine: Branch, theirs: Branch, freed: Mapping[tuple[Branch, str], int]) -> bool:
        """Afterwards the claimant's side has at most the victims' side, per weight."""
        if mine.scale is None or theirs.scale is None:
            return theirs.scale is None
        after_mine = mine.use - freed.get((mine, ""), 0) + self.units
        after_theirs = theirs.use - freed.get((theirs, ""), 0)
        return after_mine * mine.scale <= after_theirs * theirs.scale
