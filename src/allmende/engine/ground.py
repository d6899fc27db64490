"""Where victims could be, and how much there is to take: sums that refuse a search before it is made.

Naive meaning: over all projects that may give to the claimant, the victims no larger than what is above the guarantees
on their path. Here every subtree says once a pass what it could give to outsiders (never less than the naive sum), and
a claimant adds up the subtrees beside its own path.
"""

from __future__ import annotations

from collections.abc import Iterator

from allmende.engine.claimant import Claimant
from allmende.engine.draft import Draft
from allmende.engine.mask import bits
from allmende.engine.tree import Branch
from allmende.engine.victim import UNBOUNDED, Gift
from allmende.model.units import GPU

MANY = 64  # victims beyond which they are not counted any more


class Ground:
    """Upper bounds of what can be taken, by claimant and by project; they only fall within a pass."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._grounds: dict[object, tuple[int, int]] = {}

    def of(self, claimant: Claimant) -> tuple[int, int]:
        """The nodes of everybody who might have to go, and what they hold."""
        key = (claimant.branch, claimant.priority, claimant.inside, claimant.model, bool(claimant.units))
        found = self._grounds.get(key)
        if found is None:
            mask, units = claimant.herd.takable(claimant.branch, UNBOUNDED, claimant.priority, own=True)
            others, more, _ = self.from_others(claimant)
            found = self._grounds[key] = (mask | others, units + more)
        return found

    def from_others(self, claimant: Claimant) -> Gift:
        """What projects other than the claimant's could lose to it."""
        mask = units = 0
        signs: list[object] = []
        for branch, whole in self._beside(claimant):
            there, given, sign = self._own(claimant, branch) if not whole else self._gift(claimant, branch)
            if there:
                mask |= there
                units += given
                signs.append(sign)
        return mask, units, tuple(signs)

    def _beside(self, claimant: Claimant) -> Iterator[tuple[Branch, bool]]:
        """Subtrees below and beside the claimant's path as far as it may take from them, and projects on the path."""
        if not claimant.units:
            return
        by_rule = claimant.policy.fair_share_eviction or claimant.policy.borrowers_evict
        for child in claimant.branch.children:  # below itself it takes whatever is above a guarantee
            yield child, True
        path = claimant.branch.path
        for step in path if by_rule else path[: claimant.inside]:
            above = step.parent
            if above is None:
                return
            for child in above.children:
                if child is not step:
                    yield child, True
            if above.workloads:
                yield above, False

    def _own(self, claimant: Claimant, branch: Branch) -> Gift:
        mask, units = claimant.herd.takable(branch, UNBOUNDED, self._below(claimant, branch))
        return mask, units, (branch.name, branch.stamp)

    def _below(self, claimant: Claimant, branch: Branch) -> int | None:
        return claimant.priority if claimant.by_priority(branch) else None

    def _gift(self, claimant: Claimant, branch: Branch) -> Gift:
        """What a subtree could lose to somebody outside it."""
        return claimant.herd.gift(branch, self._below(claimant, branch))

    def victims(self, claimant: Claimant) -> int:
        """How many victims there are to choose from (a workload and each of its surplus pods counted), up to MANY."""
        herd = claimant.herd
        found = sum(1 + len(herd.of(name)[0]) for name in claimant.branch.workloads)
        for branch, whole in self._beside(claimant):
            waiting = [branch] if not whole or self._gift(claimant, branch)[0] else []
            while waiting and found <= MANY:
                one = waiting.pop()
                found += sum(1 + len(herd.of(name)[0]) for name in one.workloads)
                waiting += one.children if whole else []
        return found

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
