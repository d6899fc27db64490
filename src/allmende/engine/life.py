"""The life of a workload as the fold sees it: submitted, started, grown, shrunk, ended, and its pods' ways out."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from allmende.engine.account import fresh, settled
from allmende.engine.room import HELD, RUN
from allmende.engine.state import State
from allmende.model.cluster import Leaving, Pod, PodId
from allmende.model.decision import Cause
from allmende.model.standing import Outcome, Phase, Standing
from allmende.model.workload import Workload


def note_use(state: State, project: str, at: int) -> None:
    """Settle what a project and those above it used, before it changes. Costs nothing where nobody asks for it."""
    policy = state.policy
    if policy.half_life is None and not state.index.tree.daily:
        return
    for branch in state.index.tree.leaf(project).path:
        account = state.accounts.get(branch.name) or fresh(at, policy)
        state.accounts[branch.name] = settled(account, branch.use - branch.held, at, policy)


def submit(state: State, workload: Workload, at: int) -> None:
    """A new workload joins the queue."""
    wanted = tuple(role.pods for role in workload.roles)
    least = tuple(min(role.least, role.pods) for role in workload.roles)
    standing = Standing(workload, at, wanted, workload.gang_min, least=least)
    state.standings[workload.id] = standing
    state.index.enter(state, standing)


def change(state: State, old: Standing, new: Standing) -> None:
    """Replace a standing whose pods stay as they are."""
    state.index.exit(old)
    state.standings[new.workload.id] = new
    state.index.enter(state, new)


def want(standing: Standing, wanted: tuple[int, ...]) -> Standing:
    """Another number of pods is wanted; minima never rise by it."""
    least = tuple(min(one, other) for one, other in zip(standing.least, wanted, strict=True))
    return replace(standing, wanted=wanted, minimum=min(standing.minimum, sum(wanted)), least=least)


def start(state: State, standing: Standing, pods: tuple[Pod, ...], at: int) -> None:
    """A queued workload takes its places."""
    note_use(state, standing.workload.project, at)
    index = state.index
    index.exit(standing)
    for pod in pods:
        index.occupy(RUN, pod, standing.workload, 1)
    new = replace(
        standing,
        phase=Phase.RUNNING,
        attempt=standing.attempt + 1,
        started=at,
        pods=pods,
        bound=False,
        survivors_since=None,
        first_started=at if standing.first_started is None else standing.first_started,
    )
    state.standings[standing.workload.id] = new
    index.enter(state, new)


def grow(state: State, standing: Standing, pods: tuple[Pod, ...], at: int) -> None:
    """A running workload takes more places."""
    note_use(state, standing.workload.project, at)
    index = state.index
    index.exit(standing)
    for pod in pods:
        index.occupy(RUN, pod, standing.workload, 1)
    now_has = standing.pods + pods
    new = replace(
        standing,
        attempt=standing.attempt + 1,
        pods=now_has,
        survivors_since=None if standing.holds_together(now_has) else standing.survivors_since,
    )
    state.standings[standing.workload.id] = new
    index.enter(state, new)


def evict(state: State, standing: Standing, ids: set[PodId], at: int, cause: Cause, claimant: str = "") -> None:
    """Pods are told to go; a workload left without any is queued again, with its first time of submission."""
    taken = [pod for pod in standing.pods if pod.id in ids]
    if not taken:
        return
    note_use(state, standing.workload.project, at)
    _let_leave(state, standing.workload, taken, at)
    _without(state, standing, taken, at, evicted=cause is not Cause.SHRINK, claimant=claimant)


def lose(state: State, name: str, ids: Iterable[PodId], at: int) -> None:
    """Pods were taken by their node: their room is free (or gone) at once."""
    standing = state.standings.get(name)
    if standing is None:
        return
    wanted = set(ids)
    lost = [pod for pod in standing.pods if pod.id in wanted]
    if not lost:
        return
    note_use(state, standing.workload.project, at)
    for pod in lost:
        state.index.occupy(RUN, pod, standing.workload, -1)
    _without(state, standing, lost, at, evicted=False)


def pod_ended(state: State, standing: Standing, pod_id: PodId, at: int, ok: bool) -> None:
    """A pod came to its own end: done, or the whole workload has failed."""
    pod = next(pod for pod in standing.pods if pod.id == pod_id)
    note_use(state, standing.workload.project, at)
    if not ok:
        state.index.occupy(RUN, pod, standing.workload, -1)
        rest = replace(standing, pods=tuple(p for p in standing.pods if p is not pod))
        state.index.exit(standing)
        state.standings[standing.workload.id] = rest
        state.index.enter(state, rest)
        end(state, standing.workload.id, at, ok=False, leave=True)
        return
    wanted = tuple(n - (i == pod.role) for i, n in enumerate(standing.wanted))
    if not sum(wanted):
        end(state, standing.workload.id, at, ok=True)
        return
    state.index.occupy(RUN, pod, standing.workload, -1)
    _without(state, standing, [pod], at, wanted=wanted)


def gone(state: State, pod_id: PodId) -> None:
    """A leaving pod has left."""
    leaving = state.leaving.pop(pod_id, None)
    if leaving is not None:
        state.index.leave(leaving, -1)
        standing = state.standings.get(pod_id[0])
        if standing is not None and pod_id[0] not in state.index.leaving_of:
            state.index.tree.leaf(standing.workload.project).changed()  # it may be a victim again


def end(state: State, name: str, at: int, *, ok: bool, cancelled: bool = False, leave: bool = False) -> None:
    """A workload is over. With `leave` its pods get their grace, else they are gone already."""
    drop_hold(state, name)
    standing = state.standings.pop(name)
    workload = standing.workload
    note_use(state, workload.project, at)
    index = state.index
    index.exit(standing)
    if leave:
        _let_leave(state, workload, standing.pods, at)
    else:
        for pod in standing.pods:
            index.occupy(RUN, pod, workload, -1)
    units = sum(pod.units for pod in standing.pods)
    state.outcomes[name] = Outcome(
        name,
        workload.project,
        workload.user,
        units,
        standing.submitted,
        standing.started,
        at,
        ok,
        cancelled,
        workload.array,
    )
    for other in list(index.waited_for.get(name, ())):
        waiting = state.standings[other]
        index.exit(waiting)
        index.enter(state, waiting)


def drop_hold(state: State, name: str) -> None:
    """Places kept for a workload are kept no longer."""
    pods = state.holds.pop(name, None)
    if pods is not None:
        workload = state.standings[name].workload
        for pod in pods:
            state.index.occupy(HELD, pod, workload, -1)
        state.index.touched.pop(name, None)


def _let_leave(state: State, workload: Workload, pods: Iterable[Pod], at: int) -> None:
    for pod in pods:
        state.index.occupy(RUN, pod, workload, -1)
        leaving = Leaving(pod, workload.roles[pod.role].ask, at)
        state.leaving[pod.id] = leaving
        state.index.leave(leaving, 1)


def _without(
    state: State,
    standing: Standing,
    taken: list[Pod],
    at: int,
    *,
    evicted: bool = False,
    claimant: str = "",
    wanted: tuple[int, ...] | None = None,
) -> None:
    """The standing after pods were taken from it (their rooms are already counted)."""
    gone_ids = {pod.id for pod in taken}
    left = tuple(pod for pod in standing.pods if pod.id not in gone_ids)
    gave_way_to = claimant or standing.gave_way_to
    new = replace(standing, pods=left, evictions=standing.evictions + evicted, gave_way_to=gave_way_to)
    if wanted is not None:
        new = want(new, wanted)
    if not left:
        drop_hold(state, standing.workload.id)
        new = replace(new, phase=Phase.QUEUED, started=None, bound=False, survivors_since=None)
    elif new.holds_together(left):
        new = replace(new, survivors_since=None)
    elif standing.survivors_since is None:
        new = replace(new, survivors_since=at)
    state.index.exit(standing)
    state.standings[standing.workload.id] = new
    state.index.enter(state, new)
