"""The fields of the neutral case layout, and what becomes of each in our own schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import yaml

from allmende.model.quantity import quantity
from allmende.scene.cell import Cell, fields, listed, scalar

Nodes = dict[str, yaml.Node]
Turn: TypeAlias = "str | Callable[[Cell, Nodes, Writer], None]"
"""What becomes of a field: another name, or a function that writes what it means."""


def _taken(_cell: Cell, _into: Nodes, _writer: Writer) -> None:
    """A field that says nothing to the scene: what a cluster reports, or a remark."""


def _gib(cell: Cell, into: Nodes, _: Writer) -> None:
    into["memory"] = scalar(str(int(quantity(cell.text(), cell.where) * 2**30)), cell.node)


MEMORY: dict[str, Turn] = {"mem_gib": _gib, "gpu_mem_mib": "gpu_memory"}

NODE: dict[str, Turn] = {
    **{name: name for name in ("name", "count", "gpus", "model", "cpus", "max_pods", "labels", "state", "gpu_ids")},
    **{name: name for name in ("gpu_uuids", "maintenance", "elastic", "capacity", "pool")},
    **MEMORY,
    "taint": "taints",
    "shared": "slots",
    "max_tenants_per_gpu": "tenants",
    "set_aside_for": "only_for",
    "lost_gpu_ids": "lost_gpus",
    "prefix": "name",
    "listed": _taken,
    "renamed": _taken,
    "used": _taken,
}

QUEUE: dict[str, Turn] = {
    **{name: name for name in ("name", "weight", "priority", "parent", "hold", "past_use", "daily_gpu_hours")},
    "guaranteed": "guarantee",
    "max": "cap",
    "max_by_model": "cap_by_model",
    "guaranteed_by_model": "guarantee_by_model",
    "max_running_per_user": "running_per_user",
    "max_gpus_per_user": "gpus_per_user",
    "max_gpu_mem_mib": "gpu_memory",
    "budget_gpu_hours": "budget_gpu_hours",
}

POD: dict[str, Turn] = {
    **{name: name for name in ("gpus", "cpus", "distinct_gpus", "slots", "added_at_creation", "name")},
    **MEMORY,
    "shares": "slots",
}


def _containers(field: str) -> Callable[[Cell, Nodes, Writer], None]:
    def turn(cell: Cell, into: Nodes, writer: Writer) -> None:
        into[field] = listed((writer.of("container").turned(item, POD) for item in cell.items()), cell.node)

    return turn


PLACED: dict[str, Turn] = {
    **POD,
    **{name: name for name in ("pods", "model", "select", "tolerates", "exclusive")},
    "containers": _containers("containers"),
    "init_containers": _containers("init_containers"),
    "claims": "claims",
}
ROLE: dict[str, Turn] = {**PLACED, "min": "least"}


def _roles(cell: Cell, into: Nodes, writer: Writer) -> None:
    into["roles"] = listed((writer.of("role").turned(item, ROLE) for item in cell.items()), cell.node)


WORKLOAD: dict[str, Turn] = {
    **PLACED,
    **{name: name for name in ("gang_min", "user", "priority", "same", "same_preferred", "spread", "limit", "runs")},
    **{name: name for name in ("grace", "interactive", "borrow", "checkpoint_every", "after", "kind", "count")},
    "queue": "project",
    "roles": _roles,
    "throttle": "throttle",
    "at_once": "throttle",
    "node": "on",
    "started": "started",
    "ends_at": "ends",
    "gpu_ids": "devices",
    "on_gpus": "on_gpus",
}

CHECK: dict[str, Turn] = {
    name: name
    for name in (
        "at", "running", "pending", "placement", "usage", "usage_added", "free", "growth_pending", "queue_positions",
        "on_gpus",
    )
}  # fmt: skip

MISSING = {
    "mig": "MIG partitions",
    "mig_per_gpu": "MIG partitions",
    "partitions": "MIG partitions",
    "mig_memory_mib": "MIG partitions",
    "recorded_layout": "MIG partitions",
    "budget": "budgets",
    "budgets": "budgets",
    "empty_since": "procurement",
    "checkpoint": "checkpoints of running work",
    "submit_file": "workload files",
}
"""Fields of the layout, and the part of the product that would act on them and is not there yet."""


class Writer:
    """Writes fields of one object of the layout as fields of ours; what it does not know becomes a gap."""

    def __init__(self, gaps: list[str], what: str) -> None:
        self.gaps = gaps
        self.what = what

    def of(self, what: str) -> Writer:
        """A writer of a part; its gaps are the same list."""
        return Writer(self.gaps, what)

    def turned(self, cell: Cell, table: dict[str, Turn]) -> yaml.MappingNode:
        into: Nodes = {}
        for name, value in cell.entries().items():
            turn = table.get(name)
            if turn is None:
                self.gaps.append(MISSING.get(name) or f"field {name} of a {self.what}")
            elif isinstance(turn, str):
                into[turn] = value.node
            else:
                turn(value, into, self)
        return fields(into, cell.node)
