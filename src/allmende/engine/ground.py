"""Where victims could be, and how much there is to take: sums that refuse a search before it is made."""

from __future__ import annotations

from allmende.engine.draft import Draft
from allmende.engine.mask import bits
from allmende.engine.tree import Branch
from allmende.engine.victim import UNBOUNDED, Claimant
from allmende.model.units import GPU

MANY = 64  # victims beyond which they are not counted any more


class Ground:
    """Upper bounds of what can be taken, by claimant and by project; they only fall within a pass."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._grounds: dict[object, tuple[int, int]] = {}

    def of(self, claimant: Claimant) -> tuple[int, int]:
        """The nodes of everybody who might have to go, and what they hold; it only shrinks within a pass."""
        key = (claimant.branch, claimant.priority, claimant.inside, claimant.model)
        found = self._grounds.get(key)
        if found is None:
            index = self.draft.index
            mask = units = 0
            for branch in index.tree.branches.values():
                if branch.workloads:
                    there, given = self._ground_of(claimant, branch)
                    mask |= there
                    units += given
            found = self._grounds[key] = (mask, units)
        return found

    def victims(self, claimant: Claimant) -> int:
        """How many victims there are to choose from (a workload and each of its surplus pods counted)."""
        herd, found = claimant.herd, 0
        for branch in self.draft.index.tree.branches.values():
            if branch.workloads and self._ground_of(claimant, branch)[0]:
                found += sum(1 + len(herd.of(name)[0]) for name in branch.workloads)
                if found > MANY:
                    break
        return found

    def from_others(self, claimant: Claimant) -> tuple[int, tuple[object, ...]]:
        """GPU units that projects other than the claimant's could lose (one more for each, so that CPUs alone count
        too), and a sign of who they are that changes when what they run or may lose does."""
        found = 0
        sign: list[object] = []
        for branch in self.draft.index.tree.branches.values():
            if branch.workloads and branch is not claimant.branch:
                mask, units = self._ground_of(claimant, branch)
                if mask:
                    found += units + 1
                    sign.append((branch.name, branch.stamp, claimant.slack(branch)))
        return found, tuple(sign)

    def _ground_of(self, claimant: Claimant, branch: Branch) -> tuple[int, int]:
        """One project's part of the ground."""
        if branch is claimant.branch:
            return claimant.herd.takable(branch, UNBOUNDED, claimant.priority, own=True)
        slack = claimant.slack(branch)
        if slack <= 0 or not claimant.may_take_from(branch):
            return (0, 0)
        below = claimant.priority if claimant.by_priority(branch) else None
        mask, units = claimant.herd.takable(branch, slack, below)
        return (mask, min(units, slack))

    def free_units(self, usable: int) -> int:
        """GPU units that are free, or will be when the leaving have left."""
        masks = self.draft.index.masks
        found = 0
        for free, mask in enumerate(masks.by_free):
            if free:
                found += free * (mask & usable & ~masks.leaving).bit_count()
        found *= GPU
        for pos in bits((masks.leaving | masks.partial) & usable):
            room = masks.rooms[pos]
            found += sum(room.left_later(device) for device in range(len(room.sound)))
        return found
