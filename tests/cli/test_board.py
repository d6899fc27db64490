"""The live table on terminals of every size: it never takes more lines than there are."""

import io

import pytest
from rich.console import Console

from allmende.cli.board import RECENT, LiveBoard
from allmende.cli.story import Stories
from allmende.engine.apply import apply
from allmende.engine.state import State
from allmende.model.event import Submitted
from allmende.model.request import Ask
from allmende.model.workload import Role, Workload
from allmende.words import LANGUAGES

JOBS = 30


def drawn(width: int, height: int, language: str) -> list[str]:
    """The live table of jobs that wait, with as many recent lines as it keeps."""
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    workloads = [Workload(f"job-{n}", "nlp", (Role("pod", 1, Ask(whole=1)),), 1) for n in range(JOBS)]
    state, stories = State(), Stories(workloads)
    board = LiveBoard(console, language, lambda: 0)
    for workload in workloads:
        submitted = Submitted(0, workload)
        apply(state, submitted)
        stories.hear(submitted)
        board.hear(submitted)
    board.turn(state, stories, {})
    with console.capture() as shown:
        console.print(board._draw())
    return shown.get().splitlines()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (40, 12), (30, 6), (20, 4)])
def test_it_fits_the_terminal(width: int, height: int, language: str) -> None:
    lines = drawn(width, height, language)
    assert len(lines) <= height
    assert len(lines) >= height - 2 or height > JOBS + RECENT


def test_jobs_come_before_recent_lines_and_leave_them_a_third() -> None:
    lines = drawn(80, 24, "en")
    assert sum(line.startswith("job-") for line in lines) == 14
    assert sum(line.startswith("00:00:00") for line in lines) == 7
