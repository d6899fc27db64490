"""What could be taken back for whom: judged by sums and by what was tried before, so that hopeless searches are not
made."""

from __future__ import annotations

from allmende.engine.claimant import Claimant
from allmende.engine.line import Entry, Line
from allmende.engine.memory import Claim
from allmende.engine.tree import Branch
from allmende.engine.victim import UNBOUNDED
from allmende.engine.work import Pass


class Hope:
    """Upper bounds of what others could have to give; claims only lower them.

    `closed`: a claim left more room than it takes (a large gang had to go). What that makes possible is for the next
    pass, which follows at once: so no claim depends on others of its pass, and what earlier passes remember changes
    no decision.
    """

    def __init__(self, work: Pass) -> None:
        self.work = work
        self.closed = False
        self._free: int | None = None
        self._lowest: dict[Branch, int] = {}
        self._sums: dict[tuple[Branch, int, int], bool] = {}
        self._gifts: dict[Branch, tuple[bool, object]] = {}

    def spill(self) -> None:
        """A claim left more room than it takes: until that is settled nothing more is taken back."""
        self.closed = True

    def others(self, branch: Branch) -> tuple[bool, object]:
        """Whether other projects could have to give to this one, and a sign of who and how much."""
        found = self._gifts.get(branch)
        if found is None and self.work.index.tree.by_model:  # what is taken depends on the model: every claim is tried
            found = self._gifts[branch] = (self._may_claim(branch), object())
        if found is None:
            claimant = Claimant(self.work.herd, branch, max(branch.priorities, default=0), 1, "")
            mask, _, sign = self.work.hunt.ground.from_others(claimant) if self._may_claim(branch) else (0, 0, ())
            if mask or any(step.project.cap is not None for step in branch.path):
                sign = (sign, *(step.use for step in branch.path))
            found = self._gifts[branch] = (bool(mask), sign)
        return found

    def at_a_glance(self, branch: Branch, priority: int) -> bool:
        """Whether `anybody` is worth asking."""
        if not self.work.state.policy.evictions:
            return False
        lower = branch.priorities and priority > min(branch.priorities)
        return bool(lower) or bool(self.work.hunt.leaving) or self._may_claim(branch)

    def anybody(self, branch: Branch, priority: int) -> bool:
        """Whether there is anything to take, or to wait for, at all."""
        lowest = self._lowest.get(branch)
        if lowest is None:
            everything = self.others(branch)[0] or self.work.hunt.leaving
            lowest = -UNBOUNDED if everything else min(branch.priorities, default=UNBOUNDED)
            self._lowest[branch] = lowest
        return priority > lowest

    def sums(self, branch: Branch, line: Line, priority: int) -> bool:
        """Whether what may be taken and what is free add up to what a line needs. Claims only lower these sums."""
        if self.closed or not self.anybody(branch, priority):
            return False
        work = self.work
        need = work.demand(line.shape, branch.name).units
        key = (branch, priority, need)
        found = self._sums.get(key)
        if found is None:
            if work.index.tree.by_model:
                others, _ = self.others(branch)
                found = others or bool(work.herd.takable(branch, UNBOUNDED, priority, own=True)[0])
            else:
                found = self._could(Claimant(work.herd, branch, priority, need, ""))
            self._sums[key] = found
        return found

    def _could(self, claimant: Claimant) -> bool:
        """Whether what may be taken for such a claimant, and what is free, add up to what it needs."""
        work = self.work
        mask, units = work.hunt.ground.of(claimant)
        if not mask:
            return claimant.sure > 0 and bool(work.hunt.leaving)
        if units >= claimant.units:
            return True
        if self._free is None:
            self._free = work.hunt.ground.free_units(work.index.masks.every)
        return units + self._free >= claimant.units

    def known_hopeless(self, claim: Claim) -> bool:
        """Whether this claim was searched before, in vain, and nothing has changed for it."""
        hunt = self.work.hunt
        whose = self.others(claim[0])[1]
        return self.work.index.memory.is_hopeless(claim, whose, bool(hunt.leaving))

    def _may_claim(self, branch: Branch) -> bool:
        policy, project = self.work.state.policy, branch.project
        if policy.fair_share_eviction or policy.borrowers_evict or branch.children:
            return True
        if project.guarantee_by_model:
            return any(branch.use_model.get(model, 0) < units for model, units in project.guarantee_by_model.items())
        return branch.use < project.guarantee

    def serves(self, branch: Branch, line: Line, entry: Entry) -> bool:
        """Whether taking back could serve an entry of a line."""
        if not self.work.state.policy.evictions or not self.sums(branch, line, -entry[0]):
            return False
        return bool(line.grows) or not self.known_hopeless((branch, line.shape, -entry[0]))
