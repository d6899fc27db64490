"""The neutral case layout (000-layout.yaml of a case folder), rewritten field by field into our own schema.

Both layouts then go the same way: this module builds YAML nodes of our schema, each standing where its origin stood,
and `read.scene` reads them. What has no counterpart is collected as a gap, never dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import yaml

from allmende.model.mistake import MistakeCode
from allmende.scene.cell import Cell, fields, listed, scalar
from allmende.scene.deed import deeds
from allmende.scene.layout import CHECK, MISSING, NODE, QUEUE, WORKLOAD, Nodes, Writer
from allmende.scene.read import VERSION, scene
from allmende.scene.rule import Rules, rules
from allmende.scene.value import Scene

GIVEN = ("nodes", "nodes_many", "queues", "running", "running_many", "levels", "note", "timezone")


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
        given = [item for name in ("nodes", "nodes_many") for item in self._items(name)]
        nodes = [self._node(item) for item in given if not _is_gone(item)]
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
            name = name if isinstance(name, str) else ""
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
        if "note" in given and not _understood(given["note"].text(), acts):
            self.gaps.append(f"sentence: {given['note'].text()}")
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

    def _repeat(self, cell: Cell, into: Nodes) -> None:
        """`{times, vary, same_outcome}` with what varies in words; hash seeds and the like vary everything."""
        given = cell.entries()
        words = given["vary"].text().casefold() if "vary" in given and not given["vary"].is_list else ""
        kinds = [kind for kind, pattern in _VARIED.items() if re.search(pattern, words)]
        if re.search("seed|hash|everything|dict", words):
            kinds = list(_VARIED)
        if not kinds:
            self.unjudged.append(f"repetition with {words or 'nothing'} varied")
            return
        vary = listed((scalar(kind, cell.node) for kind in kinds), cell.node)
        into["repeat"] = fields({"times": given["times"].node, "vary": vary}, cell.node)

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
                case "repeat":
                    self._repeat(cell, into)
                case "verdict" if cell.text() == "accept":
                    pass  # it was read
                case "warning_at_setup":
                    into["warnings_at_setup"] = cell.node
                case "warning_at_change":
                    into["warnings_at_change"] = cell.node
                case _:
                    self.unjudged.append(f"expectation {name}")
        return into


_VARIED = {
    "nodes": "node",
    "projects": "queue|project",
    "running": "running|workload",
    "events": "event|submi|arriv|order",
}


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


def _understood(note: str, acts: list[str]) -> bool:
    """Whether a note is a remark, or says what is acted on: reports that never come, the order of the store's list."""
    speaks = re.search(r"\breport|\bstore\b|\barriv|\bmessage", note, re.IGNORECASE)
    return not speaks or (acts == ["cancel"] and "no " in note) or (acts == ["restart"] and " as " in note)


def _is_gone(node: Cell) -> bool:
    state = node.entries().get("state")
    return state is not None and state.text() == "gone"


def _with_name_label(node: yaml.MappingNode) -> yaml.MappingNode:
    """A node that can be selected by its name."""
    entries = {key.value: value for key, value in node.value}
    labels = {key.value: value for key, value in entries["labels"].value} if "labels" in entries else {}
    if "name" in entries:
        labels.setdefault("name", entries["name"])
    return fields({**entries, "labels": fields(labels, node)}, node)
