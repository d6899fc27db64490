"""What a bench found: rows beside peer, bound and bar, printed as a table and as one JSON line.

scale = calibrate.factor()
rows = [Row("cold pass, 1,024 GPUs (ms)", ours=ms, bar=100 * scale, ok=ms <= 100 * scale)]
raise SystemExit(report("cycle", rows, quick=quick, factor=scale))
"""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
LOG_WIDTH = 140  # columns where no terminal says how wide it is, so that logs keep whole rows

Cell: TypeAlias = int | float | str | None


class Row(msgspec.Struct, frozen=True):
    """One figure. The name carries the unit; None stands where there is no peer, bound or bar."""

    name: str
    ours: Cell
    peer: Cell = None
    bound: Cell = None
    bar: Cell = None
    ok: bool | None = None  # None: printed only, held to no bar


class Machine(msgspec.Struct, frozen=True):
    """Where a figure was taken."""

    cpu: str
    cores: int
    python: str


class Result(msgspec.Struct, frozen=True):
    """The JSON line of one bench."""

    bench: str
    ok: bool
    quick: bool
    date: str  # UTC, ISO 8601
    machine: Machine
    commit: str
    factor: float | None  # what times were scaled by (calibrate.factor), None where no bar is a time
    rows: list[Row]
    facts: dict[str, Any] = {}  # what else a reader of the figures should know


def best(fn: Callable[[], object], n: int = 5) -> float:
    """Seconds of the fastest of `n` calls: the least disturbed one says most about the code."""
    fastest = float("inf")
    for _ in range(n):
        gc.collect()  # a call must not pay for the garbage of the one before
        start = time.perf_counter()
        fn()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def machine() -> Machine:
    """This machine: CPU model, cores this process may use, Python version."""
    cpu = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = models[0] if models else cpu
    return Machine(cpu=cpu, cores=len(os.sched_getaffinity(0)), python=platform.python_version())


def commit() -> str:
    """The commit under test, '-dirty' where the work tree differs from it; 'unknown' outside a git checkout."""
    try:
        head = _git("rev-parse", "HEAD")
        return f"{head}-dirty" if _git("status", "--porcelain") else head
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def report(
    bench: str,
    rows: Sequence[Row],
    *,
    quick: bool = False,
    factor: float | None = None,
    facts: Mapping[str, Any] | None = None,
) -> int:
    """Print the table, then the JSON line; return the exit code, 0 only if every bar holds."""
    result = Result(
        bench=bench,
        ok=all(row.ok is not False for row in rows),
        quick=quick,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        commit=commit(),
        factor=factor,
        rows=list(rows),
        facts=dict(facts or {}),
    )
    show(result)
    print(msgspec.json.encode(result).decode(), flush=True)
    return 0 if result.ok else 1


def show(result: Result) -> None:
    """Print a result as a table."""
    scaled = "" if result.factor is None else f", times in bars x {result.factor:.2f} for this machine"
    table = Table(title=f"bench {result.bench}{' (quick)' if result.quick else ''}{scaled}", title_justify="left")
    table.add_column("figure")
    for heading in ("ours", "peer", "bound", "bar"):
        table.add_column(heading, justify="right")
    table.add_column("holds")
    for row in result.rows:
        cells = [Text(_shown(cell)) for cell in (row.ours, row.peer, row.bound, row.bar)]
        table.add_row(Text(row.name), *cells, _verdict(row.ok))
    console().print(table)


def console() -> Console:
    """Where tables go: the terminal at its width, or plain text wide enough for whole rows."""
    screen = Console()
    return screen if screen.is_terminal else Console(width=LOG_WIDTH)


def _shown(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.4g}" if abs(cell) < 1000 else f"{cell:,.0f}"
    if isinstance(cell, int):
        return f"{cell:,}"
    return cell


def _verdict(ok: bool | None) -> Text:
    if ok is None:
        return Text("-")
    return Text("yes", style="green") if ok else Text("NO", style="bold red")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()
