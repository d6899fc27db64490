"""Victims for one pod: the nodes ranked by the cheapest that would have to go there."""

from __future__ import annotations

from heapq import heappop, heappush

from allmende.engine.claimant import Claimant
from allmende.engine.curve import Offer, cheapest, groups
from allmende.engine.draft import Draft
from allmende.engine.mask import bits
from allmende.engine.room import Room, slots
from allmende.engine.victim import FREE, Price, Victim
from allmende.model.request import Ask

LEFT_OUT = 200  # sets of victims left out that are tried on one node before the search there gives up


class Ranking:
    """The nodes by their cheapest offer for one pod, for all claims of the same right; kept true lazily.

    Within a pass offers only get dearer, except on nodes where an evicted gang leaves more room than was asked for:
    those are ranked anew when the ranking is used next.
    """

    def __init__(self, claimant: Claimant, draft: Draft, ask: Ask, mask: int) -> None:
        self.claimant = claimant
        self.draft = draft
        self.ask = ask
        self.mask = mask
        self.seen = 0
        self._heap: list[tuple[Price, int, int, tuple[Victim, ...]]] = []
        self._turn: dict[int, int] = {}  # which entry of a node counts
        for pos in bits(mask):
            self._rank(pos)

    def _rank(self, pos: int, offer: Offer | None = None) -> None:
        room = self.draft.index.masks.rooms[pos]
        offer = self._offer(room) if offer is None else offer
        self._turn[pos] = room.stamp
        if offer is not None:
            heappush(self._heap, (offer[0], pos, room.stamp, offer[1]))

    def _offer(self, room: Room) -> Offer | None:
        if slots(room, self.ask, 1, later=True):
            return (FREE, ())
        given = groups(self.claimant, room, local=False)
        return cheapest(self.claimant, self.draft, room, self.ask, 1, given)[1] if given else None

    def best(self, claimant: Claimant, improved: list[int]) -> tuple[Offer, int] | None:
        """The cheapest legal offer now, and its node."""
        self.claimant = claimant
        rooms = self.draft.index.masks.rooms
        for pos in dict.fromkeys(improved[self.seen :]):
            if self.mask >> pos & 1:
                self._rank(pos)
        self.seen = len(improved)
        heap = self._heap
        while heap:
            worth, pos, stamp, victims = heap[0]
            if stamp != self._turn[pos]:
                heappop(heap)  # ranked anew since
            elif stamp != rooms[pos].stamp or not all(claimant.herd.running(victim.name) for victim in victims):
                heappop(heap)
                self._rank(pos)
            elif claimant.legal(victims):
                heappop(heap)
                self._turn[pos] = -1
                return ((worth, victims), pos)
            else:
                heappop(heap)
                offer = self._legal_offer(claimant, rooms[pos])
                if offer is not None:
                    self._rank(pos, offer)
        return None

    def _legal_offer(self, claimant: Claimant, room: Room) -> Offer | None:
        """The cheapest set whose sum is legal: victims that break a guarantee are left out by branching."""
        heap: list[tuple[Price, tuple[str, ...]]] = [(FREE, ())]
        tried: set[tuple[str, ...]] = set()
        steps = 0
        while heap:
            if steps >= LEFT_OUT:
                claimant.herd.cut += 1
                return None
            _, without = heappop(heap)
            steps += 1
            given = groups(claimant, room, local=False, without=frozenset(without))
            offer = cheapest(claimant, self.draft, room, self.ask, 1, given)[1] if given else None
            if offer is None:
                continue
            if claimant.legal(offer[1]):
                if not heap or offer[0] <= heap[0][0]:
                    return offer
                heappush(heap, (offer[0], without))
                continue
            for victim in offer[1]:
                fewer = tuple(sorted({*without, victim.name}))
                if fewer not in tried:
                    tried.add(fewer)
                    heappush(heap, (offer[0], fewer))
        return None
