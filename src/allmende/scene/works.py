"""Workloads of a scene, read from their fields: what a pod asks for, roles, gangs, places, times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from allmende.model.mistake import MistakeCode
from allmende.model.quantity import cpus, memory, mib
from allmende.model.request import Ask, Where
from allmende.model.units import gpus
from allmende.model.workload import After, Dependency, Kind, Role, Workload
from allmende.scene.cell import Cell

ASK = ("gpus", "gpu_memory", "slots", "distinct_gpus", "cpus", "memory", "claims")
"""Fields that say what one pod, or one container of it, needs."""

WHERE = ("model", "select", "tolerates")
"""Fields that say which nodes will do."""

ROLE = ("name", "pods", "least", "containers", "init_containers", "exclusive", *ASK, *WHERE)
"""Fields of a role."""

WORKLOAD = (
    "name", "project", "pods", "roles", "gang_min", "user", "kind", "priority", "same", "same_preferred", "spread",
    "limit", "runs", "grace", "borrow", "interactive", "after", "checkpoint_every", "command", "containers",
    "init_containers", "exclusive", *ASK, *WHERE,
)  # fmt: skip
"""Fields of a workload."""

MANY = ("count", "throttle")
"""Fields of a submission that stands for several, `name-1` to `name-count`."""

PODS_AT_MOST = 1_000_000
NO_PROJECT = "default"
"""The project of a workload that names none."""


def workload(name: str, given: dict[str, Cell], cell: Cell, levels: Sequence[str]) -> Workload:
    """A workload from its fields. Raises Mistake where a value has no meaning or two contradict each other."""
    roles, least, elastic = _roles(given, cell)
    pods = sum(role.pods for role in roles)
    gang_min = given["gang_min"].count(1) if "gang_min" in given else least
    if gang_min > pods:
        do = f"ask for at most {pods}"
        raise given["gang_min"].mistake(MistakeCode.CONTRADICTION, do, f"is more than its {pods} pods")
    return Workload(
        name,
        project=given["project"].name() if "project" in given else NO_PROJECT,
        roles=roles,
        gang_min=gang_min,
        user=given["user"].name() if "user" in given else "",
        kind=Kind(given["kind"].choice(Kind)) if "kind" in given else Kind.BATCH,
        priority=given["priority"].integer() if "priority" in given else 0,
        elastic=elastic,
        same=_level(given.get("same"), levels),
        prefer_same=_level(given.get("same_preferred"), levels),
        spread=_level(given.get("spread"), levels),
        limit=given["limit"].span(1) if "limit" in given else None,
        grace=given["grace"].span() if "grace" in given else 0,
        borrow=given["borrow"].flag() if "borrow" in given else True,
        interactive=given["interactive"].flag() if "interactive" in given else False,
        after=_after(given.get("after")),
        checkpoint_every=given["checkpoint_every"].span(1) if "checkpoint_every" in given else None,
        command=tuple(item.text() for item in given["command"].one_or_more()) if "command" in given else (),
    )


def several(cell: Cell, levels: Sequence[str], extra: Iterable[str] = ()) -> list[tuple[Workload, dict[str, Cell]]]:
    """The workloads that one submission stands for, with its fields."""
    given = cell.mapping((*WORKLOAD, *MANY, *extra), ("name",))
    name = given["name"].name()
    one = workload(name, given, cell, levels)
    if "count" not in given:
        return [(one, given)]
    count = given["count"].count(1)
    if count > PODS_AT_MOST:
        raise given["count"].mistake(MistakeCode.ABSURD, f"submit at most {PODS_AT_MOST} at once")
    throttle = given["throttle"].count(1) if "throttle" in given else 0
    array = name if throttle else ""
    return [(replace(one, id=f"{name}-{i}", array=array, throttle=throttle), given) for i in range(1, count + 1)]


def _roles(given: dict[str, Cell], cell: Cell) -> tuple[tuple[Role, ...], int, bool]:
    """Roles, the least pods of the gang where nothing else is said, and whether it is elastic."""
    if "roles" in given:
        for name in ("pods", "containers", "init_containers", *ASK):
            if name in given:
                raise given[name].mistake(MistakeCode.CONTRADICTION, "say it in the roles", "stands beside roles")
        roles = tuple(_role(item, given) for item in given["roles"].items())
        names = [role.name for role in roles]
        if not roles or len(set(names)) < len(names):
            raise given["roles"].mistake(MistakeCode.DUPLICATE, "list roles, each with a name of its own")
        return roles, sum(role.pods for role in roles), False
    pods, least, elastic = _pods(given.get("pods"))
    return (Role("main", pods, ask_of(given, cell), _where(given)),), least, elastic


def _pods(cell: Cell | None) -> tuple[int, int, bool]:
    """(pods, least, elastic) of `pods: 4` or `pods: {min: 2, max: 4}`."""
    if cell is None:
        return 1, 1, False
    if not cell.is_mapping:
        pods = _bounded(cell)
        return pods, pods, False
    given = cell.mapping(("min", "max"), ("min", "max"))
    least, most = _bounded(given["min"]), _bounded(given["max"])
    if least > most:
        raise cell.mistake(MistakeCode.CONTRADICTION, "let max be at least min", "has min above max")
    return most, least, True


def _bounded(cell: Cell) -> int:
    count = cell.count(1)
    if count > PODS_AT_MOST:
        raise cell.mistake(MistakeCode.ABSURD, f"ask for at most {PODS_AT_MOST} pods")
    return count


def _role(cell: Cell, shared: dict[str, Cell]) -> Role:
    given = cell.mapping(ROLE, ("name",))
    pods, least = _bounded(given["pods"]) if "pods" in given else 1, 0
    if "least" in given:
        least = given["least"].count()
        if least > pods:
            raise given["least"].mistake(MistakeCode.CONTRADICTION, f"ask for at most {pods}", "is more than its pods")
    placed = {name: shared[name] for name in WHERE if name in shared} | given
    return Role(given["name"].name(), pods, ask_of(given, cell), _where(placed), least)


def _where(given: dict[str, Cell]) -> Where:
    models = [cell.name() for cell in given["model"].one_or_more()] if "model" in given else []
    select = {key: cell.text() for key, cell in given["select"].entries().items()} if "select" in given else {}
    tolerates = [cell.text() for cell in given["tolerates"].one_or_more()] if "tolerates" in given else []
    return Where(tuple(m for m in models if m != "any"), tuple(sorted(select.items())), tuple(tolerates))


def ask_of(given: dict[str, Cell], cell: Cell) -> Ask:
    """What one pod needs: its own fields, or the larger of its largest start-up container and its containers' sum."""
    if "containers" not in given and "init_containers" not in given:
        return _checked(_one_ask(given), cell, given)
    for name in ASK:
        if name in given:
            raise given[name].mistake(MistakeCode.CONTRADICTION, "say it in the containers", "stands beside containers")
    known = ("name", "added_at_creation", *ASK)
    main = [_one_ask(item.mapping(known)) for item in given["containers"].items()] if "containers" in given else []
    first = (
        [_one_ask(item.mapping(known)) for item in given["init_containers"].items()]
        if "init_containers" in given
        else []
    )
    ask = _merged([_merged(main, sum), *first], max)
    return _checked(ask, cell, given)


def _merged(asks: Sequence[Ask], how: Callable[[Iterable[int]], int]) -> Ask:
    def over(name: str) -> int:
        return how([getattr(ask, name) for ask in asks] or [0])

    distinct = any(ask.distinct for ask in asks)
    return Ask(over("whole"), over("share"), over("memory"), over("slots"), distinct, over("cpu"), over("ram"))


def _one_ask(given: dict[str, Cell]) -> Ask:
    whole = share = 0
    if "gpus" in given:
        whole, share = gpus(given["gpus"].text(), given["gpus"].where)
    for claim in given["claims"].items() if "claims" in given else ():
        more = gpus(claim.mapping(("gpus",), ("gpus",))["gpus"].text(), claim.where)
        whole, share = whole + more.whole, share + more.share
    return Ask(
        whole,
        share,
        memory=mib(given["gpu_memory"].text(), given["gpu_memory"].where) if "gpu_memory" in given else 0,
        slots=given["slots"].count() if "slots" in given else 0,
        distinct=given["distinct_gpus"].flag() if "distinct_gpus" in given else False,
        cpu=cpus(given["cpus"].text(), given["cpus"].where) if "cpus" in given else 0,
        ram=memory(given["memory"].text(), given["memory"].where) if "memory" in given else 0,
    )


def _checked(ask: Ask, cell: Cell, given: dict[str, Cell]) -> Ask:
    if sum(1 for value in (ask.whole, ask.share, ask.memory, ask.slots) if value) > 1:
        do = "ask for whole GPUs, a share, GPU memory or slots, but only one of them"
        raise cell.mistake(MistakeCode.CONTRADICTION, do, "asks for GPUs in two ways")
    return replace(ask, exclusive=given["exclusive"].flag()) if "exclusive" in given else ask


def _level(cell: Cell | None, levels: Sequence[str]) -> str:
    return cell.choice([*levels, "node"] if "node" not in levels else levels) if cell else ""


def _after(cell: Cell | None) -> tuple[Dependency, ...]:
    found = []
    for item in cell.one_or_more() if cell else ():
        if not item.is_mapping:
            found.append(Dependency(item.name()))
            continue
        given = item.mapping(("workload", "when"), ("workload",))
        when = After(given["when"].choice(After)) if "when" in given else After.OK
        found.append(Dependency(given["workload"].name(), when))
    return tuple(found)
