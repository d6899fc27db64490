"""May a request enter: caps, per-user limits, borrowing. Figures for the reason come with every refusal."""

from __future__ import annotations

from allmende.engine.account import midnight, settled
from allmende.engine.index import Index
from allmende.engine.mask import Demand, bits
from allmende.engine.shape import Shape, role_units
from allmende.engine.state import State
from allmende.engine.tree import Branch
from allmende.model.reason import Code, Param, Reason, Waiting
from allmende.model.units import GPU
from allmende.model.workload import Workload

__all__ = ["Demand", "demand", "models_to_try", "on_hold", "over_cap", "over_daily", "over_user_limit"]


def demand(index: Index, shape: Shape, project: str) -> Demand:
    """The demand of a shape. Memory asks are counted on the smallest device that could serve them, shares of memory
    likewise."""
    units = memory = 0
    for (ask, where), pods in zip(shape.roles, shape.counts, strict=True):
        if not pods or not ask.on_gpu:
            if ask.exclusive and pods:
                largest = _node_units(index, index.masks.allowed(where, project))
                units += pods * largest
            continue
        least, slots = 0, 1
        if ask.memory or ask.slots:
            for pos in bits(index.masks.allowed(where, project)):
                room = index.masks.rooms[pos]
                sizes = [m for m in room.devices if m and m >= ask.memory]
                if ask.memory and sizes:
                    least = min(sizes) if not least else min(least, min(sizes))
                if ask.slots and room.node.slots:
                    slots = room.node.slots
        units += pods * role_units(ask, slots, least)
        memory += pods * ask.memory
    return Demand(units, memory)


def _node_units(index: Index, mask: int) -> int:
    return max((sum(index.masks.rooms[pos].sound) * GPU for pos in bits(mask)), default=0)


def models_to_try(index: Index, branch: Branch, shape: Shape, project: str) -> tuple[str, ...]:
    """GPU models to judge one by one, where a project on the path counts by model; ("",) where none does."""
    if not index.tree.by_model:
        return ("",)
    if not any(b.project.guarantee_by_model or b.project.cap_by_model for b in branch.path):
        return ("",)
    found: dict[str, None] = {}
    for ask, where in shape.roles:
        if ask.on_gpu:
            for pos in bits(index.masks.allowed(where, project)):
                found[index.masks.rooms[pos].node.model] = None
    return tuple(sorted(found)) or ("",)


def over_cap(branch: Branch, need: Demand, model: str) -> Reason | None:
    """The first level, from the project upwards, whose cap the request would pass."""
    if need.units:
        for step in branch.path:
            project = step.project
            if project.cap is not None and step.use + need.units > project.cap:
                return _cap(step, step.use, project.cap, need.units, "")
            cap = project.cap_by_model.get(model)
            if cap is not None and step.use_model.get(model, 0) + need.units > cap:
                return _cap(step, step.use_model.get(model, 0), cap, need.units, model)
    if need.memory:
        for step in branch.path:
            most = step.project.memory
            if most is not None and step.use_memory + need.memory > most:
                params: dict[str, Param] = {
                    "project": step.name,
                    "used": step.use_memory,
                    "cap": most,
                    "asked": need.memory,
                }
                if need.memory > most:
                    return Reason(Code.MEMORY_CAP_NEVER, params, Waiting.NEVER, f"memory limit of {step.name}")
                return Reason(Code.MEMORY_CAP, params, Waiting.HELPS, f"memory limit of {step.name}")
    return None


def _cap(step: Branch, used: int, cap: int, asked: int, model: str) -> Reason:
    params: dict[str, Param] = {
        "project": step.name,
        "used": used,
        "cap": cap,
        "left": max(0, cap - used),
        "asked": asked,
        "model": model,
    }
    if asked > cap:
        return Reason(Code.CAP_NEVER, params, Waiting.NEVER, f"limit of {step.name}")
    return Reason(Code.CAP, params, Waiting.HELPS, f"limit of {step.name}")


def over_user_limit(branch: Branch, workload: Workload, need: Demand, running: int, units: int) -> Reason | None:
    """The user's limit in this project that the request would pass; `running`, `units` as they stand."""
    project = branch.project
    if project.running_per_user is not None and running >= project.running_per_user:
        params: dict[str, Param] = {
            "user": workload.user,
            "project": project.name,
            "running": running,
            "limit": project.running_per_user,
        }
        return Reason(Code.USER_RUNNING, params, binding=f"user limit of {project.name}")
    if project.units_per_user is not None and units + need.units > project.units_per_user:
        most = project.units_per_user
        params = {"user": workload.user, "project": project.name, "used": units, "limit": most, "asked": need.units}
        return Reason(
            Code.USER_UNITS,
            params,
            Waiting.NEVER if need.units > most else Waiting.HELPS,
            f"user limit of {project.name}",
        )
    return None


def over_daily(state: State, branch: Branch, now: int) -> Reason | None:
    """The first level that has used up its local day's GPU time."""
    for step in branch.path:
        limit = step.project.daily
        account = state.accounts.get(step.name)
        if limit is None or account is None:
            continue
        spent = settled(account, step.use - step.held, now, state.policy).today
        if spent >= limit:
            until = midnight(now, state.policy)
            params: dict[str, Param] = {"project": step.name, "spent": spent, "limit": limit, "until": until}
            return Reason(Code.DAILY_LIMIT, params, binding=f"daily limit of {step.name}")
    return None


def on_hold(branch: Branch) -> str:
    """The project on the path that is on hold, if any."""
    return next((step.name for step in branch.path if step.project.hold), "")
