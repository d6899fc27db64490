"""Our own scene schema, version 1: a YAML file becomes a Scene, or a Mistake that names file, line and column."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from allmende.metering.window import clock_changes, moment
from allmende.model.advice import check_projects, resolved
from allmende.model.cluster import Node
from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.tenancy import Project
from allmende.model.workload import Workload
from allmende.scene import measure, never, settings, works
from allmende.scene.cell import Cell, read_yaml
from allmende.scene.circle import check_depth, circle
from allmende.scene.draft import Draft
from allmende.scene.events import steps
from allmende.scene.expect import expectations
from allmende.scene.value import Expect, Running, Scene, Step

VERSION = 1
YEARS = 3  # of clock changes that a scene knows
NODES_AT_MOST = 20_000
TOP = (
    "version", "name", "about", "timezone", "policy", "owners", "cluster", "projects", "running", "events", "expect",
)  # fmt: skip
RUNNING = ("on", "started", "ends", "devices", "on_gpus")
GAP_FIELDS = {"budget_gpu_hours": "budgets"}
"""Fields that are understood, and the part of the product that would act on them and is not there yet."""


def read(path: str, text: str | None = None) -> Scene:
    """The scene in a file. Raises Mistake with file, line and column for everything that cannot be meant."""
    return scene(read_yaml(path, text), path)


def scene(
    top: Cell, path: str = "", gaps: Sequence[str] = (), unjudged: Sequence[str] = (), strict: bool = True
) -> Scene:
    """A scene from its YAML. `strict`: a sentence nobody understands is refused here; else it is left to the judge."""
    given = top.mapping(TOP, ("version",))
    if given["version"].text() != str(VERSION):
        raise given["version"].mistake(
            MistakeCode.UNKNOWN_NAME, f"write version: {VERSION}", "is no version known here"
        )
    draft = Draft(gaps=list(gaps))
    cluster = given["cluster"].mapping(("levels", "nodes")) if "cluster" in given else {}
    if "levels" in cluster:
        draft.levels = tuple(cell.text() for cell in cluster["levels"].items())
    nodes = _nodes(cluster.get("nodes"), draft)
    projects = _projects(given.get("projects"), draft)
    events = given["events"].items() if "events" in given else []
    draft.origin = min((_absolute(e) for e in events if e.is_mapping and "at_time" in e.entries()), default=0)
    running = tuple(_running(cell, draft) for cell in given["running"].items()) if "running" in given else ()
    found: list[Step] = sorted((s for event in events for s in steps(event, draft)), key=lambda step: step.at)
    _check_dependencies(draft)
    owners = given["owners"].mapping(("recreate",)) if "owners" in given else {}
    zone = given["timezone"].zone().key if "timezone" in given else "UTC"
    policy = settings.policy(given.get("policy"))
    if zone != "UTC" and policy.utc_offset == 0:
        first, *changes = clock_changes(ZoneInfo(zone), draft.origin, YEARS)
        policy = replace(policy, utc_offset=first[1], clock_changes=tuple(changes))
    result = Scene(
        name=given["name"].name() if "name" in given else path,
        about=given["about"].text() if "about" in given else "",
        policy=policy,
        zone=zone,
        recreate=owners["recreate"].flag() if "recreate" in owners else False,
        levels=draft.levels,
        nodes=nodes,
        projects=projects,
        running=tuple(entry for many in running for entry in many),
        steps=tuple(found),
        origin=draft.origin,
        bulk=frozenset(draft.bulk),
        gaps=tuple(draft.gaps),
        unjudged=tuple(unjudged),
        expect=expectations(given["expect"], draft.origin) if "expect" in given else Expect(),
    )
    if strict:
        _check_words(result)
    return result


def _absolute(event: Cell) -> int:
    cell = event.entries()["at_time"]
    return moment(cell.text(), cell.where)


def _nodes(cell: Cell | None, draft: Draft) -> tuple[Node, ...]:
    found = []
    for item in cell.items() if cell else ():
        given = item.mapping(settings.NODE, ("name",))
        name = given["name"].name()
        many = given["count"].count(1) if "count" in given else 0
        if many > NODES_AT_MOST:
            raise given["count"].mistake(MistakeCode.ABSURD, f"make at most {NODES_AT_MOST} at once")
        for each in [f"{name}-{i}" for i in range(1, many + 1)] if many else [name]:
            if each in draft.nodes:
                raise item.mistake(MistakeCode.DUPLICATE, "give each node a name of its own", what=each)
            draft.nodes[each] = given
            found.append(settings.node(each, given))
    return tuple(found)


def _projects(cell: Cell | None, draft: Draft) -> tuple[Project, ...]:
    found = []
    for item in cell.items() if cell else ():
        given = item.mapping(settings.PROJECT, ("name",))
        name = given["name"].name()
        if name in draft.projects:
            raise item.mistake(MistakeCode.DUPLICATE, "give each project a name of its own", what=name)
        draft.projects[name] = given
        draft.gaps += [gap for known, gap in GAP_FIELDS.items() if known in given]
        found.append(settings.project(name, given))
    try:
        check_depth(found)
        check_projects(found)
    except Mistake as mistake:
        raise mistake.at(cell.place if cell else "") from None
    return resolved(found)


def _running(cell: Cell, draft: Draft) -> list[Running]:
    """What runs when the scene begins, read like a submission with its places."""
    found = []
    for workload, given in works.several(cell, draft.levels, RUNNING):
        if "on" not in given:
            raise cell.mistake(MistakeCode.MISSING, "add on: NODE, or on: {NODE: pods}", "has no on")
        draft.add(workload, cell)
        if "count" in given:
            draft.bulk.add(workload.id)
        found.append(
            Running(
                workload,
                _places(given["on"], workload, draft),
                draft.origin + (given["started"].moment() if "started" in given else 0),
                draft.origin + given["ends"].moment() if "ends" in given else None,
                tuple(item.count() for item in given["devices"].items()) if "devices" in given else (),
                _per_device(given.get("on_gpus")),
            )
        )
    return found


def _places(cell: Cell, workload: Workload, draft: Draft) -> tuple[tuple[str, int], ...]:
    if cell.is_mapping:
        found = tuple((name, value.count(1)) for name, value in cell.entries().items())
    else:
        found = ((cell.name(), workload.pods),)
    for name, _ in found:
        if name not in draft.nodes:
            raise cell.mistake(MistakeCode.UNKNOWN_NAME, "name a node of the cluster", "is no node", name)
    if sum(pods for _, pods in found) > workload.pods:
        raise cell.mistake(MistakeCode.CONTRADICTION, f"place at most {workload.pods}", "places more pods than it has")
    return found


def _per_device(cell: Cell | None) -> tuple[tuple[int, int], ...]:
    if cell is None:
        return ()
    cell.entries()  # a mapping
    return tuple((Cell(key, cell.path).count(), Cell(value, cell.path).count()) for key, value in cell.node.value)


def _check_dependencies(draft: Draft) -> None:
    """Refuse dependencies on what is never submitted, and circles of them."""
    above = {name: [d.workload for d in workload.after] for name, workload in draft.workloads.items()}
    for name, others in above.items():
        for other in others:
            if other not in above:
                do = "wait for a workload of the scene"
                raise draft.places[name].mistake(MistakeCode.UNKNOWN_NAME, do, what=other)
    way = circle(above)
    if way:
        do = "let one of them wait for nobody"
        raise draft.places[way[0]].mistake(MistakeCode.CYCLE, do, what=" > ".join(way))


def _check_words(result: Scene) -> None:
    """Refuse sentences and figures that no form understands, at the place they are written."""
    for written in result.expect.never:
        if never.parse(written.text, result) is None:
            do = "use one of the sentence forms of docs/scenes.md"
            raise Mistake(MistakeCode.UNREADABLE, written.text, written.place, do, "is no sentence that can be checked")
    for written, _ in result.expect.numbers:
        if measure.find(written.text, result) is None:
            do = "use one of the figures of docs/scenes.md"
            raise Mistake(
                MistakeCode.UNKNOWN_NAME, written.text, written.place, do, "is no figure that can be measured"
            )
