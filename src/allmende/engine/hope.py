"""What could be taken back for whom: judged by sums and by what was tried before, so that hopeless searches are not made."""

from __future__ import annotations

from allmende.engine.line import Entry, Line
from allmende.engine.memory import Claim
from allmende.engine.shape import Shape
from allmende.engine.tree import Branch
from allmende.engine.victim import UNBOUNDED, Claimant
from allmende.engine.work import Pass


class Hope:
    """Upper bounds of what others could have to give. `took` counts claims that were served in this
    pass, `freed` are the nodes on which somebody has to go for them."""

    def __init__(self, work: Pass) -> None:
        self.work = work
        self.took = 0
        self.freed = 0
        self._free: int | None = None
        self._served: set[tuple[Branch, Shape, int]] = set()
        self._gifts: dict[Branch, tuple[int, object]] = {}

    def taken(self) -> None:
        """Something was taken back: what others could give has changed."""
        self.took += 1
        self._free = None
        self._served.clear()
        self._gifts.clear()

    def others(self, branch: Branch) -> tuple[int, object]:
        """GPU units that other projects could have to give to this one at most, and whose they are."""
        found = self._gifts.get(branch)
        if found is None and self.work.index.tree.by_model:  # what is taken depends on the model: every claim is tried
            found = self._gifts[branch] = (UNBOUNDED if self._may_claim(branch) else 0, object())
        if found is None:
            claimant = Claimant(self.work.herd, branch, max(branch.priorities, default=0), 1, "")
            found = self.work.hunt.ground.from_others(claimant) if self._may_claim(branch) else (0, ())
            if found[1] or any(step.project.cap is not None for step in branch.path):
                found = (found[0], (found[1], *(step.use for step in branch.path)))
            self._gifts[branch] = found
        return found

    def _hope(self, branch: Branch, line: Line, priority: int) -> bool:
        """Whether taking back could serve a line, judged by sums and by what was tried before."""
        others, _ = self.others(branch)
        if not line.grows and self.known_hopeless((branch, line.shape, priority)):
            return False
        own = self.work.hunt.ground.own_lower(self.work.herd, branch, priority)
        workload = self.work.state.standings[line.entries[0][2]].workload
        need = self.work.demand(line.shape, workload.project).units
        if not own and not others:
            return bool(self.work.hunt.leaving) and branch.use + need <= branch.project.guarantee
        if self._free is None:
            self._free = self.work.hunt.ground.free_units(self.work.index.masks.every)
        return own + others + self._free >= need

    def known_hopeless(self, claim: Claim) -> bool:
        """Whether this claim was searched before, in vain, and nothing has changed for it."""
        hunt = self.work.hunt
        whose = self.others(claim[0])[1]
        return self.work.index.memory.is_hopeless(claim, whose, bool(hunt.leaving), self.freed)

    def _may_claim(self, branch: Branch) -> bool:
        policy, project = self.work.state.policy, branch.project
        if policy.fair_share_eviction or policy.borrowers_evict:
            return True
        if project.guarantee_by_model:
            return any(branch.use_model.get(model, 0) < units for model, units in project.guarantee_by_model.items())
        return branch.use < project.guarantee

    def serves(self, branch: Branch, line: Line, entry: Entry) -> bool:
        """Whether taking back could serve an entry of a line."""
        if (branch, line.shape, -entry[0]) in self._served:
            return True
        if not self.work.state.policy.evictions or not self._hope(branch, line, -entry[0]):
            return False
        self._served.add((branch, line.shape, -entry[0]))
        return True
