"""Figures that a scene may name, computed from the state, the record and the settings; all are exact."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta, tzinfo
from fractions import Fraction
from time import process_time
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from allmende.engine.apply import apply
from allmende.engine.plan import plan
from allmende.engine.state import State
from allmende.metering.window import Use, days, gpu_hours, moment, months, total, within
from allmende.model.event import Cancelled, Submitted
from allmende.model.span import HOUR, SECOND
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.scene import view
from allmende.scene.record import Record
from allmende.scene.value import Scene
from allmende.sim.world import World


class Played(Struct):
    """A scene that was played, with what there is to measure."""

    scene: Scene
    world: World
    record: Record

    @property
    def state(self) -> State:
        """The state at the end."""
        return self.world.state


Measure = Callable[[Played], Fraction | None]
Build = Callable[[Scene, str], Measure | None]

BOUNDS = {
    "_no_later_than": "at most",
    "_at_most": "at most",
    "_no_earlier_than": "at least",
    "_at_least": "at least",
}
"""Endings of a figure's name that make the given number a bound."""


def holds(name: str, value: Fraction, wanted: Fraction, tolerance: Fraction) -> bool:
    """Whether a measured figure is what was wanted, or within its bound."""
    kind = next((kind for ending, kind in BOUNDS.items() if name.endswith(ending)), "")
    if kind == "at most":
        return value <= wanted + tolerance
    if kind == "at least":
        return value >= wanted - tolerance
    return abs(value - wanted) <= tolerance


def find(name: str, scene: Scene) -> Measure | None:
    """The measure of a name; None where there is none."""
    plain = name
    for ending in BOUNDS:
        plain = plain.removesuffix(ending)
    for pattern, build in _TABLE:
        found = re.fullmatch(pattern, plain)
        if found is not None and (made := build(scene, *found.groups())) is not None:
            return made
    return None


# -- projects -----------------------------------------------------------------------------------------------------


def _of_project(test: Callable[[Played, str], int]) -> Callable[[Scene, str | None], Measure | None]:
    """A measure in GPUs of the project that a name ends with, or of the only one."""

    def build(scene: Scene, name: str | None) -> Measure | None:
        known = {project.name for project in scene.projects} | {w.project for w in scene.workloads.values()}
        project = name or (next(iter(known)) if len(known) == 1 else "")
        return (lambda played: Fraction(test(played, project), GPU)) if project in known else None

    return build


def _settings(played: Played, name: str) -> Project:
    return played.state.projects.get(name) or Project(name)


def _used(played: Played, name: str) -> int:
    return view.usage(played.state)[name]


def _headroom(played: Played, name: str) -> int:
    cap = _settings(played, name).cap
    return view.idle(played.state) if cap is None else max(0, cap - _used(played, name))


def _above_limit(played: Played, name: str) -> int:
    cap = _settings(played, name).cap
    return 0 if cap is None else max(0, _used(played, name) - cap)


def _borrowed(played: Played, name: str) -> int:
    """Use above the guarantee, as far as others lend what they are guaranteed and do not use."""
    above = max(0, _used(played, name) - _settings(played, name).guarantee)
    mine = view.ancestry(played.state, name)
    lent = sum(
        max(0, project.guarantee - _used(played, project.name))
        for project in played.state.projects.values()
        if project.name not in mine and name not in view.ancestry(played.state, project.name)
    )
    return min(above, lent)


def _share(played: Played, name: str) -> int:
    """What a project may expect: its guarantee, and its part by weight of what its level leaves over."""
    project = _settings(played, name)
    if project.parent:
        whole = _share(played, project.parent)
    else:
        whole = _capacity(played)
    known = {w.project for w in played.scene.workloads.values()}
    level = [each for each in played.state.projects.values() if each.parent == project.parent]
    level += [Project(each) for each in sorted(known - set(played.state.projects)) if not project.parent]
    spare = max(0, whole - sum(each.guarantee for each in level))
    weights = sum((each.weight for each in level), Fraction(0))
    share = project.guarantee + (int(spare * project.weight / weights) if weights else 0)
    return share if project.cap is None else min(share, project.cap)


def _capacity(played: Played) -> int:
    return view.capacity(view.usable(played.state))


# -- workloads ----------------------------------------------------------------------------------------------------


def _of_workload(test: Callable[[Played, str], Fraction | int | None]) -> Callable[[Scene, str | None], Measure | None]:
    """A measure of the workload in a name, or of the only one."""

    def build(scene: Scene, name: str | None) -> Measure | None:
        known = list(scene.workloads)
        workload = name or (known[0] if len(known) == 1 else "")
        if not name and not workload:
            gangs = [each for each, spec in scene.workloads.items() if spec.gang_min > 1]
            workload = gangs[0] if len(gangs) == 1 else ""
        return (lambda played: _fraction(test(played, workload))) if workload in known else None

    return build


def _fraction(value: Fraction | int | None) -> Fraction | None:
    return None if value is None else Fraction(value)


def _starts(played: Played, name: str) -> Fraction | None:
    at = played.record.start_of(name)
    return None if at is None else Fraction(at - played.scene.origin, SECOND)


def _ends(played: Played, name: str) -> Fraction | None:
    at = played.record.end_of(name)
    return None if at is None else Fraction(at - played.scene.origin, SECOND)


def _reserved(played: Played, name: str) -> Fraction:
    return Fraction(view.units_of(played.state.holds.get(name, ())), GPU)


def _cpus(played: Played, name: str) -> Fraction:
    return Fraction(sum(role.pods * role.ask.cpu for role in played.world.specs[name].roles), 1000)


def _pods(played: Played, name: str) -> int:
    return len(view.bound_pods(played.state, name))


# -- machines -----------------------------------------------------------------------------------------------------


def _free_on(scene: Scene, name: str) -> Measure | None:
    def measure(played: Played) -> Fraction:
        node = played.state.nodes.get(name)
        return Fraction(view.idle_on(played.state, node) if node else 0, GPU)

    return measure if any(node.name == name for node in scene.nodes) else None


def _slots(played: Played) -> int:
    return sum(node.slots * len(node.devices) for node in played.state.nodes.values())


def _slots_used(played: Played) -> int:
    nodes = played.state.nodes
    parts = (
        part.units * nodes[pod.node].slots // GPU
        for pod in view.present_pods(played.state)
        for part in pod.slices
        if pod.node in nodes
    )
    return sum(parts)


def _in_use(played: Played) -> int:
    return len([units for units in view.held_by_device(played.state).values() if units])


def _plain(test: Callable[[Played], Fraction | int]) -> Callable[[Scene], Measure]:
    return lambda _: lambda played: Fraction(test(played))


def _first_pass(_: Scene) -> Measure:
    """CPU seconds of the first pass that decided something."""
    return lambda played: Fraction(played.world.pass_seconds[0]) if played.world.pass_seconds else None


def _second_pass(scene: Scene) -> Measure | None:
    """CPU seconds of a pass when the last workload is submitted once more, under another name."""
    specs = list(scene.workloads.values())

    def measure(played: Played) -> Fraction:
        again = replace(specs[-1], id=f"{specs[-1].id} again")
        now = played.world.now
        apply(played.state, Submitted(now, again))
        began = process_time()
        plan(played.state, now)
        taken = process_time() - began
        apply(played.state, Cancelled(now, again.id))
        return Fraction(taken)

    return measure if specs else None


# -- use over time ------------------------------------------------------------------------------------------------


def zone_of(scene: Scene) -> tzinfo:
    """The scene's time zone."""
    return ZoneInfo(scene.zone)


def _uses(played: Played) -> tuple[Use, ...]:
    return played.record.uses


def _last_hour(played: Played) -> Fraction:
    return gpu_hours(total(within(_uses(played), played.world.now - HOUR, played.world.now)))


def _all_hours(played: Played) -> Fraction:
    since = min((use.start for use in _uses(played)), default=played.world.now)
    return gpu_hours(total(within(_uses(played), since, played.world.now)))


def _on_day(_: Scene, text: str) -> Measure:
    def measure(played: Played) -> Fraction:
        start = moment(f"{text if len(text) > 7 else text + '-01'}T12:00:00Z")
        split, around = (days, timedelta(days=2)) if len(text) > 7 else (months, timedelta(days=40))
        reach = around // timedelta(microseconds=1)
        first = date.fromisoformat(text if len(text) > 7 else f"{text}-01")
        periods = [p for p in split(start - reach, start + reach, zone_of(played.scene)) if p.first == first]
        return gpu_hours(sum(total(within(_uses(played), p.start, p.end)) for p in periods))

    return measure


_TABLE: list[tuple[str, Callable[..., Measure | None]]] = [
    (r"free_on_(.+)", _free_on),
    (r"headroom(?:_(.+))?", _of_project(_headroom)),
    (r"(?:used|usage)(?:_(.+))?", _of_project(_used)),
    (r"borrowed(?:_(.+))?", _of_project(_borrowed)),
    (r"above_limit(?:_(.+))?", _of_project(_above_limit)),
    (r"share(?:_(.+))?", _of_project(_share)),
    (r"capacity_for_shares", _plain(lambda played: Fraction(_capacity(played), GPU))),
    (r"reserved_for_(.+)", _of_workload(_reserved)),
    (r"(?:gang_cpus|cpus)(?:_(.+))?", _of_workload(_cpus)),
    (r"(.+)_counts_mib", _of_workload(lambda played, name: view.memory_of(played.state, name))),
    (r"(.+)_(?:starts|started)(?:_at)?", _of_workload(_starts)),
    (r"(.+)_(?:ends|ended)(?:_at)?", _of_workload(_ends)),
    (r"pods_(?:of_)?(.+)", _of_workload(_pods)),
    (r"evictions(?:_of)?_(.+)", _of_workload(lambda played, name: played.world.evictions[name])),
    (r"evictions", _plain(lambda played: sum(played.world.evictions.values()))),
    (r"evicted_pods", _plain(lambda played: sum(played.world.evicted_pods.values()))),
    (r"gpus_in_use|gpus_allocated", _plain(_in_use)),
    (r"most_shares_on_one_gpu", _plain(lambda played: max(view.pods_by_device(played.state).values(), default=0))),
    (r"free(?:_gpus)?|gpus_free", _plain(lambda played: Fraction(view.idle(played.state), GPU))),
    (r"slots", _plain(_slots)),
    (r"slots_used", _plain(_slots_used)),
    (r"slots_free", _plain(lambda played: _slots(played) - _slots_used(played))),
    (
        r"physical_gpus|cluster_gpus_total",
        _plain(lambda played: sum(len(n.devices) for n in played.state.nodes.values())),
    ),
    (r"gpus_charged", _plain(lambda played: Fraction(view.units_of(view.present_pods(played.state)), GPU))),
    (r"gpu_hours_last_hour", _plain(_last_hour)),
    (r"gpu_hours", _plain(_all_hours)),
    (r"gpu_hours (\d{4}-\d{2}(?:-\d{2})?)", _on_day),
    (r"decision_seconds", _first_pass),
    (r"second_decision_seconds", _second_pass),
]
