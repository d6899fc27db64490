"""`allmende sim run`: scenes of our own and cases of the neutral layout, played, checked and told as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from allmende.model.mistake import Mistake
from allmende.scene.judge import Judged, judge
from allmende.scene.run import Status

WIDTH = 120
"""Columns where the output is no terminal."""
STYLE = {Status.PASSED: "green", Status.FAILED: "red", Status.REFUSED: "cyan", Status.NOT_YET: "yellow"}


def run_scenes(paths: Sequence[str], out: TextIO) -> int:
    """Play and check every file; the mistakes of unreadable ones are told and the others are still played.

    Returns 0 if everything that the files say holds, 1 if something does not or could not be judged, 2 for a mistake
    in a file.
    """
    console = Console(file=out) if out.isatty() else Console(file=out, width=WIDTH)
    judged: list[Judged] = []
    mistakes: list[Mistake] = []
    for path in paths:
        try:
            judged.append(judge(path))
        except Mistake as mistake:
            mistakes.append(mistake)
    if judged:
        console.print(_table(judged))
    for each in judged:
        _tell(each, console)
    for wrong in mistakes:
        console.print(Text(str(wrong), "red"), soft_wrap=True)
    if mistakes:
        return 2
    return 0 if all(each.verdict.status is Status.PASSED for each in judged) else 1


def _table(judged: Sequence[Judged]) -> Table:
    table = Table(title_justify="left")
    for heading in ("scene", "kind", "outcome"):
        table.add_column(heading, no_wrap=heading != "scene")
    for heading in ("checks", "evictions", "entries"):
        table.add_column(heading, justify="right")
    for each in judged:
        status = each.verdict.status
        row = [Text(each.id), Text(each.kind), Text(status.value, STYLE[status])]
        played = each.played
        figures = ["-", "-", "-"]
        if played is not None:
            evictions = sum(played.world.evictions.values())
            figures = [str(len(played.scene.expect.checks)), str(evictions), str(len(played.world.log))]
        table.add_row(*row, *figures)
    return table


def _tell(judged: Judged, console: Console) -> None:
    """What did not hold of one file, and what the product warned about."""
    lines = [f"{judged.verdict.status.value}: {line}" for line in judged.verdict.why]
    lines += [f"warning: {line}" for line in judged.verdict.warnings]
    if lines:
        console.print(Text(judged.path, "bold"), soft_wrap=True)
    for line in lines:
        console.print(Text(f"  {line}"), soft_wrap=True)
