"""The search for victims: the cheapest legal set that lets a whole request start.

One pod: the cheapest offer of any node, from a heap kept for all claims alike. A gang of equal pods: a min-plus sum of
the nodes' offers (only the q cheapest nodes of each count can matter for q pods), inside a best-first search over
multi-node gangs that are forced out and victims left out where a sum would cut into a guarantee. Anything else
(several roles, one domain for all): sets of victims in rising order of price. Every search is bounded in counted
steps and says whether its answer is proved.
"""

from __future__ import annotations

from heapq import heappop, heappush

from msgspec import Struct

from allmende.engine.curve import Offer, cheapest, groups
from allmende.engine.draft import Draft
from allmende.engine.mask import bits
from allmende.engine.place import Site
from allmende.engine.room import HELD, Room, slots
from allmende.engine.shape import Shape
from allmende.engine.tree import Branch
from allmende.engine.victim import FREE, UNBOUNDED, Claimant, Herd, Price, Victim, add, price
from allmende.model.request import Ask
from allmende.model.units import GPU
from allmende.model.workload import Workload

FEW = 14  # candidates whose sets are all looked at where an order among them matters


class Search(Struct, frozen=True):
    """What one search for victims found: GPU units evicted, a lower bound of them, and whether it is proved the least."""

    workload: str
    units: int
    bound: int
    steps: int
    exact: bool


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
            elif stamp != rooms[pos].stamp:
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
        while heap and steps < 200:
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


class Answer(Struct, frozen=True):
    """Victims to take, and how many pods go to which node (position) once they have left; None = place by search."""

    price: Price
    victims: tuple[Victim, ...]
    nodes: tuple[tuple[int, int], ...] | None
    search: Search


class Hunt:
    """All victim searches of one pass, sharing what they learn. `looked_at`: nodes that could change the last answer."""

    def __init__(self, draft: Draft, steps: int) -> None:
        self.draft = draft
        self.steps = steps
        self.improved: list[int] = []
        self._rankings: dict[object, Ranking] = {}
        self._grounds: dict[object, tuple[int, int]] = {}
        self.looked_at = 0

    def find(
        self, claimant: Claimant, workload: Workload, shape: Shape, usable: int, *, capped: bool = False
    ) -> Answer | None:
        """The cheapest victims that let the minimum of `shape` be placed on nodes of `usable`; None = there are none."""
        masks = self.draft.index.masks
        usable &= masks.open
        self.looked_at = masks.every
        ground, units = self._ground(claimant)
        if not ground & usable and not masks.leaving & usable:
            self.looked_at = 0
            return None
        if units < claimant.units and units + self.free_units(usable) < claimant.units:
            return None
        ask = shape.single
        if ask is None or capped or (shape.level and sum(shape.counts) > 1):
            claimant.capped = capped
            return self._by_sets(claimant, workload, shape, usable)
        if claimant.inside > claimant.sure:
            return self._in_two_steps(claimant, workload, shape, usable)
        mask = masks.allowed(shape.roles[0][1], workload.project) & usable
        if sum(shape.counts) == 1:
            self.looked_at = mask & (ground | masks.leaving)
            return self._one_pod(claimant, workload, shape, ask, mask & (ground | masks.leaving))
        if ask.whole:
            mask &= ground | masks.leaving | masks.with_free(ask.whole)
        if not self._enough(claimant, ask, shape.counts[0], mask, ground):
            return None
        return Gang(self, claimant, workload, ask, shape.counts[0], mask).solve()

    def _ground(self, claimant: Claimant) -> tuple[int, int]:
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

    def own_lower(self, herd: Herd, branch: Branch, priority: int) -> int:
        """GPU units that the project's own work of lower priority holds; as good as one where it holds nothing but CPUs."""
        known = branch.takable.get(("own", priority))
        if known is None:
            known = self._takable(Claimant(herd, branch, priority, 0, ""), branch, UNBOUNDED, ("own", priority))
        return known[1] + bool(known[0])

    def _ground_of(self, claimant: Claimant, branch: Branch) -> tuple[int, int]:
        """One project's part of the ground. What each may lose at most is kept until its running work changes."""
        if branch is claimant.branch:
            return self._takable(claimant, branch, UNBOUNDED, ("own", claimant.priority))
        slack = claimant.slack(branch)
        if slack <= 0 or not claimant.may_take_from(branch):
            return (0, 0)
        right = claimant.priority if claimant.by_priority(branch) else None
        mask, units = self._takable(claimant, branch, slack, (slack, right))
        return (mask, min(units, slack))

    def _takable(self, claimant: Claimant, branch: Branch, slack: int, right: tuple[object, object]) -> tuple[int, int]:
        known = branch.takable.get(right)
        if known is not None:
            return known
        index, herd = self.draft.index, claimant.herd
        nodes: set[str] = set()
        units = 0
        for name in branch.workloads:
            if not claimant.may_take(herd.state.standings[name].workload, branch):
                continue
            extra, whole = herd.of(name)
            for victim in (whole,) if whole.units <= slack else extra:
                if victim.units <= slack:
                    units += victim.units
                    nodes.update(pod.node for pod in victim.pods)
        mask = 0
        for node in nodes:
            mask |= 1 << index.rooms[node].pos
        if len(branch.takable) > 8:
            branch.takable.clear()
        branch.takable[right] = (mask, units)
        return (mask, units)

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

    def _enough(self, claimant: Claimant, ask: Ask, pods: int, mask: int, ground: int) -> bool:
        """Whether all pods would fit if everybody went who might have to."""
        draft, rooms = self.draft, self.draft.index.masks.rooms
        mark, found = draft.mark, 0
        for pos in bits(mask):
            if ground >> pos & 1:
                for surplus_here, whole in groups(claimant, rooms[pos], local=False):
                    for victim in (whole,) if whole is not None else surplus_here:
                        for pod in victim.pods:
                            if pod.node == rooms[pos].node.name:
                                draft.evict(pod, victim.workload)
            found += slots(rooms[pos], ask, pods - found, later=True)
            if found >= pods:
                break
        draft.back(mark)
        return found >= pods

    def _one_pod(self, claimant: Claimant, workload: Workload, shape: Shape, ask: Ask, mask: int) -> Answer | None:
        own = claimant.name if claimant.has_taken else ""
        key = (claimant.branch, claimant.priority, claimant.units, claimant.model, shape, mask, own)
        ranking = self._rankings.get(key)
        if ranking is None:
            ranking = self._rankings[key] = Ranking(claimant, self.draft, ask, mask)
            ranking.seen = len(self.improved)
        found = ranking.best(claimant, self.improved)
        if found is None:
            return None
        (worth, victims), pos = found
        units = claimant.herd.gpu_units(worth[0])
        return Answer(worth, victims, ((pos, 1),), Search(workload.id, units, units, 1, True))

    def _in_two_steps(self, claimant: Claimant, workload: Workload, shape: Shape, usable: int) -> Answer | None:
        """Where some must go before others may be asked: few candidates are searched as sets; with many, those who may
        be asked at once come first."""
        reach = claimant.inside
        if len(self._candidates(claimant, self.draft.index.masks.open)) <= FEW:
            return self._by_sets(claimant, workload, shape, usable)
        claimant.narrow(claimant.sure)
        found = self.find(claimant, workload, shape, usable)
        if found is not None:
            search = found.search
            return Answer(
                found.price,
                found.victims,
                found.nodes,
                Search(search.workload, search.units, search.bound, search.steps, False),
            )
        claimant.narrow(reach)
        return self._by_sets(claimant, workload, shape, usable)

    # -- several roles, or one domain for all -----------------------------------------------------------------

    def _by_sets(self, claimant: Claimant, workload: Workload, shape: Shape, usable: int) -> Answer | None:
        flat = self._candidates(
            claimant, self.draft.index.masks.open if claimant.capped or claimant.inside > claimant.sure else usable
        )
        bound = self._gpu_bound(claimant, workload, shape, usable)
        heap: list[tuple[Price, int, tuple[int, ...]]] = [(FREE, -1, ())]
        steps = 0
        while heap and steps < self.steps:
            worth, last, chosen = heappop(heap)
            victims = tuple(flat[i] for i in chosen)
            if worth[0] >= bound:
                steps += 1
                if self._fits(workload, shape, usable, victims) and claimant.legal(victims):
                    units = claimant.herd.gpu_units(worth[0])
                    return Answer(worth, victims, None, Search(workload.id, units, units, steps, True))
            self._push(heap, flat, victims, last, chosen)
        return self._dive(claimant, workload, shape, usable, flat, steps) if heap else None

    @staticmethod
    def _push(
        heap: list[tuple[Price, int, tuple[int, ...]]],
        flat: list[Victim],
        victims: tuple[Victim, ...],
        last: int,
        chosen: tuple[int, ...],
    ) -> None:
        whole = {v.name for v in victims if v.whole}
        taken = {v.name for v in victims}
        for nxt in range(last + 1, len(flat)):
            victim = flat[nxt]
            if victim.name not in whole and not (victim.whole and victim.name in taken):
                heappush(heap, (price((*victims, victim)), nxt, (*chosen, nxt)))

    def _candidates(self, claimant: Claimant, usable: int) -> list[Victim]:
        rooms = self.draft.index.masks.rooms
        found: dict[tuple[object, ...], Victim] = {}
        for pos in bits(usable):
            for surplus_here, whole in groups(claimant, rooms[pos], local=False):
                for victim in (*surplus_here, *((whole,) if whole is not None else ())):
                    found[victim.name, victim.whole, victim.pods[0].id] = victim
        return sorted(found.values(), key=lambda v: (v.key, v.name, v.pods[0].id))

    def _gpu_bound(self, claimant: Claimant, workload: Workload, shape: Shape, usable: int) -> int:
        """The least key that can do: whole GPUs asked for beyond all that will be free must be evicted."""
        rooms = self.draft.index.masks.rooms
        need = sum(ask.whole * n for (ask, _), n in zip(shape.roles, shape.counts, strict=True))
        free = 0
        for pos in bits(usable):
            room = rooms[pos]
            free += sum(room.left_later(d) == GPU for d in range(len(room.sound)))
        return claimant.herd.floor(cheapest_devices([rooms[pos] for pos in bits(usable)], max(0, need - free)))

    def _fits(self, workload: Workload, shape: Shape, usable: int, victims: tuple[Victim, ...]) -> bool:
        draft = self.draft
        mark = draft.mark
        for victim in victims:
            for pod in victim.pods:
                draft.evict(pod, victim.workload)
        fits = (
            Site(draft, workload, shape, 0, mode=HELD, later=True).place(draft.index.masks.every & ~usable) is not None
        )
        draft.back(mark)
        return fits

    def _dive(
        self, claimant: Claimant, workload: Workload, shape: Shape, usable: int, flat: list[Victim], steps: int
    ) -> Answer | None:
        """Greedy: take victims in order of price until it fits, then give back every one that is not needed."""
        chosen: list[Victim] = []
        for victim in flat:
            if not any(v.name == victim.name for v in chosen) and claimant.legal((*chosen, victim)):
                chosen.append(victim)
                if self._fits(workload, shape, usable, tuple(chosen)):
                    break
        else:
            return None
        for victim in reversed(chosen[:-1]):
            fewer = tuple(v for v in chosen if v is not victim)
            if self._fits(workload, shape, usable, fewer):
                chosen.remove(victim)
        worth = price(chosen)
        herd = claimant.herd
        bound = herd.gpu_units(self._gpu_bound(claimant, workload, shape, usable))
        return Answer(worth, tuple(chosen), None, Search(workload.id, herd.gpu_units(worth[0]), bound, steps, False))


class Gang:
    """Victims for a gang of equal pods: an exact sum of node offers inside a bounded best-first search."""

    def __init__(self, hunt: Hunt, claimant: Claimant, workload: Workload, ask: Ask, pods: int, mask: int) -> None:
        self.hunt = hunt
        self.claimant = claimant
        self.workload = workload
        self.ask = ask
        self.pods = pods
        self.mask = mask
        self.steps = 0
        self._offers: dict[tuple[int, int, frozenset[str]], list[Offer | None]] = {}

    def solve(self) -> Answer | None:
        """Best first over (gangs forced out, victims left out)."""
        herd, draft = self.claimant.herd, self.hunt.draft
        spanning = self._spanning()
        floor = herd.floor(self._must_free())
        best: Answer | None = None
        heap: list[tuple[Price, tuple[int, ...], tuple[str, ...]]] = [((floor, ()), (), ())]
        seen: set[tuple[tuple[int, ...], tuple[str, ...]]] = {((), ())}
        while heap and self.steps < self.hunt.steps:
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
        rooms = self.hunt.draft.index.masks.rooms
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
        rooms = self.hunt.draft.index.masks.rooms
        have = spare = 0
        for pos in bits(self.mask):
            room = rooms[pos]
            free = sum(room.left_later(d) == GPU for d in range(len(room.sound)))
            have += free // self.ask.whole
            spare = max(spare, free % self.ask.whole)
        devices = max(0, self.pods - have) * (self.ask.whole - spare)
        return cheapest_devices([rooms[pos] for pos in bits(self.mask)], devices)

    def _node_offers(self, pos: int, forced: set[str], without: frozenset[str]) -> list[Offer | None]:
        room = self.hunt.draft.index.masks.rooms[pos]
        touched = without & {pod.workload for pod in room.pods.values()} if without else without
        key = (pos, room.stamp if forced else -1, touched)
        found = self._offers.get(key)
        if found is None:
            most = min(self.pods, len(room.sound) // self.ask.whole) if self.ask.whole else self.pods
            given = groups(self.claimant, room, local=True, without=without | forced)
            found = self._offers[key] = cheapest(self.claimant, self.hunt.draft, room, self.ask, most, given)
        return found

    def _sum(self, forced: set[str], without: frozenset[str]) -> tuple[Offer, tuple[tuple[int, int], ...]] | None:
        """Min-plus over nodes: the cheapest way to place all pods with local victims alone."""
        offers: dict[int, list[Offer | None]] = {}
        touched = {pod.node for name in forced for pod in self.claimant.herd.of(name)[1].pods}
        rooms = self.hunt.draft.index.masks.rooms
        for pos in bits(self.mask):
            offers[pos] = self._node_offers(pos, forced if rooms[pos].node.name in touched else set(), without)
        kept: set[int] = set()
        for count in range(1, max((len(o) for o in offers.values()), default=1)):
            ranked = sorted((o[count][0], pos) for pos, o in offers.items() if count < len(o) and o[count] is not None)  # type: ignore[index]
            kept.update(pos for _, pos in ranked[: self.pods])
        best: list[tuple[Price, tuple[tuple[int, int], ...]] | None] = [(FREE, ())] + [None] * self.pods
        for pos in sorted(kept):
            best = self._add_node(best, pos, offers[pos])
        last = best[self.pods]
        if last is None:
            return None
        victims = tuple(victim for pos, count in last[1] for victim in offers[pos][count][1])  # type: ignore[index]
        return (last[0], victims), last[1]

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


def cheapest_devices(rooms: list[Room], count: int) -> int:
    """GPU units in the way on the `count` devices with the least on them: nobody frees so many devices for less."""
    if count <= 0:
        return 0
    used: list[int] = []
    for room in rooms:
        run, _, held = room.units
        used += [run[d] for d in range(len(room.sound)) if room.sound[d] and run[d] and not held[d]]
    used.sort()
    return sum(used[:count])
