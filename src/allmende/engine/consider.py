"""The pass itself: each waiting request is considered once, as far as it is worth it."""

from __future__ import annotations

from enum import Enum

from allmende.engine import admit
from allmende.engine.account import mean_life, midnight, settled
from allmende.engine.backfill import Reservation, reserve_for
from allmende.engine.draft import Draft
from allmende.engine.line import Entry, Line, Queue
from allmende.engine.mask import bits
from allmende.engine.place import Site
from allmende.engine.preempt import Answer, Hunt, Search
from allmende.engine.room import HELD, RUN
from allmende.engine.shape import Shape, Size
from allmende.engine.state import State
from allmende.engine.tree import Branch
from allmende.engine.turn import Turn, Turns
from allmende.engine.upkeep import upkeep
from allmende.engine.victim import UNBOUNDED, Claimant, Herd, Victim
from allmende.model.cluster import Pod
from allmende.model.decision import Cause, Close, Decision, Evict, Grow, Hold, Release, Start, Stop
from allmende.model.standing import Phase, Standing
from allmende.model.workload import Workload


class Verdict(Enum):
    """What became of one consideration."""

    MOVED = "moved"  # started, grown, or room is held for it
    PASSED = "passed"  # this one cannot; its likes may
    REFUSED = "refused"  # none of its line can


class Pass:
    """The working memory of one pass. `wakes`: moments at which an answer may change by itself."""

    def __init__(self, state: State, now: int) -> None:
        self.state = state
        self.now = now
        self.index = state.index
        self.draft = Draft(state.index)
        self.herd = Herd(state, now)
        self.hunt = Hunt(self.draft, state.policy.search_steps)
        self.searches: list[Search] = []
        self.wakes: list[int] = []
        self.reservations: list[Reservation] = []
        self._made: list[Decision | str] = []  # in the order of their making; a name stands for a start or growth
        self._starts: dict[str, tuple[Workload, Shape, int, list[Pod]]] = {}
        self._busy: set[str] = set()
        self._nofit: set[tuple[Shape, int, int]] = set()
        self._unclaimable: set[tuple[Branch, Shape, int]] = set()
        self._users: dict[tuple[Branch, str], int] = {}
        self._arrays: dict[str, int] = {}
        self._live: dict[Size, bool] = {}
        self._free: int | None = None
        self._hopes: set[tuple[Branch, Shape, int]] = set()
        self._gifts: dict[Branch, tuple[int, object]] = {}
        self._took = 0
        self._held_moved: dict[str, None] = {}
        self._released: set[str] = set()
        self._recall_use()

    def _recall_use(self) -> None:
        """What was used lately, where it orders the projects."""
        half_life = self.state.policy.half_life
        if half_life is None:
            return
        for branch in self.index.tree.branches.values():
            account = self.state.accounts.get(branch.name)
            branch.mean = mean_life(half_life)
            branch.past = 0 if account is None else settled(account, branch.use - branch.held, self.now, self.state.policy).past

    def close(self) -> None:
        """Undo all tentative work. What was learnt on the way holds once the decisions are applied."""
        self.draft.back()
        self.index.masks.grown = 0
        self.index.touched.update(self._held_moved)
        self.index.memory.await_decisions(len(self.decisions()))

    def decisions(self) -> tuple[Decision, ...]:
        """All decisions in the order they were made: each is right given those before it."""
        return tuple(self._start_of(made) if isinstance(made, str) else made for made in self._made)

    def _start_of(self, name: str) -> Start | Grow:
        pods = tuple(self._starts[name][3])
        queued = self.state.standings[name].phase is Phase.QUEUED
        return Start(self.now, name, pods) if queued else Grow(self.now, name, pods)

    # -- 1. and 2. --------------------------------------------------------------------------------------------

    def keep_up(self) -> None:
        """What time and the machines force."""
        for decision in upkeep(self.state, self.now):
            self._made.append(decision)
            if isinstance(decision, Close):
                self._close_node(decision.node)
                continue
            standing = self.state.standings[decision.workload]
            ids = {p.id for p in standing.pods} if isinstance(decision, Stop) else set(decision.pods) if isinstance(decision, Evict) else set()
            for pod in standing.pods:
                if pod.id in ids:
                    self.draft.evict(pod, standing.workload)
            self._busy.add(decision.workload)
            self.herd.spare(decision.workload)
            self._give_up_hold(decision.workload)

    def _close_node(self, name: str) -> None:
        """Nothing new goes there in this pass either."""
        self.closed |= 1 << self.index.rooms[name].pos

    closed = 0

    def start_held(self) -> None:
        """Those for whom room was held start when it is free; a hold that can no longer come true is given up."""
        touched, self.index.touched = self.index.touched, {}
        for name in sorted(touched, key=self._order):
            pods = self.state.holds.get(name)
            if pods is None or name in self._busy:
                continue
            standing = self.state.standings[name]
            rooms = [self.index.rooms.get(pod.node) for pod in pods]
            if any(room is None or not room.open or not all(room.sound[p.device] for p in pod.slices) for room, pod in zip(rooms, pods, strict=True)):
                self._give_up_hold(name)
                self._held_moved[name] = None
            elif name not in self.index.leaving_of and self._all_ready(standing, pods):
                self._held_moved[name] = None
                branch, shape, _, _, _ = self.index.place_in_line(standing)
                fresh = [Pod(name, standing.attempt + 1, p.role, p.rank, p.node, p.slices) for p in pods]
                for pod in fresh:
                    self.draft.take(RUN, pod, standing.workload)
                self._top_up(branch, standing, shape, fresh)
                self._began(branch, standing.workload, shape, standing.attempt + 1, fresh)

    def _top_up(self, branch: Branch, standing: Standing, shape: Shape, pods: list[Pod]) -> None:
        """Whoever starts in held room takes free room for its other pods at once, before a borrower does."""
        if shape.elastic or shape.spread:
            return
        model = self.index.rooms[pods[0].node].node.model
        have = standing.pods if standing.phase is Phase.RUNNING else ()
        site = Site(self.draft, standing.workload, shape, standing.attempt + 1, have)
        site.top_up(self._ban(standing), pods, lambda: self._more(branch, standing.workload, model))

    def _all_ready(self, standing: Standing, pods: tuple[Pod, ...]) -> bool:
        """Whether all the held places are free at the same time; if so they are held no more."""
        workload = standing.workload
        mark = self.draft.mark
        for pod in pods:
            room = self.index.rooms[pod.node]
            if not room.ready_for(pod, workload.roles[pod.role].ask):
                self.draft.back(mark)
                return False
            self.draft.take(RUN, pod, workload)
        self.draft.back(mark)
        self._release(workload.id, pods)
        return True

    def _order(self, name: str) -> tuple[int, int, str]:
        standing = self.state.standings.get(name)
        return (-standing.workload.priority, standing.submitted, name) if standing is not None else (0, 0, name)

    def _give_up_hold(self, name: str) -> None:
        if self._holds_room(name):
            self._made.append(Release(self.now, name))
            self._release(name, self.state.holds[name])

    def _holds_room(self, name: str) -> bool:
        return name in self.state.holds and name not in self._released

    def _release(self, name: str, pods: tuple[Pod, ...]) -> None:
        workload = self.state.standings[name].workload
        self._released.add(name)
        for pod in pods:
            self.draft.free(HELD, pod, workload)
        self._nofit.clear()

    # -- 3. reservations --------------------------------------------------------------------------------------

    def reserve(self) -> None:
        """Those who waited too long go first; where they cannot start, what they will need is reserved."""
        wait = self.state.policy.reserve_after
        if wait is None:
            return
        patient: list[tuple[Entry, Branch, Line]] = []
        for branch, queue in self.index.queues.items():
            for line in queue.lines.values():
                for entry in line.entries:
                    if entry[1] + wait > self.now:
                        self.wakes.append(entry[1] + wait)
                    elif not line.grows:
                        patient.append((entry, branch, line))
        patient.sort(key=lambda item: (item[0], item[1].name))
        for entry, branch, line in patient:
            if len(self.reservations) >= self.state.policy.reservations:
                break
            if self._consider(branch, line, entry, claims=True) is not Verdict.MOVED and not self._holds_room(entry[2]):
                self._reserve(branch, line, self.state.standings[entry[2]])

    def _reserve(self, branch: Branch, line: Line, standing: Standing) -> None:
        need = self._demand(line.shape, standing.workload.project)
        if need.units and all(step.project.cap is None or need.units <= step.project.cap for step in branch.path):
            made = reserve_for(self.state, self.draft, standing, line.shape, self.now, self._busy)
            if made is not None:
                self.reservations.append(made)
                self._nofit.clear()
                self._live.clear()
                if made.at is not None:
                    self.wakes.append(made.at)

    # -- 4. and 5. --------------------------------------------------------------------------------------------

    def rounds(self) -> None:
        """Inside the guarantee first, then everybody."""
        self.index.memory.refresh(self.index.masks)
        turns = Turns(self.index.tree, [turn for b, queue in self.index.queues.items() if (turn := self._turn(b, queue)) is not None])
        turns.each(self._first_round)
        turns.again()
        turns.each(self._second_round)

    def _turn(self, branch: Branch, queue: Queue) -> Turn | None:
        """The lines of a project that could move: pods of a size some node has, or hope of taking back."""
        if admit.on_hold(branch):
            return None
        if branch.project.strict:
            return Turn(branch, list(queue.lines.values()))
        unfit = self.index.memory.is_unfit
        lines: dict[Line, None] = {}
        for size, group in queue.by_size.items():
            if self._is_live(size):
                lines.update((line, None) for line in group if not unfit(line.shape))
        if self.state.policy.evictions and len(lines) < len(queue.lines):
            lowest = min(branch.priorities, default=None)
            others = self._others(branch)[0]
            for priority, group in queue.by_priority.items():
                if others or self.index.masks.leaving or (lowest is not None and priority > lowest):
                    lines.update((line, None) for line in group if line not in lines and self._may_hope(branch, line, line.entries[0]))
        return Turn(branch, list(lines)) if lines else None

    def _others(self, branch: Branch) -> tuple[int, object]:
        """GPU units that other projects could have to give to this one at most, and whose they are."""
        found = self._gifts.get(branch)
        if found is None and self.index.tree.by_model:  # what is taken depends on the model: every claim is tried
            found = self._gifts[branch] = (UNBOUNDED if self._may_claim(branch) else 0, object())
        if found is None:
            claimant = Claimant(self.herd, branch, max(branch.priorities, default=0), 0, "")
            found = self.hunt.from_others(claimant) if self._may_claim(branch) else (0, ())
            if found[1] or any(step.project.cap is not None for step in branch.path):
                found = (found[0], (found[1], *(step.use for step in branch.path)))
            self._gifts[branch] = found
        return found

    def _hope(self, branch: Branch, line: Line, priority: int) -> bool:
        """Whether taking back could serve a line, judged by sums and by what was tried before."""
        others, whose = self._others(branch)
        memo = (branch, line.shape, priority)
        if not line.grows and self.index.memory.is_hopeless(memo, whose, bool(self.index.masks.leaving)):
            return False
        own = self.hunt.own_lower(self.herd, branch, priority)
        workload = self.state.standings[line.entries[0][2]].workload
        need = self._demand(line.shape, workload.project).units
        if not own and not others:
            return bool(self.index.masks.leaving) and branch.use + need <= branch.project.guarantee
        if self._free is None:
            self._free = self.hunt.free_units(self.index.masks.every)
        return own + others + self._free >= need

    def _may_claim(self, branch: Branch) -> bool:
        policy, project = self.state.policy, branch.project
        if policy.fair_share_eviction or policy.borrowers_evict:
            return True
        if project.guarantee_by_model:
            return any(branch.use_model.get(model, 0) < units for model, units in project.guarantee_by_model.items())
        return branch.use < project.guarantee

    def _first_round(self, turn: Turn) -> None:
        front = self._front(turn)
        if front is None:
            return
        entry, at, line = front
        if not self._inside(turn.branch, line.shape, entry[2]):
            turn.deferred.append((entry, at, line))
            turn.parked = turn.branch.project.strict or self._fits_now(line, entry)
            return
        self._act(turn, entry, at, line)

    def _second_round(self, turn: Turn) -> None:
        front = self._front(turn)
        if front is not None:
            self._act(turn, *front)

    def _front(self, turn: Turn) -> tuple[Entry, int, Line] | None:
        """The first entry that could still move; lines whose pods no node could take any more, and which have no hope
        of taking back, are dropped on the way."""
        while turn.heap:
            entry, at, line = turn.next()
            if turn.branch.project.strict or self._is_live(line.shape.size):
                return entry, at, line
            if (turn.branch, line.shape, -entry[0]) in self._hopes or self._may_hope(turn.branch, line, entry):
                return entry, at, line
        return None

    def _may_hope(self, branch: Branch, line: Line, entry: Entry) -> bool:
        if not self.state.policy.evictions or not self._hope(branch, line, -entry[0]):
            return False
        self._hopes.add((branch, line.shape, -entry[0]))
        return True

    def _act(self, turn: Turn, entry: Entry, at: int, line: Line) -> None:
        if turn.blocked and self._may_use(line, entry) & turn.blocked:
            turn.go_on(at, line)
            return
        verdict = self._consider(turn.branch, line, entry, claims=True)
        if verdict is not Verdict.REFUSED:
            turn.go_on(at, line)
        elif turn.branch.project.strict:
            turn.blocked |= self._may_use(line, entry)

    def _may_use(self, line: Line, entry: Entry) -> int:
        """Nodes that a strict queue keeps for whoever is ahead."""
        found = 0
        project = self.state.standings[entry[2]].workload.project
        for (ask, where), pods in zip(line.shape.roles, line.shape.wanted, strict=True):
            if pods:
                nodes = self.index.masks.allowed(where, project)
                found |= nodes & ~self.index.masks.bare if ask.on_gpu else nodes
        return found

    def _inside(self, branch: Branch, shape: Shape, name: str) -> bool:
        workload = self.state.standings[name].workload
        need = self._demand(shape, workload.project)
        for model in admit.models_to_try(self.index, branch, shape, workload.project):
            use, guarantee = branch.against(model)
            if use + need.units <= guarantee:
                return True
        return False

    def _fits_now(self, line: Line, entry: Entry) -> bool:
        """Whether a borrower could start right away, so that nothing of its project may overtake it."""
        standing = self.state.standings[entry[2]]
        if line.grows or self._refuses(entry[2], standing) or not self._is_live(line.shape.size):
            return False
        ban = self._ban(standing)
        memo = (line.shape, ban, 0)
        if self.reservations or memo in self._nofit:
            return False
        mark = self.draft.mark
        if self._place(line.shape, standing, ban, None) is None:
            self._nofit.add(memo)
            return False
        self.draft.back(mark)
        return True

    # -- one request ------------------------------------------------------------------------------------------

    def _consider(self, branch: Branch, line: Line, entry: Entry, *, claims: bool) -> Verdict:
        name = entry[2]
        standing = self.state.standings[name]
        if self._refuses(name, standing):
            return Verdict.PASSED
        if line.grows and line.shape.elastic and standing.holds_together(standing.pods):
            return Verdict.PASSED
        workload, shape = standing.workload, line.shape
        need = self._demand(shape, workload.project)
        if self._gate_shut(branch, workload, need, standing):
            return Verdict.REFUSED
        models = admit.models_to_try(self.index, branch, shape, workload.project)
        live = self._is_live(shape.size)
        for model in models:
            if live and self._start(branch, line, standing, need, model):
                return Verdict.MOVED
        if not claims or not self.state.policy.evictions or (line.grows and line.shape.elastic):
            return Verdict.REFUSED
        if self._holds_room(name):
            return Verdict.PASSED
        for model in models:
            if self._claim(branch, line, standing, need, model):
                return Verdict.MOVED
        return Verdict.PASSED if self.reservations or self.index.masks.windows else Verdict.REFUSED

    def _refuses(self, name: str, standing: Standing) -> bool:
        """Whether this one workload cannot be considered now, whatever its likes may."""
        if name in self._busy:
            return True
        return standing.phase is Phase.QUEUED and name in self.index.leaving_of

    def _gate_shut(self, branch: Branch, workload: Workload, need: admit.Demand, standing: Standing) -> bool:
        if workload.throttle and standing.phase is Phase.QUEUED:
            running = self.index.arrays.get(workload.array, 0) + self._arrays.get(workload.array, 0)
            if running >= workload.throttle:
                return True
        if self.index.tree.daily and need.units:
            spent = admit.over_daily(self.state, branch, self.now)
            if spent is not None:
                self.wakes.append(midnight(self.now, self.state.policy))
                return True
        if standing.phase is Phase.RUNNING:
            return False
        running = branch.user_running.get(workload.user, 0) + self._users.get((branch, workload.user), 0)
        return admit.over_user_limit(branch, workload, need, running, branch.units_user.get(workload.user, 0)) is not None

    def _start(self, branch: Branch, line: Line, standing: Standing, need: admit.Demand, model: str) -> bool:
        workload, shape = standing.workload, line.shape
        if admit.over_cap(branch, need, model) is not None:
            return False
        if not workload.borrow:
            use, guarantee = branch.against(model)
            if use + need.units > guarantee:
                return False
        ban = self._ban(standing) | self._not_model(model)
        lifted = [r for r in self.reservations if r.allows(workload, self.now)]
        memo = (shape, ban, sum(1 << i for i, r in enumerate(self.reservations) if r in lifted))
        if not line.grows and memo in self._nofit:
            return False
        for reservation in lifted:
            reservation.lift(self.draft)
        pods = self._place(shape, standing, ban, lambda: self._more(branch, workload, model))
        for reservation in lifted:
            reservation.put_back(self.draft)
        if pods is None:
            if not line.grows:
                self._nofit.add(memo)
                if not ban and not self.reservations and shape.single is not None and not shape.level and not self.index.masks.aside:
                    self.index.memory.unfit(shape)
            return False
        self._give_up_hold(workload.id)
        self._began(branch, workload, shape, standing.attempt + 1, pods)
        more = self._claim_more(branch, standing, shape, pods, model)
        if more:
            self._made.append(Hold(self.now, workload.id, tuple(more)))
        return True

    def _place(self, shape: Shape, standing: Standing, ban: int, more: object) -> list[Pod] | None:
        queued = standing.phase is Phase.QUEUED
        site = Site(self.draft, standing.workload, shape, standing.attempt + 1, () if queued else standing.pods)
        return site.place(ban, more)  # type: ignore[arg-type]

    def _more(self, branch: Branch, workload: Workload, model: str) -> bool:
        """Whether what is taken so far is within every limit (asked after each pod above the minimum)."""
        if admit.over_cap(branch, admit.Demand(1, 1), model) is not None and self._beyond(branch, model):
            return False
        limit = branch.project.units_per_user
        if limit is not None and branch.units_user.get(workload.user, 0) > limit:
            return False
        if not workload.borrow:
            use, guarantee = branch.against(model)
            return use <= guarantee
        return True

    @staticmethod
    def _beyond(branch: Branch, model: str) -> bool:
        for step in branch.path:
            project = step.project
            cap = project.cap_by_model.get(model)
            if project.cap is not None and step.use > project.cap:
                return True
            if cap is not None and step.use_model.get(model, 0) > cap:
                return True
            if project.memory is not None and step.use_memory > project.memory:
                return True
        return False

    def _began(self, branch: Branch, workload: Workload, shape: Shape, attempt: int, pods: list[Pod]) -> None:
        self._starts[workload.id] = (workload, shape, attempt, pods)
        self._made.append(workload.id)
        self._busy.add(workload.id)
        self.herd.spare(workload.id)
        key = (branch, workload.user)
        self._users[key] = self._users.get(key, 0) + 1
        if workload.throttle:
            self._arrays[workload.array] = self._arrays.get(workload.array, 0) + 1
        self._live.clear()

    # -- taking back ------------------------------------------------------------------------------------------

    def _claim(self, branch: Branch, line: Line, standing: Standing, need: admit.Demand, model: str) -> bool:
        workload, shape = standing.workload, line.shape
        memo = (branch, shape, workload.priority)
        if memo in self._unclaimable and not line.grows and not self.index.masks.windows:
            return False
        claimant = Claimant(self.herd, branch, workload.priority, need.units, model)
        answer = self._hunt(claimant, branch, line, standing, need) if claimant.anybody else None
        if answer is None:
            if not line.grows:
                self._unclaimable.add(memo)
                self._remember(claimant, memo, standing)
            return False
        if not answer.victims and not claimant.sure:
            return False  # those who leave already make room; a borrower has no right to have it kept
        self._take_victims(workload, answer)
        pods = self._held_places(shape, standing, answer)
        pods += self._claim_more(branch, standing, shape, pods, model)
        self._made.append(Hold(self.now, workload.id, tuple(pods)))
        self._busy.add(workload.id)
        return True

    def _claim_more(self, branch: Branch, standing: Standing, shape: Shape, pods: list[Pod], model: str) -> list[Pod]:
        """Places for the pods above the minimum, kept at once: left to later passes, whoever had to go would come back
        into the room between, only to go again."""
        workload = standing.workload
        if shape.elastic or shape.spread or not self.state.policy.evictions:
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
        return self.index.shape((roles, 1, False, shape.level, shape.prefer, ""))

    def _claim_one(
        self, branch: Branch, standing: Standing, shape: Shape, have: tuple[Pod, ...], made: list[Pod], model: str
    ) -> bool:
        workload = standing.workload
        need = self._demand(shape, workload.project)
        if admit.over_cap(branch, need, model) is not None:
            return False
        claimant = Claimant(self.herd, branch, workload.priority, need.units, model)
        if not claimant.anybody:
            return False
        usable = self.index.masks.every & ~(self._ban(standing) | self._not_model(model))
        if shape.level and have:
            usable &= self.index.masks.within(shape.level, self.index.rooms[have[0].node].pos)
        answer = self.hunt.find(claimant, workload, shape, usable)
        if answer is None or (not answer.victims and not claimant.sure) or (not workload.borrow and not claimant.sure):
            return False
        self._take_victims(workload, answer)
        made += self._held_places(shape, standing, answer, have)
        return True

    def _remember(self, claimant: Claimant, memo: tuple[Branch, Shape, int], standing: Standing) -> None:
        """A claim without an answer stays without one until its own running work, whoever could give to it, or the room
        on the nodes in question changes."""
        policy = self.state.policy
        by_rule = policy.fair_share_eviction or policy.borrowers_evict
        if not (by_rule or claimant.model or self._ban(standing) or self.reservations or self._took):
            self.index.memory.hopeless(memo, self.hunt.looked_at, self._others(claimant.branch)[1])

    def _hunt(self, claimant: Claimant, branch: Branch, line: Line, standing: Standing, need: admit.Demand) -> Answer | None:
        workload = standing.workload
        ban = self._ban(standing) | self._not_model(claimant.model)
        usable = self.index.masks.every & ~ban
        if line.grows and line.shape.level:
            usable &= self.index.masks.within(line.shape.level, self.index.rooms[standing.pods[0].node].pos)
        capped = admit.over_cap(branch, need, claimant.model) is not None
        answer = self.hunt.find(claimant, workload, line.shape, usable, capped=capped)
        if answer is not None and not workload.borrow:
            freed = sum(victim.units for victim in answer.victims if victim.branch is branch)
            if not claimant.reach(freed):
                return None
        return answer

    def _take_victims(self, workload: Workload, answer: Answer) -> None:
        victims = answer.victims
        self.searches.append(answer.search)
        self._took += 1
        self._gifts.clear()
        self.index.memory.forget_hopeless()
        taken: dict[str, list[Victim]] = {}
        for victim in victims:
            taken.setdefault(victim.name, []).append(victim)
        for name in sorted(taken):
            group = taken[name]
            pods = [pod for victim in group for pod in victim.pods]
            for pod in pods:
                self.draft.evict(pod, group[0].workload)
                self.hunt.improved.append(self.index.rooms[pod.node].pos)
            cause = Cause.PRIORITY if group[0].workload.project == workload.project else Cause.RECLAIM
            self._made.append(Evict(self.now, name, tuple(pod.id for pod in pods), cause, workload.id))
            self.herd.spare(name)
            self._busy.add(name)
            self._give_up_hold(name)

    def _held_places(self, shape: Shape, standing: Standing, answer: Answer, have: tuple[Pod, ...] | None = None) -> list[Pod]:
        workload = standing.workload
        if have is None:
            have = standing.pods if standing.phase is Phase.RUNNING else ()
        attempt = standing.attempt + 1
        site = Site(self.draft, workload, shape, attempt, have, HELD, later=True)
        if answer.nodes is None:
            pods = site.place(self._ban(standing), lambda: False)
            if pods is None:
                raise AssertionError(f"victims for {workload.id} make no room")
            return pods
        pods = []
        role = next(r for r, n in enumerate(shape.counts) if n)
        for pos, count in answer.nodes:
            room = self.index.masks.rooms[pos]
            if site.settle(role, shape.roles[role][0], room, count, pods) < count:
                raise AssertionError(f"victims for {workload.id} make no room on {room.node.name}")
        return pods

    # -- 6. growth --------------------------------------------------------------------------------------------

    def grow_elastic(self) -> None:
        """Elastic workloads take what nobody's minimum wants, a pod at a time, by share."""
        wishes: list[tuple[Branch, Entry, Workload, Shape, int, list[Pod], tuple[Pod, ...]]] = []
        for name, (workload, shape, attempt, pods) in self._starts.items():
            standing = self.state.standings[name]
            if workload.elastic and standing.phase is Phase.QUEUED:
                wishes.append((self.index.tree.leaf(workload.project), self._order(name), workload, shape, attempt, pods, ()))
        for branch, queue in self.index.queues.items():
            for line in queue.lines.values():
                if line.grows and line.shape.elastic and line.grows not in self._busy and self._is_live(line.shape.size):
                    standing = self.state.standings[line.grows]
                    if standing.holds_together(standing.pods):
                        wishes.append((branch, line.entries[0], standing.workload, line.shape, standing.attempt + 1, [], standing.pods))
        while wishes:
            chosen = min(range(len(wishes)), key=lambda i: (wishes[i][0].key(), wishes[i][1]))
            if not self._one_more(*wishes[chosen]):
                del wishes[chosen]

    def _one_more(
        self, branch: Branch, entry: Entry, workload: Workload, shape: Shape, attempt: int, pods: list[Pod], have: tuple[Pod, ...]
    ) -> bool:
        """Add one pod of the first role that wants one."""
        standing = self.state.standings[workload.id]
        ban = self._ban(standing)
        for role, wanted in enumerate(standing.wanted):
            running = sum(pod.role == role for pod in (*have, *pods))
            if running >= wanted:
                continue
            mark, before = self.draft.mark, len(pods)
            site = Site(self.draft, workload, shape, attempt, have)
            placed = site.one_more(role, ban, pods)
            model = self.index.rooms[pods[-1].node].node.model if placed else ""
            if placed and self._more(branch, workload, model):
                if workload.id not in self._starts:
                    self._starts[workload.id] = (workload, shape, attempt, pods)
                    self._made.append(workload.id)
                return True
            self.draft.back(mark)
            del pods[before:]
        return False

    # -- what is asked again and again ------------------------------------------------------------------------

    def _demand(self, shape: Shape, project: str) -> admit.Demand:
        masks = self.index.masks
        key = (shape, project if masks.aside else "")
        found = masks.demands.get(key)
        if found is None:
            found = masks.demands[key] = admit.demand(self.index, shape, project)
        return found

    def _ban(self, standing: Standing) -> int:
        """Nodes that the workload may not use now: closed in this pass, or in maintenance before it must have ended."""
        ban = self.closed
        for pos in bits(self.index.masks.windows):
            for window in self.index.masks.rooms[pos].node.maintenance:
                limit = standing.workload.limit
                if window.end > self.now and (limit is None or self.now + limit > window.start):
                    ban |= 1 << pos
        return ban

    def _not_model(self, model: str) -> int:
        if not model:
            return 0
        found = 0
        for room in self.index.masks.rooms:
            if room.node.model != model:
                found |= 1 << room.pos
        return found

    def _is_live(self, size: Size) -> bool:
        """Whether any open node could take one pod of this size, judged by its free devices alone."""
        found = self._live.get(size)
        if found is None:
            masks = self.index.masks
            kind, amount = size
            if kind == "whole":
                found = any(masks.by_free[amount:])
            elif kind in ("share", "memory"):
                found = bool(masks.partial) or any(masks.by_free[1:])
            else:
                found = True
            if self.reservations:
                found = True
            self._live[size] = found
        return found
