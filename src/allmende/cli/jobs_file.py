"""The file of `allmende run`: projects and jobs as YAML, read strictly; docs/running.md is its reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeVar

from msgspec import Struct

from allmende.model import advice, quantity, units
from allmende.model.advice import Advice
from allmende.model.mistake import Mistake, MistakeCode, Mistakes
from allmende.model.request import Ask, Where
from allmende.model.span import DAY, SECOND
from allmende.model.tenancy import Project
from allmende.model.workload import After, Dependency, Role, Workload
from allmende.scene.cell import THIS_FILE, Cell, read_yaml
from allmende.scene.circle import check_depth, circle

_Value = TypeVar("_Value")

MOST_JOBS = 10_000
MOST_PODS = 4_096  # of one job; each is a process of this machine
LATEST = 30 * DAY  # submit after the start of the run
LONGEST = 366 * DAY  # limit; nothing sleeps longer
GRACE = 10 * SECOND
"""What an eviction may take where a job states nothing."""
DEFAULT_PROJECT = "default"
MOST_GPUS = 10**6  # of a guarantee or limit
MOST_WEIGHT = 10**6
MOST_MISTAKES = 40
"""Mistakes that are told at once; whoever made more sees the next when these are mended."""
_CONTENT = "a list of jobs; docs/running.md shows how"

_PROJECT_FIELDS = ("name", "parent", "guarantee", "max", "weight", "priority")
_JOB_FIELDS = (
    *("name", "command", "gpus", "gpu_memory", "pods", "project", "user", "priority", "limit", "grace"),
    *("after", "at", "models"),
)


class JobsFile(Struct, frozen=True):
    """What a file says: projects, and jobs with the moment (microseconds from the start) they are submitted at."""

    projects: tuple[Project, ...]
    jobs: tuple[tuple[int, Workload], ...]

    def advice(self, capacity: int) -> tuple[Advice, ...]:
        """Warnings about valid settings on a machine of so many GPU units."""
        return advice.settings_advice(self.projects, capacity, {})


def read_jobs(path: str) -> JobsFile:
    """Read a file. Raises Mistakes with all that is wrong in it, each with file, line and column."""
    top = read_yaml(path, content=_CONTENT)
    if top.is_null:
        raise Mistake(MistakeCode.EMPTY, THIS_FILE, path, f"write {_CONTENT}")
    if top.is_mapping and "jobs" not in (entries := top.entries()) and "version" in entries:
        do = f"play a scene with: allmende sim run {path}"
        raise top.mistake(MistakeCode.WRONG_KIND, do, "holds a scene, no jobs", THIS_FILE)
    found: list[Mistake] = []
    fields = top.mapping(("projects", "jobs"), ("jobs",), found)
    names, projects = _part(fields, "projects", lambda cell: _projects(cell, found), _NO_PROJECTS, found)
    jobs = _part(fields, "jobs", lambda cell: _jobs(cell, names, found), _NO_JOBS, found)
    if found:
        raise Mistakes(found[:MOST_MISTAKES])
    return JobsFile(projects, jobs)


_NO_PROJECTS: tuple[frozenset[str], tuple[Project, ...]] = (frozenset(), ())
_NO_JOBS: tuple[tuple[int, Workload], ...] = ()


def _part(
    fields: dict[str, Cell], name: str, read: Callable[[Cell], _Value], absent: _Value, found: list[Mistake]
) -> _Value:
    """A field that may be absent; a mistake in it joins the others, so that all are told at once."""
    if name not in fields:
        return absent
    try:
        return read(fields[name])
    except Mistake as mistake:
        found.append(mistake)
        return absent


def _named(cells: Iterable[Cell], what: str, found: list[Mistake]) -> dict[str, Cell]:
    """The items of a list by their names; an item without a readable name, and the second of a name, is a mistake."""
    named: dict[str, Cell] = {}
    for cell in cells:
        try:
            name = cell.entries().get("name")
            if name is None:
                raise cell.mistake(MistakeCode.MISSING, "add name: ...", "has no name")
            if name.name() in named:
                do = f"give each {what} a name of its own; the first is at {named[name.name()].place}"
                raise name.mistake(MistakeCode.DUPLICATE, do)
            named[name.name()] = cell
        except Mistake as mistake:
            found.append(mistake)
    return named


# -- projects -----------------------------------------------------------------------------------------------------


def _projects(cell: Cell, found: list[Mistake]) -> tuple[frozenset[str], tuple[Project, ...]]:
    """The names that jobs may use, and the projects, none where anything is wrong with them."""
    before = len(found)
    named = _named(cell.items(), "project", found)
    projects = [_project(item, found) for item in named.values()]
    if len(found) > before:
        return frozenset(named), ()
    try:
        check_depth(projects)
        advice.check_projects(projects)
    except Mistake as mistake:
        found.append(_placed(mistake, named))
        return frozenset(named), ()
    return frozenset(named), advice.resolved(projects)


def _project(cell: Cell, found: list[Mistake]) -> Project:
    fields = cell.mapping(_PROJECT_FIELDS, ("name",), found)
    return Project(
        name=fields["name"].name(),
        parent=_part(fields, "parent", Cell.name, "", found),
        guarantee=_part(fields, "guarantee", _guarantee, 0, found),
        cap=_part(fields, "max", _cap, None, found),
        weight=_part(fields, "weight", _weight, Fraction(1), found),
        priority=_part(fields, "priority", _priority, 0, found),
    )


def _guarantee(cell: Cell) -> int:
    return _bounded(cell, advice.guarantee(cell.text(), cell.where))


def _cap(cell: Cell) -> int | None:
    return _bounded(cell, cell.amount())


def _bounded(cell: Cell, amount: int) -> int:
    if amount > MOST_GPUS * units.GPU:
        raise cell.mistake(MistakeCode.ABSURD, f"write at most {MOST_GPUS} GPUs", "is absurdly large")
    return amount


def _weight(cell: Cell) -> Fraction:
    weight = quantity.quantity(cell.text(), cell.where)
    if weight < 0:
        raise cell.mistake(MistakeCode.NEGATIVE, "write a number from 0")
    if weight > MOST_WEIGHT or weight.denominator > MOST_WEIGHT:
        do = f"write a number up to {MOST_WEIGHT} with at most six decimals"
        raise cell.mistake(MistakeCode.ABSURD, do)
    return weight


def _placed(mistake: Mistake, named: dict[str, Cell]) -> Mistake:
    """A mistake of the tree with the place of the field it names."""
    for name, cell in named.items():
        field = mistake.where.removeprefix(f"projects.{name}.")
        if field != mistake.where:
            return mistake.at(cell.entries().get(field, cell).place)
    return mistake


# -- jobs ---------------------------------------------------------------------------------------------------------


def _jobs(cell: Cell, projects: frozenset[str], found: list[Mistake]) -> tuple[tuple[int, Workload], ...]:
    items = cell.items()
    if not items:
        raise cell.mistake(MistakeCode.EMPTY, "write at least one job", "is empty")
    if len(items) > MOST_JOBS:
        raise cell.mistake(MistakeCode.ABSURD, f"write at most {MOST_JOBS} jobs", f"has {len(items)} jobs")
    before = len(found)
    named = _named(items, "job", found)
    jobs = []
    for item in named.values():
        if len(found) > MOST_MISTAKES:
            break
        jobs.append(_job(item, projects, named, found))
    if len(found) == before:
        _no_cycle({job.id: job for _, job in jobs}, named)
        jobs = _not_before_those_they_wait_for(jobs)
    return tuple(jobs)


def _job(cell: Cell, projects: frozenset[str], named: dict[str, Cell], found: list[Mistake]) -> tuple[int, Workload]:
    """A job and its moment; worth nothing where anything was wrong with it."""
    before = len(found)
    fields = cell.mapping(_JOB_FIELDS, ("name", "command"), found)
    ask = Ask()
    try:
        ask = _ask(cell, fields)
    except Mistake as mistake:
        if mistake.code is not MistakeCode.MISSING or len(found) == before:  # else gpus was misspelt
            found.append(mistake)
    least, most = _part(fields, "pods", _pods, (1, 1), found)
    return _part(fields, "at", _at, 0, found), Workload(
        id=fields["name"].name(),
        project=_project_of(cell, fields, projects, found),
        roles=(Role("pod", most, ask, Where(models=_part(fields, "models", _names, (), found))),),
        gang_min=least,
        user=_part(fields, "user", Cell.name, "", found),
        priority=_part(fields, "priority", _priority, 0, found),
        elastic=least < most,
        limit=_part(fields, "limit", _limit, None, found),
        grace=_part(fields, "grace", _grace, GRACE, found),
        after=_part(fields, "after", lambda after: _dependencies(after, named), (), found),
        command=_part(fields, "command", _command, (), found),
    )


def _names(cell: Cell) -> tuple[str, ...]:
    return tuple(item.name() for item in cell.one_or_more())


def _limit(cell: Cell) -> int | None:
    return _at_most(LONGEST, "a year", cell, cell.span(1))


def _grace(cell: Cell) -> int:
    return _at_most(DAY, "a day", cell, cell.span())


def _at(cell: Cell) -> int:
    return _at_most(LATEST, "30 days", cell, cell.span())


def _at_most(most: int, words: str, cell: Cell, span: int) -> int:
    if span > most:
        raise cell.mistake(MistakeCode.ABSURD, f"write a time of at most {words}", "is absurdly long")
    return span


def _project_of(cell: Cell, fields: dict[str, Cell], projects: frozenset[str], found: list[Mistake]) -> str:
    if "project" in fields:
        read = (lambda item: item.choice(sorted(projects))) if projects else Cell.name
        return _part(fields, "project", read, DEFAULT_PROJECT, found)
    if projects:
        found.append(cell.mistake(MistakeCode.MISSING, "add project: ..., one of those above", "has no project"))
    return DEFAULT_PROJECT


def _command(cell: Cell) -> tuple[str, ...]:
    """Text goes to the shell, a list is started as it is."""
    if not cell.is_list:
        if not cell.text().strip():
            raise cell.mistake(MistakeCode.EMPTY, "write a command, such as python train.py")
        return ("/bin/sh", "-c", cell.text())
    words = tuple(item.text() for item in cell.items())
    if not words or not words[0]:
        raise cell.mistake(MistakeCode.EMPTY, "write a command, such as [python, train.py]", "is empty")
    return words


def _ask(cell: Cell, fields: dict[str, Cell]) -> Ask:
    if "gpus" in fields and "gpu_memory" in fields:
        raise fields["gpu_memory"].mistake(MistakeCode.CONTRADICTION, "keep gpus or gpu_memory", "stands beside gpus")
    if "gpu_memory" in fields:
        return Ask(memory=quantity.mib(fields["gpu_memory"].text(), fields["gpu_memory"].where))
    if "gpus" not in fields:
        raise cell.mistake(MistakeCode.MISSING, "add gpus: the GPUs of one pod, 0 for none", "has no gpus")
    count = units.gpus(fields["gpus"].text(), fields["gpus"].where)
    return Ask(whole=count.whole, share=count.share)


def _pods(cell: Cell) -> tuple[int, int]:
    """(least, most): a number of pods, or {min, max}."""
    if not cell.is_mapping:
        pods = _pod_count(cell)
        return pods, pods
    bounds = cell.mapping(("min", "max"), ("min", "max"))
    least, most = _pod_count(bounds["min"]), _pod_count(bounds["max"])
    if least > most:
        raise bounds["max"].mistake(MistakeCode.CONTRADICTION, f"write at least {least}", "is less than min")
    return least, most


def _pod_count(cell: Cell) -> int:
    pods = cell.count(1)
    if pods > MOST_PODS:
        do = f"write at most {MOST_PODS}; each pod is a process of this machine"
        raise cell.mistake(MistakeCode.ABSURD, do, "is absurdly many")
    return pods


def _priority(cell: Cell) -> int:
    priority = cell.integer()
    if abs(priority) > 10**9:
        raise cell.mistake(MistakeCode.ABSURD, "write a number between -1000000000 and 1000000000")
    return priority


def _not_before_those_they_wait_for(jobs: list[tuple[int, Workload]]) -> list[tuple[int, Workload]]:
    """Each job submitted no earlier than those it waits for: what is not submitted yet is not known yet."""
    workloads = {workload.id: workload for _, workload in jobs}
    moments = {workload.id: at for at, workload in jobs}
    for name in _dependencies_first(workloads):
        moments[name] = max([moments[name], *(moments[other.workload] for other in workloads[name].after)])
    return [(moments[workload.id], workload) for _, workload in jobs]


def _dependencies_first(workloads: dict[str, Workload]) -> list[str]:
    """The names so that each comes after those it waits for; there are no cycles."""
    order: dict[str, None] = {}
    for start in workloads:
        rest = [start]
        while rest:
            open_ones = [other.workload for other in workloads[rest[-1]].after if other.workload not in order]
            if open_ones:
                rest += open_ones
            else:
                order[rest.pop()] = None
    return list(order)


# -- dependencies -------------------------------------------------------------------------------------------------


def _dependencies(cell: Cell, named: dict[str, Cell]) -> tuple[Dependency, ...]:
    return tuple(_dependency(item, named) for item in cell.one_or_more())


def _dependency(cell: Cell, named: dict[str, Cell]) -> Dependency:
    if not cell.is_mapping:
        return Dependency(cell.choice(named))
    fields = cell.mapping(("job", "when"), ("job",))
    when = After(fields["when"].choice(list(After))) if "when" in fields else After.OK
    return Dependency(fields["job"].choice(named), when)


def _no_cycle(jobs: dict[str, Workload], named: dict[str, Cell]) -> None:
    """Raises Mistake CYCLE where jobs wait for each other, with the way round."""
    way = circle({name: [other.workload for other in job.after] for name, job in jobs.items()})
    if way:
        after = named[way[-2]].entries()["after"]
        do = "let one of them wait for none of the others"
        raise after.mistake(MistakeCode.CYCLE, do, "makes jobs wait for each other", " > ".join(way))
