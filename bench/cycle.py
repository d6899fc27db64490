"""How long a pass takes: `python -m bench.cycle [--quick]`.

CPU time of one core (a pass waits for nothing), so that neighbours on a shared machine count less; bars from issue 3,
scaled by bench.calibrate. A quick run is short and on a machine that may be busy: it is held to QUICK times the bars,
which catches what went wrong and proves no bar; the full run is held to the bars themselves.
"""

from __future__ import annotations

import argparse
import gc
import math
import time
from fractions import Fraction
from typing import Protocol

from msgspec.structs import replace

from allmende.engine.apply import apply
from allmende.engine.plan import plan
from allmende.engine.search import Search
from allmende.model.decision import Evict
from allmende.model.event import Ended, PodGone, ProjectSet, Submitted
from allmende.model.standing import Phase
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.model.workload import Workload
from bench import calibrate
from bench.crowd import GPUS_PER_NODE, Crowd
from bench.result import Row, report

Timing = dict[str, float]
QUICK = 5


class Bar(Protocol):
    """Adds a row to the table."""

    def __call__(self, name: str, ours: float, limit: float | None, peer: float | None = None) -> None: ...


def crowd(nodes: int, pending: int, shapes: int, projects: int, areas: int, *, own: bool = False) -> Crowd:
    """A full cluster with so many waiting, settled until nothing moves; with `own` every request has its own shape."""
    made = Crowd()
    models = ("H100",) if shapes == 1 else ("H100", "A100", "H200")
    made.nodes(nodes, models)
    made.tree(areas, projects, nodes * GPUS_PER_NODE, Fraction(9, 10))
    made.settle()
    for _ in range(pending + nodes * 3):
        workload = made.mixed(shapes, models)
        made.submit(own_shape(workload, made.count) if own else workload)
    made.settle(200)
    while _waiting(made) < pending:
        for _ in range(pending - _waiting(made)):
            workload = made.mixed(shapes, models)
            made.submit(own_shape(workload, made.count) if own else workload)
        made.settle(200)
    return made


def _waiting(made: Crowd) -> int:
    return sum(len(line.entries) for queue in made.state.index.queues.values() for line in queue.lines.values())


def cold_full(made: Crowd, times: int = 5) -> float:
    """Milliseconds of a pass on a full cluster with the index built anew and every waiting request judged."""
    return _best(made, times)


def cold_empty(nodes: int, pending: int, shapes: int, projects: int, areas: int, times: int = 5) -> tuple[float, int]:
    """Milliseconds of the first pass over an idle cluster with the whole queue before it; how many it started."""
    made = Crowd()
    models = ("H100",) if shapes == 1 else ("H100", "A100", "H200")
    made.nodes(nodes, models)
    made.tree(areas, projects, nodes * GPUS_PER_NODE, Fraction(9, 10))
    for _ in range(pending):
        made.submit(made.mixed(shapes, models))
    started = len(plan(made.state, made.now).decisions)
    return _best(made, times), started


def _best(made: Crowd, times: int) -> float:
    fastest = math.inf
    for _ in range(times):
        gc.collect()
        gc.freeze()
        begin = time.process_time()
        made.state.index.stale = True
        plan(made.state, made.now)
        fastest = min(fastest, time.process_time() - begin)
        gc.unfreeze()
    return fastest * 1000


def warm(made: Crowd, events: int, shapes: int, distinct: bool = False) -> Timing:
    """Milliseconds of apply + plan + apply after one submit or one end, over `events` of them."""
    models = ("H100",) if shapes == 1 else ("H100", "A100", "H200")
    draw = made.random
    taken: list[float] = []
    gc.collect()
    gc.freeze()
    for turn in range(events):
        if turn % 2:
            running = [name for name, s in made.state.standings.items() if s.phase is Phase.RUNNING]
            event: Ended | Submitted = Ended(made.now, draw.choice(running))
        else:
            workload = made.mixed(shapes, models)
            event = Submitted(made.now, own_shape(workload, made.count) if distinct else workload)
        made.now += 1_000_000
        begin = time.process_time()
        apply(made.state, event)
        decided = plan(made.state, made.now)
        taken.append((time.process_time() - begin) * 1000)
        made.follow(decided)
        # The claimants start in passes of their own, which are timed too.
        while any(isinstance(d, Evict) for d in decided.decisions):
            begin = time.process_time()
            decided = plan(made.state, made.now)
            taken.append((time.process_time() - begin) * 1000)
            made.follow(decided)
    gc.unfreeze()
    taken.sort()
    return {"p50": taken[len(taken) // 2], "p99": taken[min(len(taken) - 1, int(len(taken) * 0.99))], "max": taken[-1]}


def own_shape(workload: Workload, serial: int) -> Workload:
    """The same request with CPUs that nobody else asks for."""
    role = workload.roles[0]
    return replace(
        workload,
        roles=(replace(role, ask=replace(role.ask, cpu=role.ask.cpu + serial % 997, ram=role.ask.ram + serial)),),
    )


def reclaim(nodes: int) -> tuple[float, float]:
    """Seconds of the pass (with its decisions applied), and of the whole cycle until all claimants run.

    Every GPU is held by one-GPU jobs of two over-share projects; as many one-GPU jobs of an under-share one wait.
    """
    best_pass, best_cycle = math.inf, math.inf
    for _ in range(3 if nodes >= 500 else 5):
        made = _held(nodes)
        gpus = nodes * GPUS_PER_NODE
        for _ in range(gpus):
            made.submit(made.workload("poor", 1, 1, cpu=1000))
        gc.collect()
        gc.freeze()
        begin = time.process_time()
        decided = plan(made.state, made.now)
        for decision in decided.decisions:
            apply(made.state, decision)
        best_pass = min(best_pass, time.process_time() - begin)
        for decision in decided.decisions:
            if isinstance(decision, Evict):
                for pod in decision.pods:
                    apply(made.state, PodGone(made.now, pod))
        started = plan(made.state, made.now)
        for decision in started.decisions:
            apply(made.state, decision)
        best_cycle = min(best_cycle, time.process_time() - begin)
        gc.unfreeze()
        running = made.state.index.tree.leaf("poor").use
        if running != gpus * GPU:
            raise AssertionError(f"{running // GPU} of {gpus} GPUs were given back")
    return best_pass, best_cycle


def _held(nodes: int) -> Crowd:
    made = Crowd()
    made.nodes(nodes)
    gpus = nodes * GPUS_PER_NODE
    made.tell(ProjectSet(0, Project("rich1")))
    made.tell(ProjectSet(0, Project("rich2")))
    made.tell(ProjectSet(0, Project("poor", guarantee=gpus * GPU)))
    for index in range(gpus):
        made.submit(made.workload(f"rich{1 + index % 2}", 1, 1, cpu=1000))
    made.settle()
    return made


def reclaim_gangs(nodes: int = 1250) -> tuple[float, float, int, int]:
    """Seconds of the passes in which gangs of mixed sizes take room back (each ends with the first claim that leaves
    room over); mean gap to the bound in GPUs a claim; claims; searches unproved."""
    fastest = math.inf
    gap, unproved, claims = 0.0, 0, 0
    for _ in range(3):
        made = _held_by_gangs(nodes)
        for pods, per in GANGS * 2:
            made.submit(made.workload("poor", pods, per, cpu=1000))
        gc.collect()
        gc.freeze()
        taken = 0.0
        found: list[Search] = []
        while True:
            begin = time.process_time()
            decided = plan(made.state, made.now)
            taken += time.process_time() - begin
            found += decided.searches
            if not any(isinstance(d, Evict) for d in decided.decisions):
                break
            for decision in decided.decisions:
                apply(made.state, decision)
        gc.unfreeze()
        fastest = min(fastest, taken)
        answered = [s for s in found if s.units]
        gap = sum(s.units - s.bound for s in answered) / GPU / max(1, len(answered))
        claims, unproved = len(answered), sum(not s.exact for s in answered)
    return fastest, gap, claims, unproved


GANGS = ((1, 8), (2, 8), (4, 8), (4, 4), (8, 1), (8, 8), (16, 8), (1, 4), (3, 2), (1, 1))
"""(pods, GPUs per pod) of the claimants; the first eight are those of reference/engine.md section 2.7."""


def _held_by_gangs(nodes: int) -> Crowd:
    made = Crowd(7)
    made.nodes(nodes)
    gpus = nodes * GPUS_PER_NODE
    for index in range(20):
        made.tell(ProjectSet(0, Project(f"rich{index}", guarantee=gpus // 40 * GPU)))
    made.tell(ProjectSet(0, Project("poor", guarantee=gpus // 2 * GPU)))
    made.projects = [f"rich{index}" for index in range(20)]
    for _ in range(40):
        for _ in range(400):
            made.submit(made.mixed(1, ("H100",)))
        made.settle(4)
        if sum(branch.use for branch in made.state.index.tree.branches.values()) >= gpus * GPU * 99 // 100:
            break
    for name in [n for n, s in made.state.standings.items() if s.phase is Phase.QUEUED]:
        made.tell(Ended(made.now, name))
    return made


def main() -> int:
    """Run all shapes and print them beside their bars."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--quick", action="store_true", help="the small cluster and the small reclaim only")
    quick = words.parse_args().quick
    scale = calibrate.factor()
    rows: list[Row] = []

    slack = QUICK if quick else 1

    def bar(name: str, ours: float, limit: float | None, peer: float | None = None) -> None:
        """One row; a limit is scaled to this machine."""
        limit = None if limit is None else limit * slack
        rows.append(
            Row(
                name,
                round(ours, 3),
                peer,
                None,
                None if limit is None else round(limit * scale, 3),
                None if limit is None else ours <= limit * scale,
            )
        )

    _small(bar, quick)
    if not quick:
        _large(bar)
        _own_shapes(bar)
    growths = _reclaims(bar, quick)
    if growths is not None:
        rows.append(
            Row(
                "reclaim: growth of the pass from 200 to 500 nodes (exponent)",
                round(growths, 2),
                2.2,
                None,
                1.3,
                growths <= 1.3,
            )
        )
    if not quick:
        seconds, gap, claims, unproved = reclaim_gangs()
        bar(f"reclaim for {claims} gangs of mixed sizes, 1,250 nodes (s)", seconds, 2.0)
        rows.append(Row("  mean gap to the bound (GPUs per claim)", round(gap, 3)))
        rows.append(Row("  searches that ended unproved", unproved))
    return report("cycle", rows, quick=quick, factor=scale)


def _small(bar: Bar, quick: bool) -> None:
    made = crowd(128, 2000, 400, 30, 5)
    bar("1,024 GPUs, 2,000 pending: cold pass, full cluster (ms)", cold_full(made), 100)
    first, started = cold_empty(128, 2000, 400, 30, 5, 3 if quick else 5)
    bar(f"1,024 GPUs, 2,000 pending: cold pass, idle cluster, {started} starts (ms)", first, 100)
    timing = warm(made, 200 if quick else 600, 400)
    bar("1,024 GPUs, 2,000 pending: warm pass p50 (ms)", timing["p50"], None)
    bar("1,024 GPUs, 2,000 pending: warm pass p99 (ms)", timing["p99"], 5)


def _large(bar: Bar) -> None:
    made = crowd(1250, 50_000, 400, 300, 20)
    shapes = len({line.shape for queue in made.state.index.queues.values() for line in queue.lines.values()})
    bar(f"10,000 GPUs, 50,000 pending in {shapes} shapes: cold pass, full cluster (ms)", cold_full(made), 3000)
    first, started = cold_empty(1250, 50_000, 400, 300, 20, 2)
    bar(f"10,000 GPUs, 50,000 pending: cold pass, idle cluster, {started} starts (ms)", first, 3000)
    timing = warm(made, 600, 400)
    bar("10,000 GPUs, 50,000 pending: warm pass p50 (ms)", timing["p50"], None)
    bar("10,000 GPUs, 50,000 pending: warm pass p99 (ms)", timing["p99"], 20)


def _own_shapes(bar: Bar) -> None:
    made = crowd(1250, 50_000, 400, 300, 20, own=True)
    shapes = len({line.shape for queue in made.state.index.queues.values() for line in queue.lines.values()})
    timing = warm(made, 200, 400, distinct=True)
    bar(f"10,000 GPUs, 50,000 pending, {shapes} shapes: warm pass p50 (ms)", timing["p50"], 20, None)
    bar(f"10,000 GPUs, 50,000 pending, {shapes} shapes: warm pass p99 (ms)", timing["p99"], None, None)


def _reclaims(bar: Bar, quick: bool) -> float | None:
    small_pass, small_cycle = reclaim(200)
    bar("reclaim, 200 nodes x 8: pass with its decisions applied (s)", small_pass, 0.3, 26.7)
    bar("reclaim, 200 nodes x 8: until all claimants are started (s)", small_cycle, None, 26.7)
    if quick:
        return None
    large_pass, large_cycle = reclaim(500)
    bar("reclaim, 500 nodes x 8: pass with its decisions applied (s)", large_pass, 1.0)
    bar("reclaim, 500 nodes x 8: until all claimants are started (s)", large_cycle, None)
    return math.log(large_pass / small_pass) / math.log(2.5)


if __name__ == "__main__":
    raise SystemExit(main())
