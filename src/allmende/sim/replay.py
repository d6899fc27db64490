"""Recorded traces through the engine on a virtual clock: openb's pods, which only arrive, and Philly's jobs.

The engine never sees a run time; the world that ends the jobs does. What is measured is read off the entries.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from msgspec import Struct, field

from allmende.engine.explain import explain
from allmende.engine.state import State
from allmende.model.cluster import Device, Node
from allmende.model.decision import Evict, Start
from allmende.model.event import Ended, Event, NodeSet, ProjectSet, Submitted
from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.quantity import MOST
from allmende.model.reason import Code
from allmende.model.request import units_asked
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.model.workload import Workload
from allmende.sim.traces.table import Job
from allmende.sim.world import Entry, Observer, World

PER_NODE = 8
"""GPUs of one node of the Philly replay."""
LEAST = Fraction(1, 100)
"""The least part of all GPU-hours that a project of the Philly replay is weighted with."""

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


# -- openb ---------------------------------------------------------------------------------------------------------


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


# -- Philly --------------------------------------------------------------------------------------------------------


class Account(Struct):
    """What a project, or the whole cluster, held over time. `guarantee`, `held` in GPU units; integrals are x us.

    `queued`: time while anything of it waited; `held_queued`: what it held meanwhile; `lost`: held by attempts
    that were evicted; `asked`: units x run time of its jobs.
    """

    name: str
    guarantee: int
    jobs: int = 0
    asked: int = 0
    total: int = 0
    queued: int = 0
    held_queued: int = 0
    lost: int = 0
    evictions: int = 0
    held: int = 0
    waiting: int = 0
    at: int = 0

    def move(self, at: int, units: int, waiting: int) -> None:
        """At this moment it holds so much more, and so many more wait."""
        since = at - self.at
        if since:
            self.total += self.held * since
            if self.waiting:
                self.queued += since
                self.held_queued += self.held * since
            self.at = at
        self.held += units
        self.waiting += waiting


class Meter:
    """Reads waits, completion times and holdings off the entries."""

    def __init__(self, jobs: Iterable[Job], accounts: dict[str, Account], everything: Account) -> None:
        self._of = {job.id: (job.submit, job.units, accounts[job.project]) for job in jobs}
        self._all = everything
        self._since: dict[str, int] = {}
        self._begun: set[str] = set()
        self.waits: list[int] = []
        self.completions: list[int] = []
        self.until_last_submit = 0

    def saw(self, entry: Entry) -> None:
        """Count one entry."""
        match entry:
            case Submitted(at=at, workload=workload):
                self._move(at, workload.id, 0, 1)
                self.until_last_submit = self._all.total
            case Start(at=at, workload=name):
                submit, units, _ = self._of[name]
                if name not in self._begun:
                    self._begun.add(name)
                    self.waits.append(at - submit)
                self._since[name] = at
                self._move(at, name, units, -1)
            case Evict(at=at, workload=name) if name in self._since:
                _, units, account = self._of[name]
                since = self._since.pop(name)
                for each in (account, self._all):
                    each.evictions += 1
                    each.lost += units * (at - since)
                self._move(at, name, -units, 1)
            case Ended(at=at, workload=name):
                submit, units, _ = self._of[name]
                self.completions.append(at - submit)
                self._move(at, name, -units, 0)

    def _move(self, at: int, name: str, units: int, waiting: int) -> None:
        self._of[name][2].move(at, units, waiting)
        self._all.move(at, units, waiting)


class Queueing(Struct):
    """The end of the Philly replay. Times in us; `waits` (submit to first start) and `completions` are sorted.

    `load`: GPU time asked for over GPU time there is until the last submit, `busy` what was held of the latter.
    `never`: jobs that still wait at the end, by reason code.
    """

    capacity: int
    last_submit: int
    makespan: int
    load: Fraction
    busy: Fraction
    waits: list[int]
    completions: list[int]
    everything: Account
    projects: list[Account]
    never: Counter[str]
    effort: Effort
    unbalanced: list[str]


def faster(jobs: Iterable[Job], speed: float) -> list[Job]:
    """The jobs with their submits `speed` times as dense; run times stay. Raises Mistake for a speed of 0 or less."""
    exact = Fraction(str(speed)) if speed > 0 and speed < float("inf") else Fraction(0)
    if not exact:
        raise Mistake(MistakeCode.ZERO, str(speed), "--speed", "write a number above 0 such as 7", "is no speed")
    return [
        Job(j.id, j.project, j.user, j.submit * exact.denominator // exact.numerator, j.duration, j.roles) for j in jobs
    ]


def guarantees(asked: dict[str, int], gpus: int) -> dict[str, int]:
    """Whole GPUs for each project, in all `gpus`: by the GPU time it asks for, at least LEAST of all, normalised.

    What is left by rounding down goes to the largest remainders, then by name.
    """
    everything = sum(asked.values()) or 1
    weights = {name: max(Fraction(time, everything), LEAST) for name, time in asked.items()}
    exact = {name: gpus * weight / sum(weights.values()) for name, weight in weights.items()}
    found = {name: int(share) for name, share in exact.items()}
    by_rest = sorted(exact, key=lambda name: (found[name] - exact[name], name))
    for name in by_rest[: gpus - sum(found.values())]:
        found[name] += 1
    return found


def cluster(gpus: int) -> list[Node]:
    """Equal nodes of PER_NODE GPUs. Raises Mistake for a number of GPUs they cannot make."""
    if gpus <= 0 or gpus % PER_NODE:
        do = f"write a multiple of {PER_NODE} such as 1024"
        raise Mistake(MistakeCode.NOT_WHOLE, str(gpus), "--gpus", do, f"makes no whole nodes of {PER_NODE} GPUs")
    devices = tuple(Device(index) for index in range(PER_NODE))
    return [Node(f"node-{number:04d}", devices) for number in range(gpus // PER_NODE)]


def philly(jobs: Sequence[Job], gpus: int, tick: Tick) -> Queueing:
    """Run the jobs to their ends on a cluster of equal nodes, their virtual clusters as projects with guarantees."""
    asked: dict[str, int] = {job.project: 0 for job in sorted(jobs, key=lambda job: job.project)}
    for job in jobs:
        asked[job.project] += job.units * (job.duration or 0)
    accounts = {name: Account(name, units * GPU, asked=asked[name]) for name, units in guarantees(asked, gpus).items()}
    for job in jobs:
        accounts[job.project].jobs += 1
    everything = Account("", gpus * GPU, jobs=len(jobs), asked=sum(asked.values()))
    meter = Meter(jobs, accounts, everything)
    setting: list[Event] = [NodeSet(0, node) for node in cluster(gpus)]
    for name, account in accounts.items():
        weight = Fraction(account.guarantee, GPU) or Fraction(1)
        setting.append(ProjectSet(0, Project(name, guarantee=account.guarantee, weight=weight)))
    watch = Watch(jobs, tick, meter.saw)
    state = run(setting, jobs, watch)
    last = max(job.submit for job in jobs)
    there = gpus * GPU * max(last, 1)
    waiting = [name for name, standing in state.standings.items() if not standing.pods]
    return Queueing(
        capacity=gpus * GPU,
        last_submit=last,
        makespan=everything.at,
        load=Fraction(everything.asked, there),
        busy=Fraction(meter.until_last_submit, there),
        waits=sorted(meter.waits),
        completions=sorted(meter.completions),
        everything=everything,
        projects=list(accounts.values()),
        never=Counter(binding(state, name) for name in waiting),
        effort=watch.effort,
        unbalanced=watch.unbalanced,
    )
