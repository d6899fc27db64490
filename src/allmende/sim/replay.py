"""A recorded trace through the engine on a virtual clock, with the books looked at on the way.

The engine never sees a run time; the world that ends the jobs does. What is measured is read off the entries.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from allmende.engine.explain import explain
from allmende.engine.state import State
from allmende.model.event import Event, Submitted
from allmende.model.quantity import MOST
from allmende.model.reason import Code
from allmende.model.request import units_asked
from allmende.model.units import GPU
from allmende.model.workload import Workload
from allmende.sim.traces.table import Job
from allmende.sim.world import Entry, Observer, World

Tick = Callable[[int, int], None]
"""Told now and then how many of how many submits and ends are done."""

_TICK = 100  # instants between two ticks
_CHECK = 2_000  # instants between two looks at the books


class Effort(Struct):
    """What a replay took: passes of the engine, events and decisions folded, seconds by the wall and of a core."""

    passes: int = 0
    entries: int = 0
    seconds: float = 0.0
    core_seconds: float = 0.0


class Watch(Observer):
    """Counts passes and entries, tells how far the replay is, looks at the books, shows each entry to who measures."""

    def __init__(self, jobs: Sequence[Job], tick: Tick, saw: Callable[[Entry], None] | None = None) -> None:
        self.effort = Effort()
        self.unbalanced: list[str] = []
        self._total = len(jobs) + sum(job.duration is not None for job in jobs)
        self._instants = 0
        self._tick = tick
        self._saw = saw

    def told(self, world: World) -> None:
        """An instant begins. Its last pass decides nothing, so nobody else tells of it."""
        self.effort.passes += 1

    def round(self, world: World, entries: Sequence[Entry]) -> None:
        """A pass that decided something."""
        self.effort.passes += 1

    def settled(self, world: World, entries: Sequence[Entry], until: int) -> None:
        """An instant is over."""
        self.effort.entries += len(entries)
        if self._saw is not None:
            for entry in entries:
                self._saw(entry)
        self._instants += 1
        if self._instants % _TICK == 0:
            self._tick(len(world.state.standings) + 2 * len(world.state.outcomes), self._total)
        if self._instants % _CHECK == 0:
            self.unbalanced += unbalanced(world.state)

    def end(self, world: World, seconds: float, core_seconds: float) -> None:
        """The replay is over, after so many seconds."""
        self.effort.seconds, self.effort.core_seconds = seconds, core_seconds
        self.unbalanced += unbalanced(world.state)
        self._tick(self._total, self._total)


def run(setting: Iterable[Event], jobs: Sequence[Job], watch: Watch) -> State:
    """Submit the jobs in their order, end them after their run times, until nothing more can happen."""
    world = World()
    world.observers.append(watch)
    for event in setting:
        world.at(event.at, event)
    for job in jobs:
        world.at(job.submit, Submitted(job.submit, workload_of(job)))
        if job.duration is not None:
            world.work[job.id] = job.duration
    wall, core = time.perf_counter(), time.process_time()
    world.run(MOST)
    watch.end(world, time.perf_counter() - wall, time.process_time() - core)
    return world.state


def workload_of(job: Job) -> Workload:
    """The job as a workload: a gang of all its pods, without any promise of how long it runs."""
    return Workload(job.id, job.project, job.roles, gang_min=job.pods, user=job.user)


def binding(state: State, name: str) -> str:
    """The code of the constraint that binds a waiting workload; of several GPU models tried, that of the first."""
    reason = explain(state, name, state.now)
    if reason is None:
        raise ValueError(f"{name} waits without a reason")
    parts = reason.parts if reason.code is Code.ALL_MODELS else ()
    return next((part.code.value for part in parts if part.binding == reason.binding), reason.code.value)


def unbalanced(state: State) -> list[str]:
    """What does not add up, [] where everything does.

    Conserved: each running workload holds exactly the GPU units that its pods ask for; no GPU gives more than itself;
    no node more CPU or memory than it has.
    """
    found = []
    units: Counter[tuple[str, int]] = Counter()
    cpu: Counter[str] = Counter()
    ram: Counter[str] = Counter()
    for name, standing in state.standings.items():
        if not standing.pods:
            continue
        asks = [standing.workload.roles[pod.role].ask for pod in standing.pods]
        held, asked = sum(pod.units for pod in standing.pods), sum(units_asked(ask) for ask in asks)
        if held != asked:
            found.append(f"{name} holds {held} units and asks for {asked}")
        for pod, ask in zip(standing.pods, asks, strict=True):
            cpu[pod.node] += ask.cpu
            ram[pod.node] += ask.ram
            for part in pod.slices:
                units[pod.node, part.device] += part.units
    for (node, device), taken in units.items():
        if taken > GPU or all(one.index != device for one in state.nodes[node].devices):
            found.append(f"{taken} units are taken of GPU {device} of {node}")
    for what, taken_of in (("cpu", cpu), ("ram", ram)):
        for node, taken in taken_of.items():
            most = getattr(state.nodes[node], what)
            if most is not None and taken > most:
                found.append(f"{taken} of {most} {what} are taken of {node}")
    return found
