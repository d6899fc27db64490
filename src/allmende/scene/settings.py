"""Nodes, projects and the policy of a scene, read from their fields."""

from __future__ import annotations

from fractions import Fraction

from msgspec.structs import replace

from allmende.model import advice
from allmende.model.cluster import Capacity, Device, Node, NodeState, Window
from allmende.model.mistake import MistakeCode
from allmende.model.policy import Policy
from allmende.model.quantity import cpus, memory, mib, quantity
from allmende.model.span import HOUR
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.scene.cell import Cell, fields, listed

NODE = (
    "name", "count", "gpus", "model", "gpu_memory", "cpus", "memory", "max_pods", "labels", "taints", "state", "slots",
    "tenants", "closed", "only_for", "maintenance", "pool", "capacity", "elastic", "lost_gpus", "gpu_ids", "gpu_uuids",
)  # fmt: skip
"""Fields of a node."""

PROJECT = (
    "name", "parent", "guarantee", "cap", "weight", "priority", "guarantee_by_model", "cap_by_model",
    "running_per_user", "gpus_per_user", "gpu_memory", "daily_gpu_hours", "strict", "hold", "past_use",
    "budget_gpu_hours",
)  # fmt: skip
"""Fields of a project; amounts are GPUs, use is GPU-hours."""

POLICY = (
    "evictions", "reserve_after", "not_ready_after", "keep_survivors", "bind_within", "close_on_gpu_loss",
    "fair_share_eviction", "borrowers_evict", "fair_order", "half_life", "utc_offset", "reservations", "search_steps",
)  # fmt: skip
"""Fields of a policy."""

GPUS_AT_MOST = 1024
"""GPUs of one node; more is taken for a mistake."""


def merged(before: dict[str, Cell], change: dict[str, Cell]) -> dict[str, Cell]:
    """The fields of a node or project after a change: labels are merged, lost GPUs stay lost, the rest is replaced."""
    after = {**before, **change}
    if "labels" in before and "labels" in change:
        both = {**before["labels"].entries(), **change["labels"].entries()}
        node = fields({name: cell.node for name, cell in both.items()}, change["labels"].node)
        after["labels"] = Cell(node, change["labels"].path)
    if "lost_gpus" in before and "lost_gpus" in change:
        items = [*before["lost_gpus"].items(), *change["lost_gpus"].items()]
        after["lost_gpus"] = Cell(
            listed((item.node for item in items), change["lost_gpus"].node), change["lost_gpus"].path
        )
    return after


def node(name: str, given: dict[str, Cell]) -> Node:
    """A node from its fields. Raises Mistake where a value has no meaning."""
    labels = {key: cell.text() for key, cell in given["labels"].entries().items()} if "labels" in given else {}
    return Node(
        name,
        devices=_devices(given),
        model=given["model"].name() if "model" in given else "",
        cpu=cpus(given["cpus"].text(), given["cpus"].where) if "cpus" in given else None,
        ram=memory(given["memory"].text(), given["memory"].where) if "memory" in given else None,
        max_pods=given["max_pods"].count() if "max_pods" in given else None,
        labels=tuple(sorted(labels.items())),
        taints=tuple(cell.text() for cell in given["taints"].one_or_more()) if "taints" in given else (),
        state=NodeState(given["state"].choice(NodeState)) if "state" in given else NodeState.READY,
        slots=given["slots"].count(1) if "slots" in given else 0,
        tenants=given["tenants"].count() if "tenants" in given else 0,
        closed=given["closed"].text() if "closed" in given else "",
        only_for=given["only_for"].name() if "only_for" in given else "",
        maintenance=_windows(given["maintenance"]) if "maintenance" in given else (),
        pool=given["pool"].name() if "pool" in given else "",
        capacity=Capacity(given["capacity"].choice(Capacity)) if "capacity" in given else Capacity.OWNED,
        elastic=given["elastic"].flag() if "elastic" in given else False,
    )


def _devices(given: dict[str, Cell]) -> tuple[Device, ...]:
    """A node's GPUs."""
    ids = [cell.count() for cell in given["gpu_ids"].items()] if "gpu_ids" in given else None
    many = given["gpus"].count() if "gpus" in given else len(ids or ())
    if many > GPUS_AT_MOST:
        raise given["gpus"].mistake(MistakeCode.ABSURD, f"give a node at most {GPUS_AT_MOST} GPUs")
    if ids is None:
        ids = list(range(many))
    elif len(set(ids)) != many:
        raise given["gpu_ids"].mistake(MistakeCode.CONTRADICTION, f"list {many} different ids", "does not fit gpus")
    size = mib(given["gpu_memory"].text(), given["gpu_memory"].where) if "gpu_memory" in given else 0
    uuids = [cell.text() for cell in given["gpu_uuids"].items()] if "gpu_uuids" in given else []
    lost = {cell.count() for cell in given["lost_gpus"].items()} if "lost_gpus" in given else set()
    if unknown := sorted(lost - set(ids)):
        do = f"name some of its GPUs, {', '.join(map(str, ids)) or 'of which it has none'}"
        raise given["lost_gpus"].mistake(MistakeCode.UNKNOWN_NAME, do, "names no GPU of the node", unknown[0])
    return tuple(
        Device(index, size, index not in lost, uuids[place] if place < len(uuids) else "")
        for place, index in enumerate(ids)
    )


def _windows(cell: Cell) -> tuple[Window, ...]:
    found = []
    for item in cell.one_or_more():
        given = item.mapping(("from", "to"), ("from", "to"))
        window = Window(given["from"].moment(), given["to"].moment())
        if window.end <= window.start:
            raise item.mistake(MistakeCode.CONTRADICTION, "let it end after it begins", "ends before it begins")
        found.append(window)
    return tuple(found)


def project(name: str, given: dict[str, Cell]) -> Project:
    """A project from its fields. Raises Mistake where a value has no meaning."""
    guarantee = given.get("guarantee")
    return Project(
        name,
        parent=given["parent"].name() if "parent" in given else "",
        guarantee=advice.guarantee(guarantee.text(), guarantee.where) if guarantee else 0,
        cap=given["cap"].amount() if "cap" in given and not given["cap"].is_null else None,
        weight=_weight(given["weight"]) if "weight" in given else Fraction(1),
        priority=given["priority"].integer() if "priority" in given else 0,
        guarantee_by_model=_by_model(given.get("guarantee_by_model")),
        cap_by_model=_by_model(given.get("cap_by_model")),
        running_per_user=given["running_per_user"].count() if "running_per_user" in given else None,
        units_per_user=given["gpus_per_user"].amount() if "gpus_per_user" in given else None,
        memory=mib(given["gpu_memory"].text(), given["gpu_memory"].where) if "gpu_memory" in given else None,
        daily=_gpu_hours(given["daily_gpu_hours"]) if "daily_gpu_hours" in given else None,
        strict=given["strict"].flag() if "strict" in given else False,
        hold=given["hold"].flag() if "hold" in given else False,
        past_use=_gpu_hours(given["past_use"]) if "past_use" in given else 0,
    )


def _weight(cell: Cell) -> Fraction:
    exact = quantity(cell.text(), cell.where, "write a number from 0, such as 1 or 2.5")
    if exact < 0:
        raise cell.mistake(MistakeCode.NEGATIVE, "write a number from 0, such as 1 or 2.5")
    return exact


def _by_model(cell: Cell | None) -> dict[str, int]:
    return {model: value.amount() for model, value in cell.entries().items()} if cell else {}


def _gpu_hours(cell: Cell) -> int:
    """GPU units x microseconds of an amount of GPU-hours, rounded down."""
    exact = quantity(cell.text(), cell.where, "write GPU-hours such as 24 or 0.5") * GPU * HOUR
    if exact < 0:
        raise cell.mistake(MistakeCode.NEGATIVE, "write GPU-hours from 0")
    return int(exact)


def policy(cell: Cell | None) -> Policy:
    """A policy from its fields, those that are absent by default. Raises Mistake where a value has no meaning."""
    given = cell.mapping(POLICY) if cell else {}
    known: dict[str, object] = {}
    for name in ("evictions", "close_on_gpu_loss", "fair_share_eviction", "borrowers_evict"):
        if name in given:
            known[name] = given[name].flag()
    for name in ("reserve_after", "not_ready_after", "keep_survivors", "bind_within"):
        if name in given:
            known[name] = given[name].span()
    for name in ("reservations", "search_steps"):
        if name in given:
            known[name] = given[name].count()
    if "utc_offset" in given:
        known["utc_offset"] = given["utc_offset"].moment()
    life = given.get("half_life")
    if life is not None or ("fair_order" in given and given["fair_order"].flag()):
        known["half_life"] = advice.half_life(life.text() if life else None, life.where if life else "half_life")
    return replace(Policy(), **known)
