"""Victims by sets: for several roles, for a cap in the way, and where some must go before others may be asked.

Sets are looked at in rising order of price, so the first that works is the best. That is bounded in counted sets;
beyond it a greedy dive takes victims in order of price until the request fits, and gives back whoever is not needed.
"""

from __future__ import annotations

from heapq import heappop, heappush

from allmende.engine.claimant import Claimant
from allmende.engine.curve import groups
from allmende.engine.draft import Draft
from allmende.engine.mask import bits
from allmende.engine.place import Site
from allmende.engine.room import HELD
from allmende.engine.search import Answer, Search, cheapest_devices
from allmende.engine.shape import Shape
from allmende.engine.victim import FREE, Price, Victim, price
from allmende.model.units import GPU
from allmende.model.workload import Workload

FEW = 14  # candidates whose sets are all looked at
CHEAPEST = 64  # candidates that the greedy dive takes in, cheapest first, where there are more
GIVEN_BACK = 64  # victims of a dive that are tried without


class Sets:
    """One search by sets among `flat`, cheapest first, for a request on the nodes `usable`."""

    def __init__(
        self,
        draft: Draft,
        claimant: Claimant,
        workload: Workload,
        shape: Shape,
        usable: int,
        flat: list[Victim],
        most: int,
    ) -> None:
        self.draft = draft
        self.claimant = claimant
        self.workload = workload
        self.shape = shape
        self.usable = usable
        self.flat = flat[:CHEAPEST]
        self.wholes = {victim.name for victim in self.flat if victim.whole}
        self.most = most if len(flat) <= FEW else 0  # so many sets cannot be looked at: the dive alone
        self.bound = self._least()

    def solve(self) -> Answer | None:
        """The cheapest set, or the dive's where it could not be proved; None where there is none."""
        if not self._fits(tuple(victim for victim in self.flat if victim.whole or not self._goes_whole(victim))):
            return None
        heap: list[tuple[Price, int, tuple[int, ...]]] = [(FREE, -1, ())]
        steps = 0
        while heap and steps < self.most:
            worth, last, chosen = heappop(heap)
            steps += 1
            victims = tuple(self.flat[i] for i in chosen)
            if worth[0] >= self.bound and self.claimant.legal(victims) and self._fits(victims):
                units = self.claimant.herd.gpu_units(worth[0])
                return Answer(worth, victims, None, Search(self.workload.id, units, units, steps, True))
            self._push(heap, victims, last, chosen)
        if not heap:
            return None
        self.claimant.herd.cut += 1
        return self._dive(steps)

    def _goes_whole(self, surplus: Victim) -> bool:
        return surplus.name in self.wholes

    def _push(
        self,
        heap: list[tuple[Price, int, tuple[int, ...]]],
        victims: tuple[Victim, ...],
        last: int,
        chosen: tuple[int, ...],
    ) -> None:
        whole = {v.name for v in victims if v.whole}
        taken = {v.name for v in victims}
        for nxt in range(last + 1, len(self.flat)):
            victim = self.flat[nxt]
            if victim.name not in whole and not (victim.whole and victim.name in taken):
                heappush(heap, (price((*victims, victim)), nxt, (*chosen, nxt)))

    def _least(self) -> int:
        """The least key that can do: whole GPUs asked for beyond all that will be free must be evicted."""
        rooms = self.draft.index.masks.rooms
        need = sum(ask.whole * n for (ask, _), n in zip(self.shape.roles, self.shape.counts, strict=True))
        there = [rooms[pos] for pos in bits(self.usable)]
        free = sum(room.left_later(d) == GPU for room in there for d in range(len(room.sound)))
        return self.claimant.herd.floor(cheapest_devices(there, max(0, need - free)))

    def _fits(self, victims: tuple[Victim, ...]) -> bool:
        """Whether the request can be placed once these have gone."""
        mark = self.draft.mark
        self._evict(victims)
        fits = self._placed()
        self.draft.back(mark)
        return fits

    def _evict(self, victims: tuple[Victim, ...]) -> None:
        for victim in victims:
            for pod in victim.pods:
                self.draft.evict(pod, victim.workload)

    def _placed(self) -> bool:
        """Whether it can be placed as the draft stands; nothing is taken."""
        mark = self.draft.mark
        site = Site(self.draft, self.workload, self.shape, 0, mode=HELD, later=True)
        placed = site.place(self.draft.index.masks.every & ~self.usable, lambda: False) is not None
        self.draft.back(mark)
        return placed

    def _dive(self, steps: int) -> Answer | None:
        """Greedy: all that may go, then by halving the fewest in order of price, then without each that is not
        needed."""
        chosen: list[Victim] = []
        names: set[str] = set()
        for victim in self.flat:
            if victim.name not in names and self.claimant.legal((*chosen, victim)):
                chosen.append(victim)
                names.add(victim.name)
        if not chosen or not self._fits(tuple(chosen)):
            return None
        low, high = 1, len(chosen)
        while low < high:
            middle = (low + high) // 2
            if self._fits(tuple(chosen[:middle])):
                high = middle
            else:
                low = middle + 1
        chosen = chosen[:low]
        for victim in chosen[-2 : -2 - GIVEN_BACK : -1]:
            fewer = tuple(v for v in chosen if v is not victim)
            if self._fits(fewer) and self.claimant.legal(fewer):
                chosen = list(fewer)
        worth, herd = price(chosen), self.claimant.herd
        found = Search(self.workload.id, herd.gpu_units(worth[0]), herd.gpu_units(self.bound), steps, False)
        return Answer(worth, tuple(chosen), None, found)


def candidates(draft: Draft, claimant: Claimant, nodes: int) -> list[Victim]:
    """Everybody with a pod on these nodes who might have to go, cheapest first."""
    rooms = draft.index.masks.rooms
    found: dict[tuple[object, ...], Victim] = {}
    for pos in bits(nodes):
        for surplus_here, whole in groups(claimant, rooms[pos], local=False):
            for victim in (*surplus_here, *((whole,) if whole is not None else ())):
                found[victim.name, victim.whole, victim.pods[0].id] = victim
    return sorted(found.values(), key=lambda v: (v.key, v.name, v.pods[0].id))
