"""The case bank: real-world cases in the neutral layout, each with its one right outcome, judged from engine state.

python -m bench.cases [FOLDER] [--owed KIND,...] [--only ID] [--verbose]

Every case counts as passed, failed, refused (it asks for a setting that may be refused, and is, by name) or not yet
(with the capability that is missing). Exit 0 only without failures; `--owed` also fails on "not yet" in those kinds.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from allmende.model.mistake import Mistake
from allmende.scene.judge import Judged, is_layout, judge
from allmende.scene.run import Status, Verdict
from bench.result import Row, console, report

STYLE = {Status.PASSED: "green", Status.FAILED: "red", Status.REFUSED: "cyan", Status.NOT_YET: "yellow"}
SHOWN = 4  # lines of a failed case without --verbose


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge a folder of cases; 0 only without failures."""
    parser = argparse.ArgumentParser(prog="python -m bench.cases", description=(__doc__ or "").partition("\n")[0])
    shared = os.environ.get("ALLMENDE_SHARED", str(Path(__file__).resolve().parents[2] / "shared"))
    parser.add_argument("folder", nargs="?", type=Path, default=Path(shared) / "cases", help="default: %(default)s")
    parser.add_argument("--owed", default="", metavar="KIND,...", help="kinds in which 'not yet' is a failure too")
    parser.add_argument("--only", default="", metavar="ID", help="judge the cases with these ids, parted by commas")
    parser.add_argument("--verbose", action="store_true", help="every case, with all that was found")
    parser.add_argument("--quick", action="store_true", help="accepted like by every bench; a full run is quick")
    given = parser.parse_args(arguments)
    paths = sorted(p for p in given.folder.rglob("*") if p.suffix in (".yaml", ".yml")) if given.folder.is_dir() else []
    if not paths:
        print(f"{given.folder}: no cases there; name a folder of *.yaml, or set ALLMENDE_SHARED", file=sys.stderr)
        return 2
    owed = {kind.strip() for kind in given.owed.split(",") if kind.strip()}
    only = {each.strip() for each in given.only.split(",") if each.strip()}
    screen = console()
    judged = []
    for path in paths:
        found = one(str(path))
        if found is not None and (not only or found.id in only):
            judged.append(found)
            show(found, screen, given.verbose or bool(only), owed)
    return finish(judged, owed, screen)


def one(path: str) -> Judged | None:
    """Judge one file; None for the file that describes the layout. Nothing that a case does stops the others."""
    try:
        return None if is_layout(path) else judge(path)
    except Mistake as mistake:
        why: tuple[str, ...] = (str(mistake),)
    except Exception:  # a crash of the engine is this case's failure, and the next one's turn
        why = tuple(traceback.format_exc().strip().splitlines()[-3:])
    return Judged(path, Path(path).stem, "?", "", Verdict(Status.FAILED, why))


def show(judged: Judged, screen: Console, verbose: bool, owed: set[str]) -> None:
    """A line for a case that did not pass (for every case when verbose), and what was found."""
    status = judged.verdict.status
    if status is Status.PASSED and not verbose:
        return
    colour = "red" if status is Status.NOT_YET and judged.kind in owed else STYLE[status]
    screen.print(f"[{colour}]{status.value:8}[/] {escape(judged.id)} {escape(judged.kind)}: {escape(judged.about)}")
    why = judged.verdict.why
    lines = why if verbose else why[: SHOWN if status is Status.FAILED else 1]
    for line in lines:
        screen.print(f"         {line}", markup=False, highlight=False)
    if len(lines) < len(why) and status is Status.FAILED:
        screen.print(f"         and {len(why) - len(lines)} more (--verbose)", markup=False)


def finish(judged: Sequence[Judged], owed: set[str], screen: Console) -> int:
    """The table per kind, then the bench's own rows; the exit code."""
    counts: dict[str, Counter[Status]] = {}
    for each in judged:
        counts.setdefault(each.kind, Counter())[each.verdict.status] += 1
    table = Table(title="cases by kind", title_justify="left")
    table.add_column("kind")
    for status in Status:
        table.add_column(status.value, justify="right")
    table.add_column("missing")
    for kind in sorted(counts):
        numbers = [str(counts[kind][status] or "-") for status in Status]
        table.add_row(f"{kind} (owed)" if kind in owed else kind, *numbers, escape(_missing(judged, kind)))
    screen.print(table)
    total = Counter(each.verdict.status for each in judged)
    late = [each.id for each in judged if each.verdict.status is Status.NOT_YET and each.kind in owed]
    rows = [
        Row("cases", len(judged)),
        Row("passed", total[Status.PASSED]),
        Row("refused by name", total[Status.REFUSED]),
        Row("not yet", total[Status.NOT_YET]),
        Row("not yet in owed kinds", len(late), bar=0, ok=not late),
        Row("failed", total[Status.FAILED], bar=0, ok=total[Status.FAILED] == 0),
    ]
    facts = {
        "failed": [each.id for each in judged if each.verdict.status is Status.FAILED],
        "not_yet": {each.id: each.verdict.why[0] for each in judged if each.verdict.status is Status.NOT_YET},
        "refused": [each.id for each in judged if each.verdict.status is Status.REFUSED],
    }
    return report("cases", rows, facts=facts)


def _missing(judged: Sequence[Judged], kind: str) -> str:
    """What the cases of a kind wait for, each thing once."""
    found = [each.verdict.why[0] for each in judged if each.kind == kind and each.verdict.status is Status.NOT_YET]
    return "; ".join(dict.fromkeys(found))


if __name__ == "__main__":
    raise SystemExit(main())
