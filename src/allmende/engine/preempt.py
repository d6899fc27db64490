"""The search for victims: the cheapest legal set that lets a whole request start.

One pod: the cheapest offer of any node (ranking). A gang of equal pods: a sum of node offers (gang), in each domain in
turn where one domain must hold it. Anything else: sets of victims in rising order of price (sets). Every search is
bounded in counted steps, never by a clock, and says whether its answer is proved.
"""

from __future__ import annotations

from allmende.engine.claimant import Claimant
from allmende.engine.curve import groups
from allmende.engine.draft import Draft
from allmende.engine.gang import Gang
from allmende.engine.ground import Ground
from allmende.engine.mask import bits
from allmende.engine.ranking import Ranking
from allmende.engine.room import RUN, slots
from allmende.engine.search import Answer, Search
from allmende.engine.sets import FEW, Sets, candidates
from allmende.engine.shape import Shape
from allmende.engine.victim import Victim
from allmende.model.request import Ask
from allmende.model.workload import Workload

PASSES = 10  # a pass may spend so many times the steps of one search; after that only greedy answers are given


class Hunt:
    """All victim searches of one pass, sharing what they learn. `looked_at`: nodes that could change the last answer.

    `leaving`: nodes that somebody was leaving before the first claim. Room freed for a claim is its own.
    `given_up`: searches that ended without an answer because their steps were spent.
    """

    def __init__(self, draft: Draft, steps: int) -> None:
        self.draft = draft
        self.ground = Ground(draft)
        self.improved: list[int] = []
        self.given_up: list[Search] = []
        self.looked_at = 0
        self.leaving = draft.index.masks.leaving
        self._steps = steps
        self._budget = steps * PASSES
        self._rankings: dict[object, Ranking] = {}

    def find(
        self, claimant: Claimant, workload: Workload, shape: Shape, usable: int, *, capped: bool = False
    ) -> Answer | None:
        """The cheapest victims that let the minimum of `shape` be placed on nodes of `usable`; None = nobody can go."""
        masks = self.draft.index.masks
        usable &= masks.open
        self.looked_at = masks.every
        ground, units = self.ground.of(claimant)
        if not ground & usable and not self.leaving & usable:
            self.looked_at = 0
            return None
        if units < claimant.units and units + self.ground.free_units(usable) < claimant.units:
            return None
        cut = claimant.herd.cut
        claimant.capped = capped
        found = self._search(claimant, workload, shape, usable)
        if found is None and claimant.herd.cut > cut:
            self.given_up.append(Search(workload.id, 0, 0, self._steps, False))
        return found

    def _search(self, claimant: Claimant, workload: Workload, shape: Shape, usable: int) -> Answer | None:
        ask = shape.single
        if ask is None or claimant.capped:
            where = self.draft.index.masks.open if claimant.capped else usable
            return self._by_sets(claimant, workload, shape, usable, candidates(self.draft, claimant, where))
        if claimant.inside > claimant.sure:
            return self._in_two_steps(claimant, workload, shape, usable)
        ground, _ = self.ground.of(claimant)
        mask = self.draft.index.masks.allowed(shape.roles[0][1], workload.project) & usable
        if sum(shape.counts) == 1:
            mask &= ground | self.leaving
            self.looked_at = mask
            return self._one_pod(claimant, workload, shape, ask, mask)
        if not shape.level:
            return self._gang(claimant, workload, shape, ask, mask)
        best: Answer | None = None
        for domain in self.draft.index.masks.domains(shape.level).values():  # the first by path among equals
            found = self._gang(claimant, workload, shape, ask, mask & domain) if mask & domain else None
            if found is not None and (best is None or found.price < best.price):
                best = found
        return best

    def _gang(self, claimant: Claimant, workload: Workload, shape: Shape, ask: Ask, mask: int) -> Answer | None:
        ground, _ = self.ground.of(claimant)
        if ask.whole:
            mask &= ground | self.leaving | self.draft.index.masks.with_free(ask.whole)
        if not self._enough(claimant, ask, shape.counts[0], mask, ground):
            return None
        return self._spend(Gang(self.draft, claimant, workload, ask, shape.counts[0], mask, self._allowance()).solve())

    def _by_sets(
        self, claimant: Claimant, workload: Workload, shape: Shape, usable: int, flat: list[Victim]
    ) -> Answer | None:
        return self._spend(Sets(self.draft, claimant, workload, shape, usable, flat, self._allowance()).solve())

    def _allowance(self) -> int:
        return max(1, min(self._steps, self._budget))

    def _spend(self, answer: Answer | None) -> Answer | None:
        self._budget -= self._steps if answer is None else answer.search.steps
        return answer

    def _enough(self, claimant: Claimant, ask: Ask, pods: int, mask: int, ground: int) -> bool:
        """Whether all pods would fit if everybody went who might have to."""
        index, found = self.draft.index, 0
        for pos in bits(mask):
            room = index.masks.rooms[pos]
            going = [
                (pod, victim.workload.roles[pod.role].ask)
                for surplus_here, whole in (groups(claimant, room, local=False) if ground >> pos & 1 else ())
                for victim in ((whole,) if whole is not None else surplus_here)
                for pod in victim.pods
                if pod.node == room.node.name
            ]
            # Off the node alone: what their projects use stays, and with it what others may give.
            for pod, its in going:
                index.put(room, RUN, pod, its, -1)
            found += slots(room, ask, pods - found, later=True)
            for pod, its in going:
                index.put(room, RUN, pod, its, 1)
            if found >= pods:
                return True
        return False

    def _one_pod(self, claimant: Claimant, workload: Workload, shape: Shape, ask: Ask, mask: int) -> Answer | None:
        own = claimant.name if claimant.has_taken else ""
        key = (claimant.branch, claimant.priority, claimant.units, claimant.model, shape, mask, own)
        ranking = self._rankings.get(key)
        if ranking is None:
            ranking = self._rankings[key] = Ranking(claimant, self.draft, ask, mask)
            ranking.seen = len(self.improved)
        cut = claimant.herd.cut
        found = ranking.best(claimant, self.improved)
        if found is None:
            return None
        (worth, victims), pos = found
        units = claimant.herd.gpu_units(worth[0])
        return Answer(worth, victims, ((pos, 1),), Search(workload.id, units, units, 1, claimant.herd.cut == cut))

    def _in_two_steps(self, claimant: Claimant, workload: Workload, shape: Shape, usable: int) -> Answer | None:
        """Where some must go before others may be asked: few candidates are searched as sets; of many only those who
        may be asked at once."""
        masks, ask, pods = self.draft.index.masks, shape.roles[0][0], shape.counts[0]
        ground, _ = self.ground.of(claimant)
        mask = masks.allowed(shape.roles[0][1], workload.project) & usable
        if pods == 1:
            mask &= ground | self.leaving
            self.looked_at = mask
        elif ask.whole:
            mask &= ground | self.leaving | masks.with_free(ask.whole)
        few = self.ground.victims(claimant) <= FEW
        if (few or pods > 1) and not self._enough(claimant, ask, pods, mask, ground):
            return None
        if few:
            flat = candidates(self.draft, claimant, ground & masks.open)
            return self._by_sets(claimant, workload, shape, usable, flat)
        claimant.narrow(claimant.sure)
        found = self._search(claimant, workload, shape, usable) if claimant.anybody else None
        claimant.herd.cut += 1
        if found is None:
            return None
        search = found.search
        unproved = Search(search.workload, search.units, search.bound, search.steps, False)
        return Answer(found.price, found.victims, found.nodes, unproved)
