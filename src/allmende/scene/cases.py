"""The neutral case layout (000-layout.yaml of a case folder), rewritten field by field into our own schema.

Both layouts then go the same way: this module builds YAML nodes of our schema, each standing where its origin stood,
and `read.scene` reads them. What has no counterpart is collected as a gap, never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import yaml

from allmende.model.mistake import MistakeCode
from allmende.model.quantity import quantity
from allmende.scene.cell import Cell, fields, listed, scalar
from allmende.scene.deed import deeds
from allmende.scene.read import VERSION, scene
from allmende.scene.rule import Rules, rules
from allmende.scene.value import Scene

Nodes = dict[str, yaml.Node]
Turn: TypeAlias = "str | Callable[[Cell, Nodes, Writer], None]"
"""What becomes of a field: another name, or a function that writes what it means."""

GIVEN = ("nodes", "nodes_many", "queues", "running", "running_many", "levels", "note", "timezone")


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


class CaseReader:
    """Rewrites one case that plays out in time."""

    def __init__(self, top: Cell, path: str) -> None:
        self.top = top
        self.path = path
        self.gaps: list[str] = []
        self.unjudged: list[str] = []
        self.queues: dict[str, yaml.Node] = {}
        self.given = top.entries()["given"].entries() if "given" in top.entries() else {}
        self.by_name = "name" in _selected(top.node)
        self.last_report: yaml.Node | None = None

    def scene(self) -> Scene:
        """The case as a scene; `gaps` of it name what was not understood."""
        case = self.top.entries()
        policy: Rules = rules(case["rules"]) if "rules" in case else Rules()
        self.gaps += policy.gaps
        self.gaps += [f"field {name} of what is given" for name in self.given if name not in GIVEN]
        top: Nodes = {
            "version": scalar(str(VERSION), self.top.node),
            "name": case["id"].node,
            "cluster": self._cluster(),
            "running": listed(self._running(), self.top.node),
            "events": listed(self._events(case.get("when")), self.top.node),
        }
        if "symptom" in case:
            top["about"] = case["symptom"].node
        if "timezone" in self.given:
            top["timezone"] = self.given["timezone"].node
        top["policy"] = fields(policy.policy, self.top.node)
        top["owners"] = fields(policy.owners, self.top.node)
        top["expect"] = fields(self._expect(case.get("then")), self.top.node)
        top["projects"] = listed(self._queues(policy.strict), self.top.node)
        return scene(Cell(fields(top, self.top.node)), self.path, self.gaps, self.unjudged, strict=False)

    # -- given --------------------------------------------------------------------------------------------------

    def _cluster(self) -> yaml.Node:
        nodes = [self._node(item) for name in ("nodes", "nodes_many") for item in self._items(name)]
        cluster: Nodes = {"nodes": listed(nodes, self.top.node)}
        if "levels" in self.given:
            cluster["levels"] = self.given["levels"].node
        return fields(cluster, self.top.node)

    def _node(self, cell: Cell) -> yaml.MappingNode:
        node = Writer(self.gaps, "node").turned(cell, NODE)
        return _with_name_label(node) if self.by_name else node

    def _items(self, name: str) -> list[Cell]:
        return self.given[name].items() if name in self.given else []

    def _queues(self, strict: Iterable[str]) -> list[yaml.Node]:
        """The queues of the case, those that are strict by rule marked, and those that are only mentioned."""
        declared = [Writer(self.gaps, "queue").turned(item, QUEUE) for item in self._items("queues")]
        found: dict[str, yaml.Node] = {}
        for node in declared:
            name = next((value.value for key, value in node.value if key.value == "name"), "")
            found[name if name not in found else f"{name} again"] = node
        for name, like in self.queues.items():
            found.setdefault(name, fields({"name": scalar(name, like)}, like))
        wanted = set(strict)
        for name, queue in found.items():
            if name in wanted or "*" in wanted:
                queue.value.append((scalar("strict", queue), scalar(True, queue)))
        return list(found.values())

    def _workload(self, cell: Cell) -> yaml.MappingNode:
        given = cell.entries()
        if "queue" in given:
            self.queues.setdefault(given["queue"].text(), given["queue"].node)
        return Writer(self.gaps, "workload").turned(cell, WORKLOAD)

    def _running(self) -> list[yaml.Node]:
        found: list[yaml.Node] = [self._workload(item) for item in self._items("running")]
        for place, item in enumerate(self._items("running_many"), 1):
            found += self._many(item, f"r{place}")
        return found

    def _many(self, cell: Cell, name: str) -> list[yaml.Node]:
        """`{count, gpus, node: PREFIX-nodes}`: so many one-pod workloads, spread evenly over the nodes of a prefix."""
        given = cell.entries()
        prefix = given["node"].text().removesuffix("-nodes")
        many = [n.entries() for n in self._items("nodes_many") if n.entries()["prefix"].text() == prefix]
        if not many:
            raise given["node"].mistake(MistakeCode.UNKNOWN_NAME, "name the prefix of nodes_many, as PREFIX-nodes")
        nodes, count = many[0]["count"].count(1), given["count"].count(1)
        found: list[yaml.Node] = []
        for i in range(nodes):
            here = count // nodes + (i < count % nodes)
            if here:
                entry = {k: v.node for k, v in given.items() if k not in ("count", "node")}
                entry |= {"name": scalar(f"{name}-{i + 1}", cell.node), "count": scalar(here, cell.node)}
                entry["node"] = scalar(f"{prefix}-{i + 1}", cell.node)
                found.append(self._workload(Cell(fields(entry, cell.node), cell.path)))
        return found

    # -- when ---------------------------------------------------------------------------------------------------

    def _events(self, when: Cell | None) -> list[yaml.Node]:
        return [node for item in (when.items() if when else []) for node in self._event(item)]

    def _event(self, cell: Cell) -> list[yaml.Node]:
        given = cell.entries()
        time: Nodes = {name: given[name].node for name in ("at", "at_time", "every", "from", "to") if name in given}
        acts = [name for name in given if name not in (*time, "note", "other", "drained", "as")]
        made: list[Nodes] = []
        for name in acts:
            made += self._act(name, given)
        if "other" in given and not acts:
            made += self._other(given["other"])
        return [fields({**time, **each}, cell.node) for each in made]

    def _act(self, name: str, given: dict[str, Cell]) -> list[Nodes]:
        cell = given[name]
        note = given["note"].text().casefold() if "note" in given else ""
        match name:
            case "submit" | "submit_many":
                return [{"submit": self._workload(cell)}]
            case "node":
                node = self._node(cell)
                if "drained" in given and given["drained"].flag():
                    node.value.append((scalar("drained", node), scalar(True, node)))
                return [{"node": node}]
            case "queue":
                return [{"project": Writer(self.gaps, "queue").turned(cell, QUEUE)}]
            case "end":
                return [{"end": item.node} for item in cell.one_or_more()]
            case "cancel":
                if "no " in note and "report" in note:
                    silent = fields({"name": cell.node, "unreported": scalar(True, cell.node)}, cell.node)
                    return [{"cancel": silent}]
                return [{"cancel": item.node} for item in cell.one_or_more()]
            case "resize":
                kept = {k: v.node for k, v in cell.entries().items() if k != "note"}
                return [{"resize": fields(kept, cell.node)}]
            case "restart":
                order = [word.strip(" .") for word in note.partition(" as ")[2].split(",") if word.strip()]
                if order:
                    return [{"restart": listed((scalar(word, cell.node) for word in order), cell.node)}]
                return [{"restart": scalar(True, cell.node)}]
        self.gaps.append(MISSING.get(name) or f"event {name}")
        return []

    def _other(self, cell: Cell) -> list[Nodes]:
        """What a sentence says happens."""
        made = deeds(cell.text(), cell.node, self.last_report)
        if made is None:
            self.gaps.append(f"sentence: {cell.text()}")
            return []
        for each in made:
            self.last_report = each.get("report", self.last_report)
        return made

    # -- then ---------------------------------------------------------------------------------------------------

    def _expect(self, then: Cell | None) -> Nodes:
        into: Nodes = {}
        for name, cell in then.entries().items() if then else ():
            match name:
                case "checks" | "one_of":
                    items = [Writer(self.unjudged, "check").turned(item, CHECK) for item in cell.items()]
                    into[name] = listed(items, cell.node)
                case "evicted" | "evicted_pods" | "never" | "numbers" | "tolerance" | "events":
                    into[name] = cell.node
                case "warning_at_setup":
                    into["warnings_at_setup"] = cell.node
                case "warning_at_change":
                    into["warnings_at_change"] = cell.node
                case _:
                    self.unjudged.append(f"expectation {name}")
        return into


def _selected(node: yaml.Node) -> set[str]:
    """Every label key that some `select` of the case names."""
    found: set[str] = set()
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == "select" and isinstance(value, yaml.MappingNode):
            found |= {each.value for each, _ in value.value}
        found |= _selected(value)
    for item in node.value if isinstance(node, yaml.SequenceNode) else ():
        found |= _selected(item)
    return found


def _with_name_label(node: yaml.MappingNode) -> yaml.MappingNode:
    """A node that can be selected by its name."""
    entries = {key.value: value for key, value in node.value}
    labels = {key.value: value for key, value in entries["labels"].value} if "labels" in entries else {}
    labels.setdefault("name", entries["name"])
    return fields({**entries, "labels": fields(labels, node)}, node)
