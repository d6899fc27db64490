"""The events of a scene file, each read into one or more steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import yaml

from allmende.metering.window import moment
from allmende.model.event import Checkpointed, LevelsSet, NodeGone
from allmende.model.mistake import MistakeCode
from allmende.scene import settings, works
from allmende.scene.cell import Cell, scalar
from allmende.scene.draft import Draft
from allmende.scene.value import (
    Cancel,
    End,
    EndPods,
    FailAtBind,
    Report,
    Resize,
    Restart,
    SetNode,
    SetProject,
    Step,
    Submit,
)

WHEN = ("at", "at_time", "every", "from", "to")
GONE = "gone"
EVERY_AT_MOST = 100_000


def steps(event: Cell, draft: Draft) -> Iterator[Step]:
    """The steps that one event of the file stands for. Raises Mistake where it cannot be meant."""
    given = event.mapping((*WHEN, *ACTIONS))
    actions = [name for name in ACTIONS if name in given]
    if len(actions) != 1:
        do = f"let something happen: {', '.join(ACTIONS)}" if not actions else f"split {' and '.join(actions)}"
        raise event.mistake(MistakeCode.MISSING, do, "does not say one thing that happens")
    action, cell = actions[0], given[actions[0]]
    if "every" in given:
        if action != "submit":
            raise given["every"].mistake(MistakeCode.CONTRADICTION, "use it with submit", "repeats no submission")
        yield from _repeated(given, cell, draft)
        return
    yield from ACTIONS[action](_when(event, given, draft), cell, draft)


def _when(event: Cell, given: dict[str, Cell], draft: Draft) -> int:
    if "at_time" in given:
        return moment(given["at_time"].text(), given["at_time"].where)
    if "at" not in given:
        raise event.mistake(MistakeCode.MISSING, "add at: seconds from the beginning", "has no at")
    return draft.origin + given["at"].moment()


def _repeated(given: dict[str, Cell], cell: Cell, draft: Draft) -> Iterator[Step]:
    """`every` with `from` and `to`: one submission each time, {i} in its name counting from 1."""
    every = given["every"].span(1)
    first = given["from"].moment() if "from" in given else 0
    if "to" not in given:
        raise given["every"].mistake(MistakeCode.MISSING, "add to: the last moment", "has no end")
    count = (given["to"].moment() - first) // every + 1
    if count > EVERY_AT_MOST:
        raise given["every"].mistake(MistakeCode.ABSURD, f"repeat at most {EVERY_AT_MOST} times")
    for i in range(1, count + 1):
        for step in _submit(draft.origin + first + (i - 1) * every, _numbered(cell, i), draft):
            draft.bulk.update([step.workload.id] if isinstance(step, Submit) else [])
            yield step


def _numbered(cell: Cell, i: int) -> Cell:
    if not isinstance(cell.node, yaml.MappingNode):
        return cell
    pairs = []
    for key, value in cell.node.value:
        named = key.value == "name" and isinstance(value, yaml.ScalarNode)
        pairs.append((key, scalar(value.value.replace("{i}", str(i)), value) if named else value))
    return Cell(yaml.MappingNode(cell.node.tag, pairs, cell.node.start_mark, cell.node.end_mark), cell.path)


def _submit(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    for workload, given in works.several(cell, draft.levels):
        draft.add(workload, cell)
        if "count" in given:
            draft.bulk.add(workload.id)
        yield Submit(at, workload, given["runs"].span() if "runs" in given else None)


def _known(cell: Cell, draft: Draft) -> str:
    """The name of a workload that has been mentioned before (a copy made by its owner too)."""
    name = cell.name()
    if name.rstrip("'") not in draft.workloads:
        cell.choice(draft.workloads)
    return name


def _end(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    yield End(at, _known(cell, draft))


def _fail(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    yield End(at, _known(cell, draft), ok=False)


def _cancel(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    if not cell.is_mapping:
        yield Cancel(at, _known(cell, draft))
        return
    given = cell.mapping(("name", "unreported"), ("name",))
    yield Cancel(at, _known(given["name"], draft), given["unreported"].flag() if "unreported" in given else False)


def _node(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    given = cell.mapping((*settings.NODE, "drained"), ("name",))
    name = given["name"].name()
    drained = given.pop("drained").flag() if "drained" in given else False
    if "state" in given and given["state"].text() == GONE:
        given["name"].choice(draft.nodes)
        del draft.nodes[name]
        yield NodeGone(at, name)
        return
    draft.nodes[name] = settings.merged(draft.nodes.get(name, {}), given)
    reopen = "state" in given or "closed" in given
    yield SetNode(at, settings.node(name, draft.nodes[name]), reopen, drained)


def _project(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    given = cell.mapping(settings.PROJECT, ("name",))
    name = given["name"].name()
    draft.projects[name] = settings.merged(draft.projects.get(name, {}), given)
    yield SetProject(at, settings.project(name, draft.projects[name]))


def _levels(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    draft.levels = tuple(item.text() for item in cell.items())
    yield LevelsSet(at, draft.levels)


def _resize(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    given = cell.mapping(("name", "pods", "role"), ("name", "pods"))
    name = _known(given["name"], draft)
    roles = [role.name for role in draft.workloads[name.rstrip("'")].roles]
    yield Resize(at, name, given["pods"].count(), given["role"].choice(roles) if "role" in given else "")


def _end_pods(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    given = cell.mapping(("name", "pods", "ok"), ("name", "pods"))
    ok = given["ok"].flag() if "ok" in given else True
    yield EndPods(at, _known(given["name"], draft), given["pods"].count(1), ok)


def _report(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    given = cell.mapping(("name", "what", "pod"), ("name", "what"))
    what = given["what"].choice(("finished", "gone", "lost"))
    yield Report(at, _known(given["name"], draft), what, given["pod"].count() if "pod" in given else 0)


def _fail_at_bind(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    given = cell.mapping(("name", "node"), ("name", "node"))
    yield FailAtBind(at, _known(given["name"], draft), given["node"].choice(draft.nodes))


def _checkpoint(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    given = cell.mapping(("name", "made"), ("name",))
    made = draft.origin + given["made"].moment() if "made" in given else at
    yield Checkpointed(at, _known(given["name"], draft), made)


def _restart(at: int, cell: Cell, draft: Draft) -> Iterator[Step]:
    yield Restart(at, tuple(_known(item, draft) for item in cell.items()) if cell.is_list else ())


Reader = Callable[[int, Cell, Draft], Iterator[Step]]

ACTIONS: dict[str, Reader] = {
    "submit": _submit,
    "end": _end,
    "fail": _fail,
    "cancel": _cancel,
    "node": _node,
    "project": _project,
    "levels": _levels,
    "resize": _resize,
    "end_pods": _end_pods,
    "report": _report,
    "fail_at_bind": _fail_at_bind,
    "checkpoint": _checkpoint,
    "restart": _restart,
}
"""What can happen in a scene."""
