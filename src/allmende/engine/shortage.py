"""Which resource is short, and how much of it is there."""

from __future__ import annotations

from allmende.engine.draft import Draft
from allmende.engine.index import Index
from allmende.engine.mask import bits, label
from allmende.engine.place import Site
from allmende.engine.room import PLENTY, Room, slots
from allmende.engine.shape import Shape
from allmende.model.reason import Code, Param, Reason, Waiting
from allmende.model.request import Ask, Where
from allmende.model.units import GPU
from allmende.model.workload import Workload

OF_GPUS = frozenset({Code.GPUS, Code.ONE_NODE, Code.SHARE, Code.GPU_MEMORY, Code.SLOTS})
"""What the figures of a gang's places say already."""


def never(index: Index, shape: Shape, project: str) -> Reason | None:
    """Why the request could not run on the whole cluster standing empty; None where it could."""
    for (ask, where), pods in zip(shape.roles, shape.counts, strict=True):
        if not pods:
            continue
        rooms = [index.masks.rooms[pos] for pos in bits(index.masks.allowed(where, project))]
        found = (
            _no_node(index, where, project)
            if not rooms
            else _never_on_one(ask, rooms) or _never_in_all(ask, pods, rooms)
        )
        if found is not None:
            return found
    return None


def _no_node(index: Index, where: Where, project: str) -> Reason:
    """No node satisfies the standing constraints: which of them is to blame."""
    rooms = index.masks.rooms
    if not rooms:
        return Reason(Code.NODES_CLOSED, {"nodes": 0, "node": "", "why": "no node"}, Waiting.NEEDS_CHANGE, "nodes")
    if where.models and not any(room.node.model in where.models for room in rooms):
        return Reason(Code.MODEL, {"model": ", ".join(where.models)}, Waiting.NEEDS_CHANGE, "model")
    tainted = [(room, hit) for room in rooms if (hit := taint_alone(room, where, project, 0))]
    if tainted:
        room, hit = tainted[0]
        params: dict[str, Param] = {"taint": hit, "node": room.node.name, "model": room.node.model}
        return Reason(Code.TAINT, params, Waiting.NEEDS_CHANGE, f"taint {hit}")
    labels = ", ".join(f"{key}={value}" for key, value in where.select)
    return Reason(Code.LABELS, {"labels": labels}, Waiting.NEEDS_CHANGE, "labels")


def taint_alone(room: Room, where: Where, project: str, whole: int) -> str:
    """The taint that alone keeps a pod off a node; empty where something else does too, or nothing."""
    node = room.node
    hit = next((t for t in node.taints if t not in where.tolerates and t.split("=")[0] not in where.tolerates), "")
    if not hit or (where.models and node.model not in where.models) or (node.only_for and node.only_for != project):
        return ""
    if any(label(room, key) != value for key, value in where.select) or sum(room.sound) < whole:
        return ""
    return hit


def _never_on_one(ask: Ask, rooms: list[Room]) -> Reason | None:
    """One pod is larger than any node."""
    if ask.whole:
        most = (
            max(len(room.node.devices) for room in rooms if not room.node.slots)
            if any(not r.node.slots for r in rooms)
            else 0
        )
        if ask.whole > most:
            return Reason(Code.GPU_NEVER, {"asked": ask.whole, "most": most}, Waiting.NEVER, "GPUs of one node")
    if ask.memory:
        sizes = [device.memory for room in rooms for device in room.node.devices]
        if not any(sizes):
            node = next((room.node.name for room in rooms if room.node.devices), rooms[0].node.name)
            return Reason(
                Code.GPU_MEMORY_UNKNOWN, {"asked": ask.memory, "node": node}, Waiting.NEEDS_CHANGE, "GPU memory"
            )
        if ask.memory > max(sizes):
            return Reason(
                Code.GPU_MEMORY_NEVER, {"asked": ask.memory, "largest": max(sizes)}, Waiting.NEVER, "GPU memory"
            )
    if (ask.share or ask.memory) and not any(room.node.devices and not room.node.slots for room in rooms):
        return Reason(Code.GPU_NEVER, {"asked": 1, "most": 0}, Waiting.NEVER, "GPUs")
    if ask.slots:
        most = max(
            (room.node.slots * (1 if ask.distinct else len(room.node.devices)) if room.node.slots else 0)
            for room in rooms
        )
        different = max((len(room.node.devices) for room in rooms if room.node.slots), default=0)
        if (ask.distinct and ask.slots > different) or (not ask.distinct and ask.slots > most):
            return Reason(
                Code.SLOTS,
                {"asked": ask.slots, "free": different if ask.distinct else most},
                Waiting.NEVER,
                "shared slots",
            )
    cpus = [PLENTY if room.node.cpu is None else room.node.cpu for room in rooms]
    if ask.cpu > max(cpus):
        return Reason(Code.CPU_NEVER, {"asked": ask.cpu, "most": max(cpus)}, Waiting.NEVER, "CPUs")
    rams = [PLENTY if room.node.ram is None else room.node.ram for room in rooms]
    if ask.ram > max(rams):
        return Reason(Code.RAM_NEVER, {"asked": ask.ram, "most": max(rams)}, Waiting.NEVER, "memory")
    return None


def _never_in_all(ask: Ask, pods: int, rooms: list[Room]) -> Reason | None:
    """All pods together need more GPUs than there are."""
    if not ask.whole:
        return None
    total = sum(len(room.node.devices) // ask.whole for room in rooms if not room.node.slots)
    if pods > total:
        gpus = sum(len(room.node.devices) for room in rooms if not room.node.slots)
        params: dict[str, Param] = {"pods": pods, "asked": pods * ask.whole, "total": gpus, "places": total}
        return Reason(Code.TOTAL_NEVER, params, Waiting.NEVER, "GPUs in all")
    return None


def shortage(index: Index, draft: Draft, workload: Workload, shape: Shape, ban: int, model: str) -> Reason:
    """What is short now, for a request that does not fit: per pod first, then for the pods together."""
    masks = index.masks
    needed = sum(shape.counts)
    detail: Reason | None = None
    for (ask, where), pods in sorted(
        zip(shape.roles, shape.counts, strict=True), key=lambda item: not item[0][0].on_gpu
    ):
        if not pods:
            continue
        allowed = masks.allowed(where, workload.project) & ~ban
        usable = allowed & masks.open
        named = model or "/".join(where.models)
        if not usable:
            detail = _closed([masks.rooms[pos] for pos in bits(allowed)])
        else:
            detail = one_pod(ask, [masks.rooms[pos] for pos in bits(usable)], named)
        if detail is not None:
            break
    if needed == 1 and detail is not None:
        return detail
    if shape.level and needed > 1:
        return _domain(index, draft, workload, shape, ban, detail)
    placed = placeable(draft, workload, shape, ban)
    named = model or "/".join(m for m in shape.roles[0][1].models)
    parts = (detail,) if detail is not None else _next_short(index, draft, workload, shape, ban, named)
    if shape.spread:
        params: dict[str, Param] = {"level": shape.spread, "needed": needed, "have": placed}
        return Reason(Code.SPREAD, params, binding=shape.spread, parts=parts)
    return Reason(
        Code.GANG, {"needed": needed, "placeable": placed, "model": named}, binding="places together", parts=parts
    )


def _closed(rooms: list[Room]) -> Reason:
    first = min((room for room in rooms), key=lambda room: room.pos, default=None)
    why = "" if first is None else first.node.closed or first.node.state.value
    params: dict[str, Param] = {"nodes": len(rooms), "node": "" if first is None else first.node.name, "why": why}
    return Reason(Code.NODES_CLOSED, params, Waiting.NEEDS_CHANGE, "nodes")


def one_pod(ask: Ask, rooms: list[Room], model: str) -> Reason | None:
    """Why no node takes one pod: the first of GPU, CPU, memory, pod slots that no node left by the ones before has."""
    if any(slots(room, ask, 1) for room in rooms):
        return None
    bare = Ask(ask.whole, ask.share, ask.memory, ask.slots, ask.distinct)
    left = [room for room in rooms if slots(_unbounded(room), bare, 1)] if ask.on_gpu else rooms
    if ask.exclusive:
        room = next((room for room in rooms if room.count[0]), rooms[0])
        by = next((pod.workload for pod in room.pods.values()), "")
        return Reason(Code.EXCLUSIVE, {"node": room.node.name, "by": by}, binding="whole node")
    alone = [room for room in rooms if any(room.alone)]
    if alone and len(alone) == len(rooms):
        by = next((pod.workload for pod in alone[0].pods.values()), "")
        return Reason(Code.EXCLUSIVE, {"node": alone[0].node.name, "by": by}, binding="whole node")
    if not left:
        return _gpu(ask, rooms, model)
    return _bound(ask, left) or Reason(
        Code.NODES_CLOSED, {"nodes": len(rooms), "node": rooms[0].node.name, "why": ""}, binding="nodes"
    )


def _unbounded(room: Room) -> Room:
    """The room with plenty of everything but GPUs."""
    copy = room.fork()
    copy.node = type(room.node)(
        room.node.name, room.node.devices, room.node.model, slots=room.node.slots, tenants=room.node.tenants
    )
    return copy


def _gpu(ask: Ask, rooms: list[Room], model: str) -> Reason:
    if ask.whole:
        whole = [room for room in rooms if not room.node.slots]
        free = sum(room.free for room in whole)
        most = max((room.free for room in whole), default=0)
        if ask.whole > 1:
            return Reason(
                Code.ONE_NODE,
                {"asked": ask.whole, "most": most, "free": free, "model": model},
                binding="GPUs on one node",
            )
        return Reason(Code.GPUS, {"asked": ask.whole, "free": free, "model": model}, binding="GPUs")
    if ask.memory:
        most = max((room.left_memory(d) for room in rooms for d in range(len(room.sound))), default=0)
        if all(not memory for room in rooms for memory in room.devices):
            return Reason(
                Code.GPU_MEMORY_UNKNOWN,
                {"asked": ask.memory, "node": rooms[0].node.name},
                Waiting.NEEDS_CHANGE,
                "GPU memory",
            )
        return Reason(Code.GPU_MEMORY, {"asked": ask.memory, "most": most}, binding="GPU memory")
    if ask.slots:
        part = {room: GPU // room.node.slots for room in rooms if room.node.slots}
        free = sum(room.left(d) // part[room] for room in part for d in range(len(room.sound)))
        if ask.distinct and free >= ask.slots:
            have = max(sum(room.left(d) >= part[room] for d in range(len(room.sound))) for room in part)
            return Reason(Code.DISTINCT, {"asked": ask.slots, "have": have}, binding="different GPUs")
        return Reason(Code.SLOTS, {"asked": ask.slots, "free": free}, binding="shared slots")
    most = max((room.left(d) for room in rooms for d in range(len(room.sound))), default=0)
    return Reason(Code.SHARE, {"asked": ask.share, "most": most}, binding="share of a GPU")


def _bound(ask: Ask, rooms: list[Room]) -> Reason | None:
    """CPU, memory or pod slots: the first that is short on every node that has the GPUs."""
    bounds = {room: room.bounds() for room in rooms}
    cpu_ok = [room for room in rooms if bounds[room][0] >= ask.cpu]
    if not cpu_ok:
        best = max(rooms, key=lambda room: (bounds[room][0], -room.pos))
        return Reason(Code.CPU, {"asked": ask.cpu, "most": bounds[best][0], "node": best.node.name}, binding="CPUs")
    ram_ok = [room for room in cpu_ok if bounds[room][1] >= ask.ram]
    if not ram_ok:
        best = max(cpu_ok, key=lambda room: (bounds[room][1], -room.pos))
        return Reason(Code.RAM, {"asked": ask.ram, "most": bounds[best][1], "node": best.node.name}, binding="memory")
    if not any(bounds[room][2] for room in ram_ok):
        return Reason(Code.POD_SLOTS, {"asked": 1, "free": 0, "node": ram_ok[0].node.name}, binding="pod slots")
    return None


def placeable(draft: Draft, workload: Workload, shape: Shape, ban: int) -> int:
    """How many pods of the minimum find a place at once."""
    mark = draft.mark
    site = Site(draft, workload, shape, 1)
    pods = site.as_many(ban)
    draft.back(mark)
    return len(pods)


def _domain(index: Index, draft: Draft, workload: Workload, shape: Shape, ban: int, detail: Reason | None) -> Reason:
    """No single domain of the level holds all pods: the best one and what it holds."""
    best, most = "", 0
    for path, domain in index.masks.domains(shape.level).items():
        placed = placeable(draft, workload, shape, ban | (index.masks.every & ~domain))
        if placed > most or not best:
            best, most = "/".join(path), placed
    params: dict[str, Param] = {"level": shape.level, "needed": sum(shape.counts), "domain": best, "placeable": most}
    return Reason(Code.DOMAIN, params, binding=f"one {shape.level}", parts=() if detail is None else (detail,))


def _next_short(
    index: Index, draft: Draft, workload: Workload, shape: Shape, ban: int, model: str
) -> tuple[Reason, ...]:
    """What the first pod lacks that found no place after the others had theirs."""
    mark = draft.mark
    site = Site(draft, workload, shape, 1)
    pods = site.as_many(ban)
    found: tuple[Reason, ...] = ()
    for role, ((ask, where), wanted) in enumerate(zip(shape.roles, shape.counts, strict=True)):
        if sum(pod.role == role for pod in pods) < wanted:
            usable = index.masks.allowed(where, workload.project) & index.masks.open & ~ban
            lack = one_pod(ask, [index.masks.rooms[pos] for pos in bits(usable)], model) if usable else None
            found = () if lack is None or lack.code in OF_GPUS else (lack,)
            break
    draft.back(mark)
    return found
