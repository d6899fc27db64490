"""The openb replay: pods arrive in their order and never leave; what is still waiting at the end has failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct, field

from allmende.engine.state import State
from allmende.model.cluster import Node
from allmende.model.event import Event, NodeSet, ProjectSet
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.sim.replay import Effort, Tick, Watch, binding, run
from allmende.sim.traces.table import Job


class Size(Struct):
    """Pods of one size: how many arrived, with how many GPU units, and why the failed ones wait (code to pods)."""

    name: str
    arrived: int = 0
    units: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    failed_units: int = 0


class Packing(Struct):
    """The end of the openb replay: where all GPU units are, what failed and why.

    `free_whole`: units of GPUs nobody uses; `free_partial`: what is left of the `partial` GPUs in part use.
    """

    capacity: int
    allocated: int
    free_whole: int
    free_partial: int
    partial: int
    sizes: list[Size]
    effort: Effort
    unbalanced: list[str]


CONSTRAINED = "with model constraint"
"""The row that counts pods of every size which name GPU models."""


def openb(nodes: Sequence[Node], jobs: Sequence[Job], tick: Tick) -> Packing:
    """Let the pods arrive in their order and stay; those that wait at the end have failed."""
    capacity = GPU * sum(len(node.devices) for node in nodes)
    setting: list[Event] = [NodeSet(0, node) for node in nodes]
    names = {job.project for job in jobs}
    setting += [ProjectSet(0, Project(name, guarantee=capacity // len(names))) for name in sorted(names)]
    watch = Watch(jobs, tick)
    state = run(setting, jobs, watch)
    left = {(node.name, device.index): GPU for node in nodes for device in node.devices}
    for standing in state.standings.values():
        for pod in standing.pods:
            for part in pod.slices:
                left[pod.node, part.device] -= part.units
    partial = [units for units in left.values() if 0 < units < GPU]
    whole = sum(units for units in left.values() if units == GPU)
    return Packing(
        capacity=capacity,
        allocated=capacity - sum(left.values()),
        free_whole=whole,
        free_partial=sum(partial),
        partial=len(partial),
        sizes=_sizes(state, jobs),
        effort=watch.effort,
        unbalanced=watch.unbalanced,
    )


def _sizes(state: State, jobs: Sequence[Job]) -> list[Size]:
    """The pods by size, and once more those with a model constraint."""
    found: dict[tuple[int, int], Size] = {}
    for job in jobs:
        role = job.roles[0]
        ask, rows = role.ask, []
        if ask.share:
            rows.append(((1, 0), "share of a GPU"))
        elif ask.whole:
            rows.append(((2, ask.whole), f"{ask.whole} GPU{'s' if ask.whole > 1 else ''}"))
        else:
            rows.append(((0, 0), "CPU only"))
        if role.where.models:
            rows.append(((3, 0), CONSTRAINED))
        code = "" if state.standings[job.id].pods else binding(state, job.id)
        for key, name in rows:
            size = found.setdefault(key, Size(name))
            size.arrived += 1
            size.units += job.units
            if code:
                size.failed[code] += 1
                size.failed_units += job.units
    return [found[key] for key in sorted(found)]
