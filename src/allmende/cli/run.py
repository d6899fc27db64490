"""`allmende run`: the jobs of a file as real processes on declared GPUs, in the engine's order."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TextIO

from rich.console import Console

from allmende.backend.local.devices import virtual_nodes
from allmende.boot import LocalRun, local_run
from allmende.cli.board import Board, LiveBoard, PlainBoard, declared, summarise
from allmende.cli.jobs_file import JobsFile, read_jobs
from allmende.cli.story import Stories
from allmende.control.journal import Entry, Line, is_journal
from allmende.engine.explain import explain, growth_reason
from allmende.engine.remedy import remedies
from allmende.engine.state import State
from allmende.model.cluster import Node
from allmende.model.event import NodeSet, ProjectSet, Submitted
from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.reason import Reason, Waiting
from allmende.model.remedy import Remedy
from allmende.model.standing import Phase
from allmende.model.units import GPU
from allmende.words import screen

INTERRUPTED = 130
"""Exit code after Ctrl-C or a signal that asks to end, as shells have it."""
EXPLAINED = 200
"""Jobs short of pods whose reasons are made anew after every turn."""
REMEDIED = 20
"""Jobs for which remedies are sought at the end of a run."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@dataclass(frozen=True)
class Options:
    """How a run is done: `log`: file of the event log; `logs`: folder of the jobs' output (None: a new one)."""

    log: Path | None = None
    logs: Path | None = None
    plain: bool = False
    language: str = "en"


def run(path: str, gpus: str, options: Options, out: TextIO) -> int:
    """Run a file. Returns the exit code: 0 all that could run ended well, 1 not all, 2 bad input, 130 interrupted."""
    console = Console(file=out, highlight=False, markup=False)
    try:
        nodes, file = virtual_nodes(gpus), read_jobs(path)
        _check_places(options, path)
        for warning in file.advice(sum(len(node.devices) for node in nodes) * GPU):
            print(f"{path}: {warning}", file=sys.stderr)
        with interruptible():
            if options.logs is None:
                options = replace(options, logs=Path(tempfile.mkdtemp(prefix="allmende-run-")))
            finished = execute(file, nodes, options, console)
    except Mistake as mistake:
        print(mistake, file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            raise  # of the screen
        print(f"{error.filename}: {error.strerror or error}; choose another place", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(screen("interrupted", options.language), file=sys.stderr)
        if options.logs is not None and options.logs.is_dir():
            _say_where(options, console)
        return INTERRUPTED
    summarise(console, finished.stories, options.language, finished.remedies)
    if finished.stuck:
        print(screen("stuck", options.language), file=sys.stderr)
    _say_where(options, console)
    return 1 if finished.stories.failed else 0


def _say_where(options: Options, console: Console) -> None:
    console.print(screen("logs", options.language, folder=options.logs), soft_wrap=True)
    if options.log is not None:
        console.print(screen("log", options.language, file=options.log), soft_wrap=True)


def _check_places(options: Options, path: str) -> None:
    """Raises Mistake where the event log would take the place of something else, or the output has no folder."""
    log, logs = options.log, options.logs
    if log is not None and log.is_dir():
        do = f"name a file, such as {log / 'events.jsonl'}"
        raise Mistake(MistakeCode.WRONG_KIND, str(log), "--log", do, "is a folder")
    if log is not None and log.is_file():
        if log.samefile(path):
            raise Mistake(MistakeCode.CONTRADICTION, str(log), "--log", "name another file", "is the file of the jobs")
        if log.stat().st_size and not is_journal(log):
            wrong = "is there already, and is no event log"
            raise Mistake(MistakeCode.DUPLICATE, str(log), "--log", "name another file, or remove it first", wrong)
    if logs is not None and logs.exists() and not logs.is_dir():
        raise Mistake(MistakeCode.WRONG_KIND, str(logs), "--output", "name a folder", "is no folder")


@dataclass(frozen=True)
class Finished:
    """How a run ended. `stuck`: jobs still wait although waiting would help, and nothing is left that could come.

    `entries`: all events and decisions. `left`: processes that outlived the run; there are none. `remedies`: what
    would start those that wait.
    """

    state: State
    stories: Stories
    entries: list[Entry]
    logs: Path
    stuck: bool
    left: int
    remedies: dict[str, list[Remedy]]


def execute(file: JobsFile, nodes: tuple[Node, ...], options: Options, console: Console) -> Finished:
    """Run the jobs to their ends; no process outlives the call, however it is left.

    Raises OSError where the event log or the output's folder cannot be written.
    """
    logs = options.logs or Path(tempfile.mkdtemp(prefix="allmende-run-"))
    logs.mkdir(parents=True, exist_ok=True)
    turn = _Turn(Stories([workload for _, workload in file.jobs]))
    run = local_run(nodes, logs, options.log, turn.hear)
    try:
        turn.run = run
        console.print(declared(nodes, options.language))
        with _board(console, options, run) as turn.board:
            _tell_all(run, file, nodes)
            run.loop.run(turn.go_on)
    finally:
        with _undisturbed_by_more():
            run.close()
    state, entries = run.loop.state, run.journal.entries
    return Finished(state, turn.stories, entries, logs, turn.stuck, run.backend.remains, _remedies(state))


def _remedies(state: State) -> dict[str, list[Remedy]]:
    """What would start those that wait, for the first of them; each is tried by passes of its own."""
    waiting = [name for name, standing in state.standings.items() if standing.phase is Phase.QUEUED]
    if len(waiting) > EXPLAINED:
        return {}
    found = {name: remedies(state, name, state.now) for name in waiting[:REMEDIED]}
    return {name: some for name, some in found.items() if some}


def _board(console: Console, options: Options, run: LocalRun) -> Board:
    if options.plain or not console.is_terminal:
        return PlainBoard(console, options.language)
    return LiveBoard(console, options.language, lambda: run.loop.now)


def _tell_all(run: LocalRun, file: JobsFile, nodes: tuple[Node, ...]) -> None:
    for node in nodes:
        run.loop.tell(NodeSet(0, node))
    for project in file.projects:
        run.loop.tell(ProjectSet(0, project))
    for at, workload in file.jobs:
        run.loop.tell(Submitted(at, workload))


class _Turn:
    """What is done after each turn: gather the reasons, show the board, say whether anything can still come."""

    run: LocalRun
    board: Board

    def __init__(self, stories: Stories) -> None:
        self.stories = stories
        self.stuck = False
        self._last: dict[str, tuple[object, ...]] = {}

    def hear(self, line: Line) -> None:
        """A line was appended to the journal."""
        self.stories.hear(line)
        self.board.hear(line)
        story = self.stories.over(line, self.run.loop.state)
        if story is not None:
            self.board.end(line.at, story)

    def go_on(self) -> bool:
        """Whether there is anything to wait for."""
        loop = self.run.loop
        state = loop.state
        busy = bool(loop.coming or state.leaving) or any(s.phase is Phase.RUNNING for s in state.standings.values())
        reasons = self._reasons(state, every=not busy)
        self.stories.settle(reasons)
        fresh = {name: reason for name, reason in reasons.items() if self._is_fresh(name, reason)}
        self.board.turn(state, self.stories, fresh)
        if busy:
            return True
        hope = any(reason.waiting is Waiting.HELPS for reason in reasons.values())
        self.stuck = hope and loop.wake_at is None
        return hope and not self.stuck

    def _reasons(self, state: State, every: bool) -> dict[str, Reason]:
        """Why each one waits, or does not grow; of a long queue only those without a reason yet, unless `every` one."""
        short = [
            name
            for name, standing in state.standings.items()
            if standing.phase is Phase.QUEUED or len(standing.pods) < sum(standing.wanted)
        ]
        known = {} if every or len(short) <= EXPLAINED else self.stories.reasons(short)
        found = {}
        for name in short:
            reason = known.get(name) or explain(state, name, state.now) or growth_reason(state, name, state.now)
            if reason is not None:
                found[name] = reason
        return found

    def _is_fresh(self, name: str, reason: Reason) -> bool:
        """Whether another kind of reason than last time: figures that move would flood the screen."""
        key = (reason.code, reason.waiting, self.stories.by_name[name].attempts)
        if self._last.get(name) == key:
            return False
        self._last[name] = key
        return True


@contextmanager
def interruptible() -> Iterator[None]:
    """Signals that ask the program to end raise KeyboardInterrupt, so that everything it started is ended first."""
    with _handled(lambda number: signal.getsignal(number) is not signal.SIG_IGN, _interrupt):  # nohup stays nohup
        yield


@contextmanager
def _undisturbed_by_more() -> Iterator[None]:
    """While processes are being ended only a second Ctrl-C counts; it ends them by force."""
    with _handled(lambda number: number is not signal.SIGINT, signal.SIG_IGN):
        yield


_Handler = Callable[[int, FrameType | None], None] | signal.Handlers


@contextmanager
def _handled(which: Callable[[signal.Signals], bool], handler: _Handler) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _ENDING if which(number)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
