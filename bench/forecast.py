"""How good the start intervals are: `python -m bench.forecast [--quick] [--unseen]`.

The Philly trace through the real engine, 1,024 GPUs, in two settings: submits 7 times as dense (load about 2.6) and
2.7 times (about 1). Nothing is evicted (the trace knows no checkpoints), all virtual clusters have equal guarantees.
Once a day of the cluster's clock everybody who waits gets a forecast from what is known then. Forecasts of the first
half of the trace teach the calibration, which is frozen at the half; those of the second half are scored against the
true starts, which are played to the end.
Baseline: 10 and 90 % of past waits by owner and size, of what had started by then, in two readings (plain, and of
waits longer than the one so far); the bar is held against the better.

What is frozen at the half is what was learnt. The form of the method (the scale of the fourth root, how classes of
history are mixed, the errors expected before any were seen) was chosen on this trace by people who saw scores of its
second half in a prototype. `--unseen` therefore adds a setting that was never looked at while that was done: 4 times
as dense, guarantees by demand. It is held to no bar.

`--quick`: every fourth job on a quarter of the nodes, and a quarter as many forecasts scored. Fewer and more alike
cases: its figures scatter more than those of the whole.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec import Struct

from allmende.engine.draws import Draws
from allmende.engine.forecast import (
    COVER,
    HORIZON,
    Calibration,
    Foretold,
    Knowledge,
    affordable,
    calibrate,
    forecast,
    futures,
    interval,
    root,
    unroot,
)
from allmende.engine.history import size_of
from allmende.engine.state import State
from allmende.model.decision import Start
from allmende.model.event import Event, NodeSet, PolicySet, ProjectSet, Submitted
from allmende.model.policy import Policy
from allmende.model.quantity import MOST
from allmende.model.span import DAY, HOUR
from allmende.model.standing import Phase, Standing
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.sim.philly import PER_NODE, cluster, faster, guarantees
from allmende.sim.replay import workload_of
from allmende.sim.traces.philly import read_jobs
from allmende.sim.traces.table import Job
from allmende.sim.world import Entry, Observer, World
from bench import calibrate as machine
from bench.result import Row, report

GPUS = 1024
SPEEDS = (7.0, 2.7)
UNSEEN = 4.0
CASES = 3_000  # scored of each setting, about
LEAST_CASES = 2_000  # the issue's
LEARNT = 1_000  # forecasts of one moment that are kept to learn from
FEW = 20  # past waits that the baseline asks for before it takes a wider class
COVERED = (0.70, 0.90)
GAIN = 0.20
REFRESH_PENDING = 2_000
REFRESH_S = 20.0

WAYS = ("ours", "ours, learning on", "futures alone", "baseline, plain", "baseline, longer waits")


class Case(Struct):
    """One scored forecast: when it was made, and by each of WAYS the interval (low, high), microseconds."""

    made: int
    workload: str
    median: int
    bounds: dict[str, tuple[int, int]]


class Score(Struct):
    """Means over cases: part of true starts inside, width and interval score (Winkler 1972) in hours."""

    held: float
    width: float
    score: float


def score(bounds: Sequence[tuple[int, int]], true: Sequence[int]) -> Score:
    """Score intervals: each costs its width, and 2 / alpha times what the truth lies outside."""
    held = width = missed = 0
    for (low, high), start in zip(bounds, true, strict=True):
        off = max(low - start, start - high, 0)
        held += off == 0
        width += high - low
        missed += off
    alpha = (100 - COVER) / 100
    cases = len(true)
    return Score(held / cases, width / cases / HOUR, (width + 2 / alpha * missed) / cases / HOUR)


class Trial(Observer):
    """One setting: the trace is played once; at each moment what is known then makes a forecast."""

    def __init__(self, jobs: Sequence[Job], gpus: int, every: int, sample: int, *, by_demand: bool = False) -> None:
        self.jobs, self.gpus, self.every, self.sample, self.by_demand = jobs, gpus, every, sample, by_demand
        self.last = max(job.submit for job in jobs)
        self.starts: dict[str, int] = {}
        self.past: list[Foretold] = []
        self.frozen: Calibration | None = None
        self.cases: list[Case] = []
        self.crowded: tuple[State, int] | None = None
        self.moments: list[tuple[int, int]] = []
        self.foretelling = 0.0
        self.playing = 0.0

    def play(self) -> None:
        """Run the trace until everybody has ended."""
        world = World()
        world.observers.append(self)
        for event in self.setting():
            world.at(0, event)
        for job in self.jobs:
            world.at(job.submit, Submitted(job.submit, workload_of(job)))
            world.work[job.id] = job.duration or 0
        for at in range(self.every, self.last, self.every):
            world.at(at, self.look)
        began = time.perf_counter()
        world.run(MOST)
        self.playing = time.perf_counter() - began - self.foretelling

    def setting(self) -> Iterable[Event]:
        """The cluster and its projects."""
        yield PolicySet(0, Policy(evictions=False))
        for node in cluster(self.gpus):
            yield NodeSet(0, node)
        asked = dict.fromkeys(sorted({job.project for job in self.jobs}), 0)
        for job in self.jobs:
            asked[job.project] += job.units * (job.duration or 0)
        given = guarantees(asked, self.gpus) if self.by_demand else dict.fromkeys(asked, self.gpus // len(asked))
        for name, gpus in given.items():
            yield ProjectSet(0, Project(name, guarantee=gpus * GPU, weight=Fraction(gpus or 1)))

    def settled(self, world: World, entries: Sequence[Entry], until: int) -> None:
        """Note the starts, and keep the first state with REFRESH_PENDING waiting."""
        for entry in entries:
            if isinstance(entry, Start):
                self.starts.setdefault(entry.workload, entry.at)
        if (
            self.crowded is None
            and len(world.state.standings) > REFRESH_PENDING
            and len(queued(world.state)) >= REFRESH_PENDING
        ):
            self.crowded = (world.state.fork(), world.now)

    def look(self, world: World) -> Iterable[Event]:
        """Make the forecasts of this moment; nothing happens by it."""
        began = time.perf_counter()
        if queued(world.state):
            self.foretell(world.state, world.now)
        self.foretelling += time.perf_counter() - began
        return ()

    def foretell(self, state: State, now: int) -> None:
        """Foretell all that wait: to learn from before the half, scored after it."""
        learnt = calibrate(self.known(), now)
        if self.frozen is None and now * 2 >= self.last:
            self.frozen = learnt
        knowledge = Knowledge(state, now, Calibration())
        waiting = queued(state)
        seen = futures(state, now, knowledge, affordable(len(waiting)), seed=now)
        draws = Draws(now)
        for standing in some(waiting, LEARNT, draws):
            workload = standing.workload
            median = interval(now, seen[workload.id], Calibration()).median
            owner = (workload.project, workload.user)
            self.past.append(Foretold(now, workload.id, owner, size_of(standing), _at(median, now), None))
        if self.frozen is not None:
            self.moments.append((now, len(waiting)))
            baseline = Baseline(state, now)
            for standing in some(waiting, self.sample, draws):
                self.case(standing, now, seen[standing.workload.id], learnt, baseline)
        print(f"  day {now / DAY:.0f}: {len(waiting):,} wait, band {band(learnt)}", file=sys.stderr, flush=True)

    def case(
        self, standing: Standing, now: int, starts: list[int | None], learnt: Calibration, baseline: Baseline
    ) -> None:
        """Put down what each way says of one workload."""
        bounds = {}
        calibrations = (self.frozen or learnt, learnt, Calibration())
        for way, calibration in zip(WAYS, calibrations, strict=False):
            found = interval(now, starts, calibration)
            bounds[way] = (_at(found.low, now), _at(found.high, now))
        bounds[WAYS[3]] = baseline.bounds(standing, longer=False)
        bounds[WAYS[4]] = baseline.bounds(standing, longer=True)
        median = _at(interval(now, starts, Calibration()).median, now)
        self.cases.append(Case(now, standing.workload.id, median, bounds))

    def known(self) -> list[Foretold]:
        """Past forecasts with what has come of them."""
        return [
            Foretold(one.made, one.workload, one.owner, one.units, one.median, self.starts.get(one.workload))
            for one in self.past
        ]

    def scores(self) -> dict[str, Score]:
        """Each way's score over all cases."""
        true = [self.starts[case.workload] for case in self.cases]
        return {way: score([case.bounds[way] for case in self.cases], true) for way in WAYS}

    def held_by_moment(self) -> list[float]:
        """The part held at each moment: cases of one moment share their luck."""
        found = []
        for at, _ in self.moments:
            mine = [case for case in self.cases if case.made == at]
            true = [self.starts[case.workload] for case in mine]
            found.append(round(score([case.bounds[WAYS[0]] for case in mine], true).held, 2))
        return found


class Baseline:
    """Past waits of all that has started, by project and size; the wider class where there are fewer than FEW."""

    def __init__(self, state: State, now: int) -> None:
        self.now = now
        self.waits: dict[object, list[int]] = {}
        for standing in state.standings.values():
            if standing.first_started is not None:
                self.count(standing.workload.project, size_of(standing), standing.first_started - standing.submitted)
        for outcome in state.outcomes.values():
            if outcome.started is not None:
                self.count(outcome.project, outcome.units, outcome.started - outcome.submitted)
        for waits in self.waits.values():
            waits.sort()

    def count(self, project: str, units: int, wait: int) -> None:
        """Put one wait into all classes it belongs to."""
        for key in ((project, units), project, units, None):
            self.waits.setdefault(key, []).append(wait)

    def bounds(self, standing: Standing, *, longer: bool) -> tuple[int, int]:
        """10 and 90 % of past waits from its submit, never before now; `longer`: of those longer than its own so far.

        Where none of the past was longer: from now until it has waited twice as long as until now.
        """
        units, project = size_of(standing), standing.workload.project
        so_far = self.now - standing.submitted
        waits: list[int] = []
        for key in ((project, units), project, units, None):
            waits = self.waits.get(key, [])
            if longer:
                waits = waits[bisect_right(waits, so_far) :]
            if len(waits) >= FEW:
                break
        if not waits:
            return self.now, self.now + so_far
        part = (100 - COVER) // 2
        low, high = (waits[min(len(waits) - 1, len(waits) * each // 100)] for each in (part, 100 - part))
        low = max(self.now, standing.submitted + low)
        return low, max(low, standing.submitted + high)


def queued(state: State) -> list[Standing]:
    """All that wait, by id."""
    waiting = (standing for standing in state.standings.values() if standing.phase is Phase.QUEUED)
    return sorted(waiting, key=lambda standing: standing.workload.id)


def some(waiting: list[Standing], most: int, draws: Draws) -> list[Standing]:
    """At most so many of them, drawn without replacement."""
    left = waiting[:]
    found: list[Standing] = []
    while left and len(found) < most:
        at = draws.below(len(left))
        left[at], left[-1] = left[-1], left[at]
        found.append(left.pop())
    return found


def say(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)


def band(calibration: Calibration) -> tuple[float, float]:
    """What an interval is around a foretold wait of a day, in hours."""
    middle = root(DAY)
    low, high = (unroot(middle + sign * calibration.off) / HOUR for sign in (-1, 1))
    return round(low, 1), round(high, 1)


def _at(moment: int | None, now: int) -> int:
    return now + HORIZON if moment is None else moment


def refresh(trial: Trial) -> tuple[float, int]:
    """Seconds of one whole refresh of REFRESH_PENDING waiting workloads, history included; and how many futures."""
    if trial.crowded is None:
        raise RuntimeError(f"never were {REFRESH_PENDING} waiting")
    state, now = trial.crowded
    runs = affordable(REFRESH_PENDING)
    began = time.perf_counter()
    forecast(state, now, Knowledge(state, now, calibrate((), now)), runs, seed=1)
    return time.perf_counter() - began, runs


def rows_of(speed: float, trial: Trial, quick: bool) -> list[Row]:
    """The figures of one setting, with their bars; those of a setting by demand are held to none."""
    found = trial.scores()
    ours = found[WAYS[0]]
    plain = min(found[WAYS[3]].score, found[WAYS[4]].score)
    name = f"x{speed:g}: "
    low, high = COVERED
    least = LEAST_CASES // 4 if quick else LEAST_CASES
    most = (1 - GAIN) * plain
    held = low <= ours.held <= high
    rows = [
        Row(f"{name}forecasts scored", len(trial.cases), bar=least, ok=len(trial.cases) >= least),
        Row(f"{name}true starts held by the {COVER} % band", ours.held, bar=f"{low} to {high}", ok=held),
        Row(f"{name}mean interval score (h)", ours.score, peer=plain, bar=most, ok=ours.score <= most),
        Row(f"{name}  better than the baseline by", 1 - ours.score / plain, bar=GAIN),
    ]
    if trial.by_demand:
        rows = [Row(f"unseen {row.name}", row.ours, row.peer) for row in rows]
    for way in WAYS:
        one = found[way]
        figures = f"{one.held:.3f}, {one.width:.1f}, {one.score:.1f}"
        rows.append(Row(f"{name}  {way}: held, width (h), score (h)", figures))
    return rows


def facts_of(trial: Trial) -> dict[str, Any]:
    """What else a reader should know of one setting."""
    true = [trial.starts[case.workload] for case in trial.cases]
    off = sum(abs(case.median - start) for case, start in zip(trial.cases, true, strict=True))
    waits = sorted(start - case.made for case, start in zip(trial.cases, true, strict=True))
    return {
        "moments": [(round(at / DAY, 1), waiting) for at, waiting in trial.moments],
        "held by moment": trial.held_by_moment(),
        "frozen band of a wait of a day (h)": band(trial.frozen or Calibration()),
        "median off by (h)": round(off / len(true) / HOUR, 1),
        "median true wait from then (h)": round(waits[len(waits) // 2] / HOUR, 1),
        "seconds playing, foretelling": (round(trial.playing), round(trial.foretelling)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.forecast", description="Score the forecast of start times.")
    parser.add_argument("--quick", action="store_true", help="every fourth job on a quarter of the nodes")
    parser.add_argument("--unseen", action="store_true", help="one setting more, which the method was not made on")
    arguments = parser.parse_args()
    quick = arguments.quick
    folder = Path(os.environ.get("ALLMENDE_SHARED", "../shared")) / "data" / "philly"
    jobs, _ = read_jobs(str(folder), PER_NODE)
    rows, facts = [], {}
    seconds, runs = 0.0, 0
    for speed in (*SPEEDS, *([UNSEEN] if arguments.unseen else [])):
        say(f"x{speed:g}")
        dense = faster(jobs[::4] if quick else jobs, speed)
        scored = max(job.submit for job in dense) // DAY // 2
        cases = CASES // (4 if quick else 1) // scored
        trial = Trial(dense, GPUS // 4 if quick else GPUS, DAY, cases, by_demand=speed == UNSEEN)
        trial.play()
        rows += rows_of(speed, trial, quick)
        facts[f"x{speed:g}"] = facts_of(trial)
        if speed in SPEEDS and trial.crowded is not None:
            seconds, runs = refresh(trial)
    scale = machine.factor()
    name = f"refresh of {REFRESH_PENDING:,} waiting, {runs} futures (s)"
    rows.append(Row(name, seconds, bar=REFRESH_S * scale, ok=seconds <= REFRESH_S * scale))
    return report("forecast", rows, quick=quick, factor=scale, facts=facts)


if __name__ == "__main__":
    raise SystemExit(main())
