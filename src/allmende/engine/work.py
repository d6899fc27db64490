"""The working memory of one pass: the draft, what was decided so far, and what is asked again and again."""

from __future__ import annotations

from collections.abc import Callable

from allmende.engine import admit
from allmende.engine.account import mean_life, midnight, settled
from allmende.engine.draft import Draft
from allmende.engine.mask import bits
from allmende.engine.place import Site
from allmende.engine.preempt import Hunt
from allmende.engine.reservation import Reservation
from allmende.engine.room import HELD
from allmende.engine.search import Search
from allmende.engine.shape import Shape, Size
from allmende.engine.state import State
from allmende.engine.tree import Branch
from allmende.engine.victim import Herd
from allmende.model.cluster import Pod
from allmende.model.decision import Decision, Grow, Release, Start
from allmende.model.standing import Phase, Standing
from allmende.model.workload import Workload


class Began:
    """Places taken now for a start (`grows` False) or for growth; the list may still get longer."""

    __slots__ = ("grows", "name", "pods", "shape", "workload")

    def __init__(self, workload: Workload, shape: Shape, pods: list[Pod], grows: bool) -> None:
        self.name = workload.id
        self.workload = workload
        self.shape = shape
        self.pods = pods
        self.grows = grows


class Pass:
    """What all steps of one pass share. `wakes`: moments at which an answer may change by itself. `made`: decisions in
    the order of their making. `busy`: workloads that are decided on. `closed`: nodes closed in this pass, `barred`
    those that the project in turn keeps for who is in front. `version` counts what was taken, `missing` the pods
    without a place in the last try."""

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
        self.made: list[Decision | Began] = []
        self.starts: list[Began] = []
        self.busy: set[str] = set()
        self.closed = 0
        self.barred = 0
        self.version = 0
        self.missing = 0
        self.unfit: set[Shape] = set()
        self.fits: dict[tuple[Shape, int, int], int] = {}
        self.nofit: set[tuple[Shape, int, int]] = set()
        self.held_moved: dict[str, None] = {}
        self._released: set[str] = set()
        self._users: dict[tuple[Branch, str], int] = {}
        self._arrays: dict[str, int] = {}
        self._live: dict[Size, bool] = {}
        self._recall_use()

    def _recall_use(self) -> None:
        """What was used lately, where it orders the projects."""
        half_life = self.state.policy.half_life
        if half_life is None:
            return
        for branch in self.index.tree.branches.values():
            account = self.state.accounts.get(branch.name)
            branch.mean = mean_life(half_life)
            branch.past = (
                0 if account is None else settled(account, branch.use - branch.held, self.now, self.state.policy).past
            )

    def close(self) -> None:
        """Undo all tentative work. What was learnt on the way holds once the decisions are applied."""
        self.draft.back()
        self.index.masks.grown = 0
        self.index.touched.update(self.held_moved)
        self.index.memory.await_decisions(len(self.decisions()))

    def decisions(self) -> tuple[Decision, ...]:
        """All decisions in the order they were made: each is right given those before it."""
        return tuple(self._of(made) if isinstance(made, Began) else made for made in self.made)

    def _of(self, began: Began) -> Start | Grow:
        pods = tuple(began.pods)
        return Grow(self.now, began.name, pods) if began.grows else Start(self.now, began.name, pods)

    def order(self, name: str) -> tuple[int, int, str]:
        """The order inside a project."""
        standing = self.state.standings.get(name)
        return (-standing.workload.priority, standing.submitted, name) if standing is not None else (0, 0, name)

    def give_up_hold(self, name: str) -> None:
        """Keep its places no longer, and say so."""
        if self.holds_room(name):
            self.made.append(Release(self.now, name))
            self.release(name, self.state.holds[name])

    def holds_room(self, name: str) -> bool:
        """Whether places are kept for it, also after what this pass decided."""
        return name in self.state.holds and name not in self._released

    def release(self, name: str, pods: tuple[Pod, ...]) -> None:
        """Take its held places off the draft."""
        workload = self.state.standings[name].workload
        self._released.add(name)
        for pod in pods:
            self.draft.free(HELD, pod, workload)
        self.nofit.clear()

    def demand(self, shape: Shape, project: str) -> admit.Demand:
        """What the minimum takes of quotas."""
        masks = self.index.masks
        key = (shape, project if masks.aside else "")
        found = masks.demands.get(key)
        if found is None:
            found = masks.demands[key] = admit.demand(self.index, shape, project)
        return found

    def ban(self, standing: Standing) -> int:
        """Nodes that the workload may not use now: closed in this pass, or in maintenance before it must have ended."""
        ban = self.closed | self.barred
        for pos in bits(self.index.masks.windows):
            for window in self.index.masks.rooms[pos].node.maintenance:
                limit = standing.workload.limit
                if window.end > self.now and (limit is None or self.now + limit > window.start):
                    ban |= 1 << pos
        return ban

    def not_model(self, model: str) -> int:
        """Nodes of other models ("" = none)."""
        if not model:
            return 0
        found = 0
        for room in self.index.masks.rooms:
            if room.node.model != model:
                found |= 1 << room.pos
        return found

    def is_live(self, size: Size) -> bool:
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

    def more(self, branch: Branch, workload: Workload, model: str) -> bool:
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

    def began(self, branch: Branch, workload: Workload, shape: Shape, pods: list[Pod]) -> None:
        """These places are taken now."""
        began = Began(workload, shape, pods, self.state.standings[workload.id].phase is Phase.RUNNING)
        self.starts.append(began)
        self.made.append(began)
        self.busy.add(workload.id)
        self.herd.spare(workload.id)
        key = (branch, workload.user)
        self._users[key] = self._users.get(key, 0) + 1
        if workload.throttle:
            self._arrays[workload.array] = self._arrays.get(workload.array, 0) + 1
        self._live.clear()
        self.version += 1

    def place(self, shape: Shape, standing: Standing, ban: int, more: Callable[[], bool] | None) -> list[Pod] | None:
        """Take free places for a waiting or growing workload; None where its minimum does not fit."""
        queued = standing.phase is Phase.QUEUED
        site = Site(self.draft, standing.workload, shape, standing.attempt + 1, () if queued else standing.pods)
        pods = site.place(ban, more)
        self.missing = site.missing
        return pods

    def refuses(self, name: str, standing: Standing) -> bool:
        """Whether this one workload cannot be considered now, whatever its likes may."""
        if name in self.busy:
            return True
        return standing.phase is Phase.QUEUED and name in self.index.leaving_of

    def gate_shut(self, branch: Branch, workload: Workload, need: admit.Demand, standing: Standing) -> bool:
        """Whether a throttle, a daily limit or a limit of its user stands in the way."""
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
        return (
            admit.over_user_limit(branch, workload, need, running, branch.units_user.get(workload.user, 0)) is not None
        )

    def look_again(self) -> None:
        """Room was reserved: what fits must be judged anew."""
        self.nofit.clear()
        self._live.clear()
