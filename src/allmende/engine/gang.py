"""Victims for a gang of equal pods.

A min-plus sum of the nodes' offers (only the q cheapest nodes of each count can matter for q pods) is exact for victims
that stand on one node each. Around it a best-first search forces out gangs on several nodes, and leaves out victims
where a sum would cut into a guarantee. It is bounded in counted steps; what it could not prove is said.
"""

from __future__ import annotations

from heapq import heappop, heappush

from allmende.engine.claimant import Claimant
from allmende.engine.curve import Offer, cheapest, groups
from allmende.engine.draft import Draft
from allmende.engine.mask import bits
from allmende.engine.search import Answer, Search, cheapest_devices
from allmende.engine.victim import FREE, Price, Victim, add, price
from allmende.model.request import Ask
from allmende.model.units import GPU
from allmende.model.workload import Workload

MOST = 300  # steps of one search: forced sets of gangs are many, and better ones come early


class Gang:
    """Victims for a gang of equal pods: an exact sum of node offers inside a bounded best-first search."""

    def __init__(
        self, draft: Draft, claimant: Claimant, workload: Workload, ask: Ask, pods: int, mask: int, most: int
    ) -> None:
        self.draft = draft
        self.most = min(most, MOST)
        self.claimant = claimant
        self.workload = workload
        self.ask = ask
        self.pods = pods
        self.mask = mask
        self.steps = 0
        self._first: tuple[dict[int, list[Offer | None]], list[list[int]]] | None = None
        self._offers: dict[tuple[int, int, frozenset[str]], list[Offer | None]] = {}

    def solve(self) -> Answer | None:
        """Best first over (gangs forced out, victims left out)."""
        herd, draft = self.claimant.herd, self.draft
        spanning = self._spanning()
        floor = herd.floor(self._must_free())
        best: Answer | None = None
        self._at_first()
        heap: list[tuple[Price, tuple[int, ...], tuple[str, ...]]] = [((floor, ()), (), ())]
        seen: set[tuple[tuple[int, ...], tuple[str, ...]]] = {((), ())}
        while heap and self.steps < self.most:
            least, forced, without = heappop(heap)
            if best is not None and least >= best.price:
                return self._done(best, best.price, True)
            self.steps += 1
            gangs = tuple(spanning[i] for i in forced)
            mark = draft.mark
            for victim in gangs:
                for pod in victim.pods:
                    draft.evict(pod, victim.workload)
            found = self._sum({victim.name for victim in gangs}, frozenset(without))
            draft.back(mark)
            children: list[tuple[Price, tuple[int, ...], tuple[str, ...]]] = []
            if found is not None:
                offer, nodes = found
                victims = (*gangs, *offer[1])
                worth = add(price(gangs), offer[0])
                if self.claimant.legal(victims):
                    if best is None or worth < best.price:
                        best = Answer(
                            worth, victims, nodes, Search(self.workload.id, herd.gpu_units(worth[0]), 0, 0, False)
                        )
                else:
                    children += [(worth, forced, tuple(sorted({*without, v.name}))) for v in offer[1]]
            if not without:
                for nxt in range(forced[-1] + 1 if forced else 0, len(spanning)):
                    base = price((*gangs, spanning[nxt]))
                    if best is None or base < best.price:
                        children.append((max(base, (floor, ())), (*forced, nxt), ()))
            for child in children:
                if child[1:] not in seen:
                    seen.add(child[1:])
                    heappush(heap, child)
        return self._done(best, heap[0][0] if heap else None, not heap) if best is not None else None

    def _done(self, best: Answer, least: Price | None, exact: bool) -> Answer:
        herd = self.claimant.herd
        bound = best.search.units if exact or least is None else min(best.search.units, herd.gpu_units(least[0]))
        return Answer(
            best.price, best.victims, best.nodes, Search(self.workload.id, best.search.units, bound, self.steps, exact)
        )

    def _spanning(self) -> list[Victim]:
        """Workloads on more than one node, any of them usable, that may go whole; cheapest first."""
        rooms = self.draft.index.masks.rooms
        found: dict[str, Victim] = {}
        for pos in bits(self.mask):
            for _, whole in groups(self.claimant, rooms[pos], local=False):
                if whole is not None and len({pod.node for pod in whole.pods}) > 1:
                    found[whole.name] = whole
        return sorted(found.values(), key=lambda v: (v.key, v.name))

    def _must_free(self) -> int:
        """GPU units that any answer evicts at least."""
        if not self.ask.whole:
            return 0
        rooms = self.draft.index.masks.rooms
        have = spare = 0
        for pos in bits(self.mask):
            room = rooms[pos]
            free = sum(room.left_later(d) == GPU for d in range(len(room.sound)))
            have += free // self.ask.whole
            spare = max(spare, free % self.ask.whole)
        devices = max(0, self.pods - have) * (self.ask.whole - spare)
        return cheapest_devices([rooms[pos] for pos in bits(self.mask)], devices)

    def _node_offers(self, pos: int, forced: set[str], without: frozenset[str]) -> list[Offer | None]:
        room = self.draft.index.masks.rooms[pos]
        touched = without & {pod.workload for pod in room.pods.values()} if without else without
        key = (pos, room.stamp if forced else -1, touched)
        found = self._offers.get(key)
        if found is None:
            most = min(self.pods, len(room.sound) // self.ask.whole) if self.ask.whole else self.pods
            given = groups(self.claimant, room, local=True, without=without | forced)
            found = self._offers[key] = cheapest(self.claimant, self.draft, room, self.ask, most, given)
        return found

    def _sum(self, forced: set[str], without: frozenset[str]) -> tuple[Offer, tuple[tuple[int, int], ...]] | None:
        """Min-plus over nodes: the cheapest way to place all pods with local victims alone. Only nodes of gangs that
        are forced out, or of victims left out, offer anything else than at first."""
        base, ranked = self._at_first()
        changed = self._nodes_of(forced | without)
        offers = {pos: self._node_offers(pos, forced, without) for pos in changed}
        kept = set(changed)
        for order in ranked:
            left = self.pods
            for pos in order:
                if pos not in changed:
                    kept.add(pos)
                    offers[pos] = base[pos]
                    left -= 1
                    if not left:
                        break
        best: list[tuple[Price, tuple[tuple[int, int], ...]] | None] = [(FREE, ())] + [None] * self.pods
        for pos in sorted(kept):
            best = self._add_node(best, pos, offers[pos])
        last = best[self.pods]
        if last is None:
            return None
        victims = tuple(victim for pos, count in last[1] for victim in offers[pos][count][1])  # type: ignore[index]
        return (last[0], victims), last[1]

    def _at_first(self) -> tuple[dict[int, list[Offer | None]], list[list[int]]]:
        """All nodes' offers with nobody forced or left out, and for each count of pods the nodes by price."""
        if self._first is None:
            base = {pos: self._node_offers(pos, set(), frozenset()) for pos in bits(self.mask)}
            ranked = []
            for count in range(1, max((len(found) for found in base.values()), default=1)):
                priced = [(o[count], pos) for pos, o in base.items() if count < len(o)]
                ranked.append([pos for _, pos in sorted((o[0], pos) for o, pos in priced if o is not None)])
            self._first = (base, ranked)
        return self._first

    def _nodes_of(self, names: set[str] | frozenset[str]) -> set[int]:
        rooms = self.draft.index.rooms
        nodes = {pod.node for name in names for pod in self.claimant.herd.of(name)[1].pods}
        return {pos for pos in (rooms[node].pos for node in nodes) if self.mask >> pos & 1}

    def _add_node(
        self, best: list[tuple[Price, tuple[tuple[int, int], ...]] | None], pos: int, offers: list[Offer | None]
    ) -> list[tuple[Price, tuple[tuple[int, int], ...]] | None]:
        made = best[:]
        for count in range(1, len(offers)):
            offer = offers[count]
            if offer is None:
                continue
            key = offer[0][0]
            for before in range(self.pods - count + 1):
                base = best[before]
                there = made[before + count]
                if base is None or (there is not None and base[0][0] + key > there[0][0]):
                    continue
                worth = add(base[0], offer[0])
                if there is None or worth < there[0]:
                    made[before + count] = (worth, (*base[1], (pos, count)))
        return made
