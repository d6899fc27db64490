"""The file of `allmende run`: projects and jobs as YAML, read strictly; docs/running.md is its reference."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from msgspec import Struct

from allmende.model import advice, quantity, units
from allmende.model.advice import Advice
from allmende.model.mistake import Mistake, MistakeCode, Mistakes
from allmende.model.request import Ask, Where
from allmende.model.span import DAY, SECOND
from allmende.model.tenancy import Project
from allmende.model.workload import After, Dependency, Role, Workload
from allmende.scene.cell import Cell, read_yaml

MOST_JOBS = 10_000
MOST_PODS = 4_096  # of one job; each is a process of this machine
LATEST = 30 * DAY  # submit after the start of the run
GRACE = 10 * SECOND
"""What an eviction may take where a job states nothing."""
DEFAULT_PROJECT = "default"

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
    try:
        top = read_yaml(path).mapping(("projects", "jobs"), ("jobs",))
        found: list[Mistake] = []
        projects = _projects(top["projects"], found) if "projects" in top else ()
        jobs = _jobs(top["jobs"], {project.name for project in projects}, found)
    except RecursionError:
        raise Mistake(
            MistakeCode.ABSURD, path, path, "write lists and fields a few levels deep", "is nested too deeply"
        ) from None
    if found:
        raise Mistakes(found)
    return JobsFile(projects, jobs)


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


def _projects(cell: Cell, found: list[Mistake]) -> tuple[Project, ...]:
    named = _named(cell.items(), "project", found)
    projects = []
    for item in named.values():
        try:
            projects.append(_project(item))
        except Mistake as mistake:
            found.append(mistake)
    if not found:
        try:
            advice.check_projects(projects)
        except Mistake as mistake:
            found.append(_placed(mistake, named))
    return advice.resolved(projects)


def _project(cell: Cell) -> Project:
    fields = cell.mapping(_PROJECT_FIELDS, ("name",))
    weight = Fraction(1)
    if "weight" in fields:
        weight = quantity.quantity(fields["weight"].text(), fields["weight"].where)
        if weight < 0:
            raise fields["weight"].mistake(MistakeCode.NEGATIVE, "write a number from 0")
    return Project(
        name=fields["name"].name(),
        parent=fields["parent"].name() if "parent" in fields else "",
        guarantee=advice.guarantee(fields["guarantee"].text(), fields["guarantee"].where)
        if "guarantee" in fields
        else 0,
        cap=fields["max"].amount() if "max" in fields else None,
        weight=weight,
        priority=fields["priority"].integer() if "priority" in fields else 0,
    )


def _placed(mistake: Mistake, named: dict[str, Cell]) -> Mistake:
    """A mistake of the tree with the place of the field it names."""
    for name, cell in named.items():
        field = mistake.where.removeprefix(f"projects.{name}.")
        if field != mistake.where:
            return mistake.at(cell.entries().get(field, cell).place)
    return mistake


# -- jobs ---------------------------------------------------------------------------------------------------------


def _jobs(cell: Cell, projects: set[str], found: list[Mistake]) -> tuple[tuple[int, Workload], ...]:
    items = cell.items()
    if not items:
        raise cell.mistake(MistakeCode.EMPTY, "write at least one job", "is empty")
    if len(items) > MOST_JOBS:
        raise cell.mistake(MistakeCode.ABSURD, f"write at most {MOST_JOBS} jobs", f"has {len(items)} jobs")
    named = _named(items, "job", found)
    jobs = []
    for item in named.values():
        try:
            jobs.append(_job(item, projects, named))
        except Mistake as mistake:
            found.append(mistake)
    if not found:
        _no_cycle({job.id: job for _, job in jobs}, named)
        jobs = _not_before_those_they_wait_for(jobs)
    return tuple(jobs)


def _job(cell: Cell, projects: set[str], named: dict[str, Cell]) -> tuple[int, Workload]:
    fields = cell.mapping(_JOB_FIELDS, ("name", "command"))
    least, most = _pods(fields["pods"]) if "pods" in fields else (1, 1)
    models = tuple(item.name() for item in fields["models"].one_or_more()) if "models" in fields else ()
    role = Role("pod", most, _ask(cell, fields), Where(models=models))
    after = fields["after"].one_or_more() if "after" in fields else []
    return _at(fields["at"]) if "at" in fields else 0, Workload(
        id=fields["name"].name(),
        project=_project_of(cell, fields, projects),
        roles=(role,),
        gang_min=least,
        user=fields["user"].name() if "user" in fields else "",
        priority=_priority(fields["priority"]) if "priority" in fields else 0,
        elastic=least < most,
        limit=fields["limit"].span(1) if "limit" in fields else None,
        grace=fields["grace"].span() if "grace" in fields else GRACE,
        after=tuple(_dependency(item, named) for item in after),
        command=_command(fields["command"]),
    )


def _at(cell: Cell) -> int:
    at = cell.span()
    if at > LATEST:
        raise cell.mistake(MistakeCode.ABSURD, "write a time of at most 30 days")
    return at


def _project_of(cell: Cell, fields: dict[str, Cell], projects: set[str]) -> str:
    if "project" in fields:
        return fields["project"].choice(sorted(projects)) if projects else fields["project"].name()
    if projects:
        raise cell.mistake(MistakeCode.MISSING, "add project: ..., one of those above", "has no project")
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


def _dependency(cell: Cell, named: dict[str, Cell]) -> Dependency:
    if not cell.is_mapping:
        return Dependency(cell.choice(named))
    fields = cell.mapping(("job", "when"), ("job",))
    when = After(fields["when"].choice(list(After))) if "when" in fields else After.OK
    return Dependency(fields["job"].choice(named), when)


def _no_cycle(jobs: dict[str, Workload], named: dict[str, Cell]) -> None:
    """Raises Mistake CYCLE where jobs wait for each other, with the way round."""
    done: set[str] = set()
    for start in jobs:
        path: dict[str, None] = {}
        rest = [(start, iter(jobs[start].after))] if start not in done else []
        while rest:
            name, others = rest[-1]
            if len(path) < len(rest):
                path[name] = None
            following = next(others, None)
            if following is None:
                done.add(name)
                rest.pop()
                path.popitem()
            elif following.workload in path:
                names = [*path, following.workload]
                way = names[names.index(following.workload) :]
                after = named[name].entries()["after"]
                do = "let one of them wait for none of the others"
                raise after.mistake(MistakeCode.CYCLE, do, "makes jobs wait for each other", " > ".join(way))
            elif following.workload not in done:
                rest.append((following.workload, iter(jobs[following.workload].after)))
