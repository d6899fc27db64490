"""`allmende sim replay`: reads a trace, replays it, prints what came of it. Figures on stdout, progress on stderr."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.span import HOUR, show_span
from allmende.model.units import GPU, show_gpus
from allmende.sim import openb as packing
from allmende.sim import philly as queueing
from allmende.sim import replay as replaying
from allmende.sim.traces import openb as openb_trace
from allmende.sim.traces import philly as philly_trace
from allmende.sim.traces.table import Tally

MOST_GPUS = 2**17
SLOWEST, FASTEST = 0.001, 1_000_000.0
"""Bounds of --gpus and --speed: beyond them a replay takes days or says nothing."""
WIDTH = 120
"""Columns of the tables where `out` is no terminal."""
STEP = 10
"""Per cent between two lines of progress where there is no terminal."""


def replay(kind: str, folder: str, *, list_name: str, speed: float, gpus: int, out: TextIO) -> int:
    """Replay a trace ('openb' with a list's name, 'philly' with a speed and a number of GPUs) from a folder.

    Returns the exit code: 0; 1 where the books did not balance; 2 for bad input, said on stderr.
    """
    console = Console(file=out, width=None if out.isatty() else WIDTH, highlight=False, markup=False)
    try:
        match kind:
            case "openb":
                return _openb(console, folder, list_name)
            case "philly":
                return _philly(console, folder, speed, gpus)
        raise Mistake(MistakeCode.UNKNOWN_NAME, kind, "trace", "write openb or philly")
    except Mistake as mistake:
        print(mistake, file=sys.stderr)
        return 2


@contextmanager
def progress(title: str) -> Iterator[replaying.Tick]:
    """Something to tell how far it is: a bar on a terminal, else a line every STEP per cent, both on stderr."""
    if sys.stderr.isatty():
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(title)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return
    shown = 0

    def line(done: int, total: int) -> None:
        nonlocal shown
        per_cent = done * 100 // max(total, 1) // STEP * STEP
        if per_cent > shown:
            shown = per_cent
            print(f"{title}: {per_cent} % ({done:,} of {total:,} submits and ends)", file=sys.stderr, flush=True)

    yield line


# -- openb ---------------------------------------------------------------------------------------------------------


def _openb(console: Console, folder: str, list_name: str) -> int:
    nodes, of_nodes = openb_trace.read_nodes(folder)
    jobs, of_pods = openb_trace.read_pods(folder, list_name)
    _tallies(console, of_nodes, of_pods)
    with progress(f"openb {list_name}") as tick:
        found = packing.openb(nodes, jobs, tick)
    arrived = sum(job.units for job in jobs)
    failed = sum(sum(size.failed.values()) for size in found.sizes if size.name != packing.CONSTRAINED)
    title = f"openb, list {list_name}: {len(nodes):,} nodes, {show_gpus(found.capacity)} GPUs, {len(jobs):,} pods"
    table = Table("", "GPUs", "of the cluster", title=title, title_justify="left")
    for name, units in (
        ("arrived", arrived),
        ("allocated", found.allocated),
        ("free, whole GPUs", found.free_whole),
        (f"free, in parts ({found.partial:,} GPUs partly used)", found.free_partial),
        (f"failed ({failed:,} pods wait at the end)", arrived - found.allocated),
    ):
        table.add_row(name, show_gpus(units), per_cent(units, found.capacity))
    _right(table)
    console.print(table)
    console.print(_failures(found.sizes))
    return _effort(console, found.effort, found.unbalanced)


def _failures(sizes: Sequence[packing.Size]) -> Table:
    """Where the failed pods came from: their sizes, and the reason each waits for."""
    codes = sorted({code for size in sizes for code in size.failed})
    title = "where the failures came from: pods by size, and by what the engine says stands in their way"
    table = Table("pods", "arrived", "failed", "GPUs failed", *codes, title=title, title_justify="left")
    for size in sizes:
        failed = sum(size.failed.values())
        counts = (f"{size.failed[code]:,}" for code in codes)
        table.add_row(size.name, f"{size.arrived:,}", f"{failed:,}", show_gpus(size.failed_units), *counts)
    _right(table)
    return table


# -- Philly --------------------------------------------------------------------------------------------------------


def _philly(console: Console, folder: str, speed: float, gpus: int) -> int:
    _check(speed, gpus)  # before a long reading
    jobs, tally = philly_trace.read_jobs(folder, queueing.PER_NODE)
    jobs = queueing.faster(jobs, speed)
    _tallies(console, tally)
    with progress(f"philly x{speed:g}") as tick:
        found = queueing.philly(jobs, gpus, tick)
    title = f"philly x{speed:g}: {gpus // queueing.PER_NODE:,} nodes of {queueing.PER_NODE} GPUs, {len(jobs):,} jobs"
    _figures(console, title, found)
    console.print(_projects(found))
    return _effort(console, found.effort, found.unbalanced)


def _check(speed: float, gpus: int) -> None:
    """Raises Mistake for a speed or a number of GPUs that is none, or that nobody can mean."""
    if gpus > MOST_GPUS:
        raise Mistake(MistakeCode.ABSURD, gpus, "--gpus", f"write at most {MOST_GPUS}", "is absurdly large")
    queueing.cluster(gpus)
    queueing.faster((), speed)
    if not SLOWEST <= speed <= FASTEST:
        do = f"write a number from {SLOWEST} to {FASTEST:.0f}, such as 7"
        raise Mistake(MistakeCode.ABSURD, speed, "--speed", do, "is absurdly slow or fast")


def _figures(console: Console, title: str, found: queueing.Queueing) -> None:
    every = found.everything
    table = Table("", "mean", "median", "p90", "p99", "longest", title=title, title_justify="left")
    for name, times in (("wait until the first start", found.waits), ("submit to end", found.completions)):
        if times:
            cells = (sum(times) // len(times), *(quantile(times, q) for q in (50, 90, 99)), times[-1])
            table.add_row(name, *(show_span(cell) for cell in cells))
    _right(table)
    console.print(table)
    console.print(
        f"load: {_rounded(found.load, 2)} times what the GPUs can do until the last submit, "
        f"{show_span(found.last_submit)} after the first"
    )
    console.print(f"makespan: {show_span(found.makespan)}")
    console.print(
        f"GPUs in use: {per_cent(found.busy)} while jobs arrive, "
        f"{per_cent(every.held_queued, found.capacity * every.queued)} while anyone waits, "
        f"{per_cent(every.total, found.capacity * found.makespan)} of the makespan"
    )
    console.print(f"evictions: {every.evictions:,}, {_hours(every.lost)} GPU-hours of work lost to them")
    if found.never:
        console.print(f"still waiting at the end: {sum(found.never.values()):,} jobs ({_counts(found.never)})")


def _projects(found: queueing.Queueing) -> Table:
    """What each project held while something of it waited, beside its guarantee."""
    heads = ("project", "jobs", "guarantee", "GPU-h asked", "GPU-h held", "backlog", "GPUs held then", "of guarantee")
    title = "projects: GPUs held on average while anything of the project waited, against its guarantee"
    table = Table(*heads, "evictions", title=title, title_justify="left")
    for one in sorted(found.projects, key=lambda one: (-one.guarantee, one.name)):
        mean = Fraction(one.held_queued, one.queued * GPU) if one.queued else Fraction(0)
        then = f"{_rounded(mean, 1)}", per_cent(mean * GPU, one.guarantee)
        table.add_row(
            one.name,
            f"{one.jobs:,}",
            show_gpus(one.guarantee),
            _hours(one.asked),
            _hours(one.total),
            show_span(one.queued),
            *(then if one.queued else ("", "")),
            f"{one.evictions:,}",
        )
    _right(table)
    return table


# -- figures -------------------------------------------------------------------------------------------------------


def quantile(ordered: Sequence[int], per_cent: int) -> int:
    """The nearest-rank quantile of values in rising order: the smallest that so many per cent do not exceed."""
    return ordered[max(0, -(-len(ordered) * per_cent // 100) - 1)]


def per_cent(part: int | Fraction, whole: int = 1) -> str:
    """An exact ratio as per cent, rounded half up to two decimals; '-' of nothing."""
    return f"{_rounded(Fraction(part) * 100 / whole, 2)} %" if whole else "-"


def _rounded(value: Fraction, places: int) -> str:
    scaled = int(value * 10**places + Fraction(1, 2))
    return f"{scaled // 10**places:,}.{scaled % 10**places:0{places}d}"


def _hours(unit_time: int) -> str:
    """GPU units x microseconds as whole GPU-hours."""
    return f"{(unit_time + GPU * HOUR // 2) // (GPU * HOUR):,}"


def _counts(codes: Counter[str]) -> str:
    return ", ".join(f"{code} {count:,}" for code, count in sorted(codes.items()))


def _tallies(console: Console, *tallies: Tally) -> None:
    for tally in tallies:
        for line in tally.lines():
            console.print(line, soft_wrap=True)


def _right(table: Table) -> None:
    """Figures stand right, the first column left."""
    for column in table.columns[1:]:
        column.justify = "right"


def _effort(console: Console, effort: replaying.Effort, unbalanced: Sequence[str]) -> int:
    rate = int(effort.entries / effort.seconds) if effort.seconds else 0
    console.print(
        f"engine: {effort.passes:,} passes, {effort.entries:,} events and decisions "
        f"in {effort.seconds:.1f} s ({effort.core_seconds:.1f} s of one core), {rate:,} a second"
    )
    if not unbalanced:
        console.print("books: allocated = what the running ask for, on every GPU")
        return 0
    console.print(f"books: {len(unbalanced):,} things do not add up, the first: {unbalanced[0]}")
    return 1
