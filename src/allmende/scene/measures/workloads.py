"""Figures of workloads: moments, what they ask for, hold and lost."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from allmende.model.request import units_asked
from allmende.model.span import SECOND
from allmende.model.units import GPU
from allmende.scene import view
from allmende.scene.measures.played import Build, Measure, Played, fraction, plain
from allmende.scene.value import Scene


def _of_workload(test: Callable[[Played, str], Fraction | int | None]) -> Callable[[Scene, str | None], Measure | None]:
    """A measure of the workload in a name, or of the only one."""

    def build(scene: Scene, name: str | None) -> Measure | None:
        known = list(scene.workloads)
        workload = name or (known[0] if len(known) == 1 else "")
        if not name and not workload:
            gangs = [each for each, spec in scene.workloads.items() if spec.gang_min > 1]
            workload = gangs[0] if len(gangs) == 1 else ""
        return (lambda played: fraction(test(played, workload))) if workload in known else None

    return build


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


def _gang_gpus(played: Played, name: str) -> Fraction:
    return Fraction(sum(role.pods * units_asked(role.ask) for role in played.world.specs[name].roles), GPU)


def _gang_memory(played: Played, name: str) -> Fraction:
    return Fraction(sum(role.pods * role.ask.ram for role in played.world.specs[name].roles), 2**30)


def _pods(played: Played, name: str) -> int:
    return len(view.bound_pods(played.state, name))


TABLE: list[tuple[str, Build]] = [
    (r"reserved_for_(.+)", _of_workload(_reserved)),
    (r"(?:gang_cpus|cpus)(?:_(.+))?", _of_workload(_cpus)),
    (r"gang_gpus(?:_(.+))?", _of_workload(_gang_gpus)),
    (r"gang_pods(?:_(.+))?", _of_workload(lambda played, name: played.world.specs[name].pods)),
    (r"gang_mem_gib(?:_(.+))?", _of_workload(_gang_memory)),
    (r"(.+)_counts_mib", _of_workload(lambda played, name: view.memory_of(played.state, name))),
    (r"(.+)_(?:starts|started)(?:_at)?", _of_workload(_starts)),
    (r"(.+)_(?:ends|ended)(?:_at)?", _of_workload(_ends)),
    (r"pods_(?:of_)?(.+)", _of_workload(_pods)),
    (r"evictions(?:_of)?_(.+)", _of_workload(lambda played, name: played.world.evictions[name])),
    (r"evictions", plain(lambda played: sum(played.world.evictions.values()))),
    (r"evicted_pods", plain(lambda played: sum(played.world.evicted_pods.values()))),
]
