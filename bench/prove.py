"""Run every bench at full size, one after another, and say which bars hold.

    python -m bench.prove [--again] [NAME...]

Each JSON line is kept in results/prove/COMMIT/NAME.json. A run that was cut short goes on where it stopped: what is
there is not measured again, unless the work tree has changes that no commit names.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import msgspec
from rich.table import Table

from bench.result import ROOT, Result, commit, console

NOT_BENCHES = frozenset({"calibrate", "prove"})


class Outcome(msgspec.Struct, frozen=True):
    """How one bench ended; without a result it crashed before its JSON line."""

    bench: str
    result: Result | None
    seconds: float | None  # None: taken from an earlier run

    @property
    def ok(self) -> bool:
        return self.result is not None and self.result.ok


def benches() -> list[str]:
    """Names of all benches, sorted: the modules of this folder that can be run and measure our own code."""
    sources = sorted((ROOT / "bench").glob("*.py"))
    runnable = [path.stem for path in sources if '__name__ == "__main__"' in path.read_text(encoding="utf-8")]
    return [name for name in runnable if name not in NOT_BENCHES]


def measure(bench: str, kept: Path, again: bool) -> Outcome:
    """The kept result of a bench, or a new one, which is then kept."""
    if kept.exists() and not again:
        return Outcome(bench, msgspec.json.decode(kept.read_bytes(), type=Result), None)
    start = time.perf_counter()
    result = run(bench)
    if result is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(result))
        partial.replace(kept)  # whole or absent, so that a cut run never leaves half a result
    return Outcome(bench, result, time.perf_counter() - start)


def run(bench: str) -> Result | None:
    """Run a bench in its own process, showing what it prints; None where it ends without a result or contradicts it."""
    last = ""
    command = [sys.executable, "-m", f"bench.{bench}"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line if line.strip() else last
    try:
        result = msgspec.json.decode(last, type=Result)
    except msgspec.DecodeError:
        return None
    return result if result.ok == (process.returncode == 0) else None


def summary(outcomes: list[Outcome]) -> Table:
    """One line a bench."""
    table = Table()
    for heading in ("bench", "bars held", "seconds", "verdict"):
        table.add_column(heading, justify="right" if heading in ("bars held", "seconds") else "left")
    for outcome in outcomes:
        seconds = "kept" if outcome.seconds is None else f"{outcome.seconds:,.0f}"
        if outcome.result is None:
            table.add_row(outcome.bench, "-", seconds, "NO RESULT")
            continue
        barred = [row for row in outcome.result.rows if row.ok is not None]
        held = sum(row.ok is True for row in barred)
        table.add_row(outcome.bench, f"{held} of {len(barred)}", seconds, "holds" if outcome.ok else "FAILS")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.prove", description="Run all benches at full size.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these benches")
    parser.add_argument("--again", action="store_true", help="measure anew what is there already")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(benches()))
    if unknown:
        parser.error(f"no such bench: {', '.join(unknown)}; there are {', '.join(benches())}")
    tree = commit()
    folder = ROOT / "results" / "prove" / tree
    again = arguments.again or tree.endswith("-dirty") or tree == "unknown"
    outcomes = []
    for bench in arguments.names or benches():
        print(f"== {bench}", flush=True)
        outcomes.append(measure(bench, folder / f"{bench}.json", again))
    console().print(summary(outcomes))
    print(f"results are in {folder.relative_to(ROOT)}")
    return 0 if outcomes and all(outcome.ok for outcome in outcomes) else 1


if __name__ == "__main__":
    raise SystemExit(main())
