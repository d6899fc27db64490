"""Why a workload waits: the finding of a try, with figures, made from the state when somebody asks.

The pass keeps no texts and no figures; it refuses classes. A reason is joined here from the class's shape, the
project's use and the nodes' room, by the same functions the pass uses.
"""

from __future__ import annotations

from allmende.engine import admit, shortage
from allmende.engine.apply import settle
from allmende.engine.draft import Draft
from allmende.engine.index import met
from allmende.engine.line import Queue
from allmende.engine.mask import bits
from allmende.engine.place import Site
from allmende.engine.room import HELD
from allmende.engine.shape import Shape
from allmende.engine.state import State
from allmende.engine.tree import Branch
from allmende.model.reason import Code, Param, Reason, Waiting
from allmende.model.standing import Phase, Standing
from allmende.model.workload import After, Workload


def explain(state: State, name: str, now: int) -> Reason | None:
    """Why a workload is not running; None when it runs or is over."""
    settle(state)
    standing = state.standings.get(name)
    if standing is None or standing.phase is Phase.RUNNING:
        return None
    return _alone(state, standing) or _as_class(state, standing, now)


def growth_reason(state: State, name: str, now: int) -> Reason | None:
    """Why a running workload has fewer pods than are wanted; None when it has them all."""
    settle(state)
    standing = state.standings.get(name)
    if standing is None or standing.phase is not Phase.RUNNING:
        return None
    missing = sum(standing.wanted) - len(standing.pods)
    if missing <= 0:
        return None
    branch, shape, _, _, _ = state.index.place_in_line(standing)
    need = admit.demand(state.index, shape, standing.workload.project)
    spent = admit.over_daily(state, branch, now) if need.units else None
    if spent is not None:
        return spent
    for model in admit.models_to_try(state.index, branch, shape, standing.workload.project):
        over = admit.over_cap(branch, need, model)
        if over is not None and over.code in (Code.CAP, Code.CAP_NEVER):
            params: dict[str, Param] = {"missing": missing, **{k: over.params[k] for k in ("project", "used", "cap")}}
            return Reason(Code.GROWTH_CAP, params, binding=over.binding)
    return Reason(Code.GROWTH_ROOM, {"missing": missing}, binding="room")


def position(state: State, name: str) -> int:
    """Its place in its project's queue, 1 being next; parked workloads come after all others."""
    settle(state)
    standing = state.standings[name]
    branch = state.index.tree.leaf(standing.workload.project)
    queue = state.index.queues.get(branch) or Queue()
    if name in state.index.parked:
        return 1 + sum(len(line.entries) for line in queue.lines.values())
    return queue.position((-standing.workload.priority, standing.submitted, name))


def _alone(state: State, standing: Standing) -> Reason | None:
    """What stops this one and not its likes."""
    workload = standing.workload
    for other in workload.after:
        if not met(state, other.workload, other.when):
            params: dict[str, Param] = {"workload": other.workload, "when": other.when.value}
            over = other.workload in state.outcomes and other.when is not After.ANY
            code, waiting = (Code.DEPENDENCY_NEVER, Waiting.NEVER) if over else (Code.DEPENDENCY, Waiting.HELPS)
            return Reason(code, params, waiting, f"workload {other.workload}")
    branch = state.index.tree.leaf(workload.project)
    held = admit.on_hold(branch)
    if held:
        return Reason(Code.PROJECT_ON_HOLD, {"project": held}, Waiting.NEEDS_CHANGE, f"hold of {held}")
    if workload.id in state.index.leaving_of:
        return Reason(Code.LEAVING, {"pods": state.index.leaving_of[workload.id]}, binding="own pods")
    if workload.id in state.holds:
        nodes = {pod.node for pod in state.holds[workload.id]}
        pods = sum(leaving.pod.node in nodes for leaving in state.leaving.values())
        params = {"pods": pods, "nodes": ", ".join(sorted(nodes)[:3])}
        return Reason(Code.EVICTING, params, Waiting.HELPS, "leaving pods", _until_then(state, standing))
    return None


def _until_then(state: State, standing: Standing) -> tuple[Reason, ...]:
    """What is short as long as those who leave are there."""
    workload = standing.workload
    draft = Draft(state.index)
    for pod in state.holds[workload.id]:
        draft.free(HELD, pod, workload)
    _, shape, _, _, _ = state.index.place_in_line(standing)
    fits = Site(draft, workload, shape, standing.attempt + 1).place() is not None
    draft.back()
    if fits:
        return ()
    for pod in state.holds[workload.id]:
        draft.free(HELD, pod, workload)
    found = shortage.shortage(state.index, draft, workload, shape, 0, "")
    draft.back()
    return (found,)


def _as_class(state: State, standing: Standing, now: int) -> Reason:
    workload = standing.workload
    branch, shape, _, entry, _ = state.index.place_in_line(standing)
    index = state.index
    need = admit.demand(index, shape, workload.project)
    never = shortage.never(index, shape, workload.project)
    models = admit.models_to_try(index, branch, shape, workload.project)
    caps = {model: admit.over_cap(branch, need, model) for model in models}
    hopeless = [cap for cap in caps.values() if cap is not None and cap.waiting is Waiting.NEVER]
    if len(hopeless) == len(models):
        return (
            hopeless[0] if len(hopeless) == 1 else Reason(Code.ALL_MODELS, {}, Waiting.NEVER, "limits", tuple(hopeless))
        )
    if never is not None:
        return never
    gate = _gate(state, branch, workload, need)
    if gate is None and need.units:
        gate = admit.over_daily(state, branch, now)
    if gate is not None:
        return gate
    ahead = _ahead(state, branch, shape, workload, entry)
    parts = {model: caps[model] or _in_room(state, standing, branch, shape, need, model, now) for model in models}
    found = [part for part in parts.values() if part is not None]
    if len(found) < len(models):
        return ahead or _free_but_waiting(state, workload, now)
    if ahead is not None and found[0].code not in (Code.CAP, Code.NO_BORROWING):
        return ahead
    untried = _taints_in_the_way(state, shape, workload)
    if len(found) == 1 and not untried:
        return found[0]
    named = tuple(part for part in (*found, *untried))
    waiting = Waiting.HELPS if any(part.waiting is Waiting.HELPS for part in found) else found[0].waiting
    return Reason(Code.ALL_MODELS, {"models": ", ".join(m for m in models if m)}, waiting, found[0].binding, named)


def _gate(state: State, branch: Branch, workload: Workload, need: admit.Demand) -> Reason | None:
    running = state.index.arrays.get(workload.array, 0)
    if workload.throttle and running >= workload.throttle:
        return Reason(
            Code.ARRAY_THROTTLE,
            {"array": workload.array, "throttle": workload.throttle},
            binding=f"array {workload.array}",
        )
    user = workload.user
    return admit.over_user_limit(
        branch, workload, need, branch.user_running.get(user, 0), branch.units_user.get(user, 0)
    )


def _ahead(
    state: State, branch: Branch, shape: Shape, workload: Workload, entry: tuple[int, int, str]
) -> Reason | None:
    """In a strict project: the first in front that could use the same nodes."""
    if not branch.project.strict:
        return None
    mine = _nodes(state, shape, workload.project)
    first: tuple[int, int, str] | None = None
    for line in state.index.queues[branch].lines.values():
        front = line.entries[0]
        if front < entry and (first is None or front < first) and _nodes(state, line.shape, workload.project) & mine:
            first = front
    return Reason(Code.AHEAD, {"workload": first[2]}, binding=f"workload {first[2]}") if first is not None else None


def _nodes(state: State, shape: Shape, project: str) -> int:
    found = 0
    for (_, where), pods in zip(shape.roles, shape.wanted, strict=True):
        if pods:
            found |= state.index.masks.allowed(where, project)
    return found


def _free_but_waiting(state: State, workload: Workload, now: int) -> Reason:
    """It would fit: either no pass has considered it yet, or room is reserved for somebody who has waited longer."""
    wait = state.policy.reserve_after
    if wait is not None:
        patient = [s for s in state.standings.values() if s.phase is Phase.QUEUED and s.submitted + wait <= now]
        if patient:
            first = min(patient, key=lambda s: (-s.workload.priority, s.submitted, s.workload.id)).workload.id
            if first != workload.id:
                return Reason(Code.RESERVED, {"workload": first}, binding=f"reservation of {first}")
    return Reason(Code.NOT_CONSIDERED)


def _in_room(
    state: State, standing: Standing, branch: Branch, shape: Shape, need: admit.Demand, model: str, now: int
) -> Reason | None:
    """What is short on the nodes (of one model); None when it would fit."""
    workload, index = standing.workload, state.index
    use, guarantee = branch.against(model)
    if not workload.borrow and use + need.units > guarantee:
        params: dict[str, Param] = {"project": branch.name, "used": use, "guarantee": guarantee, "asked": need.units}
        return Reason(
            Code.NO_BORROWING,
            params,
            Waiting.NEVER if need.units > guarantee else Waiting.HELPS,
            f"guarantee of {branch.name}",
        )
    ban = 0
    for room in index.masks.rooms:
        if model and room.node.model != model:
            ban |= 1 << room.pos
    draft = Draft(index)
    windows = _windows(state, workload, now)
    fits = Site(draft, workload, shape, standing.attempt + 1).place(ban | windows) is not None
    draft.back()
    if fits:
        return None
    if windows:
        fits = Site(draft, workload, shape, standing.attempt + 1).place(ban) is not None
        draft.back()
        if fits:
            return _maintenance(state, workload, windows, now)
    found = shortage.shortage(index, draft, workload, shape, ban | windows, model)
    withheld = (_maintenance(state, workload, windows, now),) if windows else ()
    parts = (*found.parts, *withheld, _rights(state, branch, need, model))
    return Reason(found.code, found.params, found.waiting, found.binding, parts)


def _rights(state: State, branch: Branch, need: admit.Demand, model: str) -> Reason:
    """Why nothing is taken back for it."""
    use, guarantee = branch.against(model)
    params: dict[str, Param] = {"project": branch.name, "used": use, "guarantee": guarantee, "asked": need.units}
    if not state.policy.evictions:
        return Reason(Code.EVICTIONS_OFF, params, Waiting.HELPS, "evictions switched off")
    if use + need.units > guarantee:
        return Reason(Code.BORROWING, params, binding=f"guarantee of {branch.name}")
    return Reason(Code.NOTHING_TO_RECLAIM, params, binding="no surplus")


def _windows(state: State, workload: Workload, now: int) -> int:
    found = 0
    for pos in bits(state.index.masks.windows):
        for window in state.index.masks.rooms[pos].node.maintenance:
            if window.end > now and (workload.limit is None or now + workload.limit > window.start):
                found |= 1 << pos
    return found


def _maintenance(state: State, workload: Workload, windows: int, now: int) -> Reason:
    first = min(
        (w.start, room.node.name, w.end)
        for pos in bits(windows)
        for room in (state.index.masks.rooms[pos],)
        for w in room.node.maintenance
        if w.end > now
    )
    params: dict[str, Param] = {
        "node": first[1],
        "start": first[0],
        "end": first[2],
        "limit_needed": max(0, first[0] - now),
        "limit": -1 if workload.limit is None else workload.limit,
    }
    return Reason(Code.MAINTENANCE, params, Waiting.HELPS, f"maintenance of {first[1]}")


def _taints_in_the_way(state: State, shape: Shape, workload: Workload) -> tuple[Reason, ...]:
    """Models whose nodes would do but for a taint: said beside what was tried, so that nobody wonders."""
    found: dict[tuple[str, str], Reason] = {}
    for (ask, where), pods in zip(shape.roles, shape.wanted, strict=True):
        if not pods or not ask.on_gpu:
            continue
        for room in state.index.masks.rooms:
            hit = shortage.taint_alone(room, where, workload.project, ask.whole)
            if hit:
                model = room.node.model
                params: dict[str, Param] = {"taint": hit, "node": room.node.name, "model": model}
                found.setdefault((model, hit), Reason(Code.TAINT, params, Waiting.NEEDS_CHANGE, f"taint {hit}"))
    return tuple(found[key] for key in sorted(found))
