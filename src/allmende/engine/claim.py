"""Claims: room that is taken back for somebody, and kept until those who leave it have left."""

from __future__ import annotations

from allmende.engine.admit import Demand, over_cap
from allmende.engine.claimant import Claimant
from allmende.engine.hope import Hope
from allmende.engine.line import Line
from allmende.engine.place import Site
from allmende.engine.room import HELD
from allmende.engine.search import Answer
from allmende.engine.shape import Shape
from allmende.engine.tree import Branch
from allmende.engine.victim import Victim
from allmende.engine.work import Pass
from allmende.model.cluster import Pod
from allmende.model.decision import Cause, Evict, Hold
from allmende.model.standing import Phase, Standing
from allmende.model.workload import Workload


class Claims:
    """The victim searches of one pass and what comes of them. `_unclaimable`: claims that found no answer in it."""

    def __init__(self, work: Pass, hope: Hope) -> None:
        self.work = work
        self.hope = hope
        self._unclaimable: set[tuple[Branch, Shape, int]] = set()
        self._freed: dict[str, int] = {}

    def claim(self, branch: Branch, line: Line, standing: Standing, need: Demand, model: str) -> bool:
        """Take back room for the minimum of a request, and for as many of its other pods as may; False = there is
        none."""
        workload, shape = standing.workload, line.shape
        memo = (branch, shape, workload.priority)
        if not self.hope.sums(branch, line, workload.priority):
            return False
        if self.hope.closed or (not line.grows and (memo in self._unclaimable or self.hope.known_hopeless(memo))):
            return False
        claimant = Claimant(self.work.herd, branch, workload.priority, need.units, model, workload.id)
        answer = self._hunt(claimant, branch, line, standing, need) if claimant.anybody else None
        if answer is None:
            if not line.grows and not claimant.has_taken:
                self._remember(claimant, memo, standing)
            return False
        if not answer.victims and not claimant.sure:
            return False  # those who leave already make room; a borrower has no right to have it kept
        self._take_victims(workload, answer, claimant.inside > 0)
        pods = self._held_places(shape, standing, answer)
        pods += self.more(branch, standing, shape, pods, model)
        self.settle(pods)
        self.work.made.append(Hold(self.work.now, workload.id, tuple(pods)))
        self.work.busy.add(workload.id)
        return True

    def more(self, branch: Branch, standing: Standing, shape: Shape, pods: list[Pod], model: str) -> list[Pod]:
        """Places for the pods above the minimum, kept at once: left to later passes, whoever had to go would come back
        into the room between, only to go again."""
        if shape.elastic or shape.spread or not self.work.state.policy.evictions or self.hope.closed:
            return []
        running = standing.pods if standing.phase is Phase.RUNNING else ()
        made: list[Pod] = []
        for role, wanted in enumerate(standing.wanted):
            missing = wanted - sum(pod.role == role for pod in (*running, *pods))
            single = self._single(shape, role)
            while missing > 0 and self._claim_one(branch, standing, single, (*running, *pods, *made), made, model):
                missing -= 1
        return made

    def _single(self, shape: Shape, role: int) -> Shape:
        """The shape of one more pod of a role."""
        roles = tuple((ask, where, int(r == role), 0) for r, (ask, where) in enumerate(shape.roles))
        return self.work.index.shape((roles, 1, False, shape.level, shape.prefer, ""))

    def _claim_one(
        self, branch: Branch, standing: Standing, shape: Shape, have: tuple[Pod, ...], made: list[Pod], model: str
    ) -> bool:
        workload = standing.workload
        need = self.work.demand(shape, workload.project)
        if over_cap(branch, need, model) is not None:
            return False
        claimant = Claimant(self.work.herd, branch, workload.priority, need.units, model, workload.id)
        if not claimant.anybody:
            return False
        usable = self.work.index.masks.every & ~(self.work.ban(standing) | self.work.not_model(model))
        if shape.level and have:
            usable &= self.work.index.masks.within(shape.level, self.work.index.rooms[have[0].node].pos)
        answer = self.work.hunt.find(claimant, workload, shape, usable)
        if answer is None or (not answer.victims and not claimant.sure) or (not workload.borrow and not claimant.sure):
            return False
        self._take_victims(workload, answer, claimant.inside > 0)
        made += self._held_places(shape, standing, answer, have)
        return True

    def _remember(self, claimant: Claimant, memo: tuple[Branch, Shape, int], standing: Standing) -> None:
        """A claim without an answer stays without one until its own running work, whoever could give to it, or the room
        on the nodes in question changes."""
        policy = self.work.state.policy
        by_rule = policy.fair_share_eviction or policy.borrowers_evict
        if by_rule or claimant.model or self.work.reservations:
            self._unclaimable.add(memo)
        elif not self.work.ban(standing):
            whose = self.hope.others(claimant.branch)[1]
            self.work.index.memory.hopeless(memo, self.work.hunt.looked_at, whose)

    def _hunt(self, claimant: Claimant, branch: Branch, line: Line, standing: Standing, need: Demand) -> Answer | None:
        workload = standing.workload
        ban = self.work.ban(standing) | self.work.not_model(claimant.model)
        usable = self.work.index.masks.every & ~ban
        if line.grows and line.shape.level:
            usable &= self.work.index.masks.within(line.shape.level, self.work.index.rooms[standing.pods[0].node].pos)
        capped = over_cap(branch, need, claimant.model) is not None
        answer = self.work.hunt.find(claimant, workload, line.shape, usable, capped=capped)
        if answer is not None and not workload.borrow:
            freed = sum(victim.units for victim in answer.victims if victim.branch is branch)
            if not claimant.reach(freed):
                return None
        return answer

    def _take_victims(self, workload: Workload, answer: Answer, inside: bool) -> None:
        victims = answer.victims
        self.work.searches.append(answer.search)
        taken: dict[str, list[Victim]] = {}
        for victim in victims:
            taken.setdefault(victim.name, []).append(victim)
        for name in sorted(taken):
            group = taken[name]
            pods = [pod for victim in group for pod in victim.pods]
            for pod in pods:
                self.work.draft.evict(pod, group[0].workload)
                self.work.hunt.improved.append(self.work.index.rooms[pod.node].pos)
                self._freed[pod.node] = self._freed.get(pod.node, 0) + pod.units
            cause = self._cause(workload, group[0].workload, inside)
            self.work.made.append(Evict(self.work.now, name, tuple(pod.id for pod in pods), cause, workload.id))
            self.work.herd.spare(name)
            self.work.busy.add(name)
            self.work.give_up_hold(name)

    def settle(self, pods: list[Pod]) -> None:
        """Whether all the room that was taken is held: GPU for GPU, node by node."""
        kept: dict[str, int] = {}
        for pod in pods:
            kept[pod.node] = kept.get(pod.node, 0) + pod.units
        if any(units == 0 or units > kept.get(node, 0) for node, units in self._freed.items()):
            self.hope.spill()
        self._freed = {}

    def _cause(self, claimant: Workload, victim: Workload, inside: bool) -> Cause:
        if claimant.project == victim.project:
            return Cause.PRIORITY
        return Cause.RECLAIM if inside else Cause.FAIR_SHARE

    def _held_places(
        self, shape: Shape, standing: Standing, answer: Answer, have: tuple[Pod, ...] | None = None
    ) -> list[Pod]:
        workload = standing.workload
        if have is None:
            have = standing.pods if standing.phase is Phase.RUNNING else ()
        attempt = standing.attempt + 1
        site = Site(self.work.draft, workload, shape, attempt, have, HELD, later=True)
        if answer.nodes is None:
            pods = site.place(self.work.ban(standing), lambda: False)
            if pods is None:
                raise AssertionError(f"victims for {workload.id} make no room")
            return pods
        pods = []
        role = next(r for r, n in enumerate(shape.counts) if n)
        for pos, count in answer.nodes:
            room = self.work.index.masks.rooms[pos]
            if site.settle(role, shape.roles[role][0], room, count, pods) < count:
                raise AssertionError(f"victims for {workload.id} make no room on {room.node.name}")
        return pods
