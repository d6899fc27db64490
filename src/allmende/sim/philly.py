"""The Philly replay: jobs of virtual clusters on equal nodes; waits, completion times, who held how much meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from msgspec import Struct

from allmende.model.cluster import Device, Node
from allmende.model.decision import Evict, Start
from allmende.model.event import Ended, Event, NodeSet, ProjectSet, Submitted
from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.sim.replay import Effort, Tick, Watch, binding, run
from allmende.sim.traces.table import Job
from allmende.sim.world import Entry

PER_NODE = 8
"""GPUs of one node of the Philly replay."""
LEAST = Fraction(1, 100)
"""The least part of all GPU-hours that a project of the Philly replay is weighted with."""


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
