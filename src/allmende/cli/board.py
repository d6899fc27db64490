"""What a run shows: a table that follows it on a terminal, else a line for each thing that happens; then a summary."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from allmende.cli.story import Stories, Story, phase
from allmende.control.journal import Line
from allmende.engine.explain import position
from allmende.engine.state import State
from allmende.model.cluster import Node
from allmende.model.decision import Decision
from allmende.model.event import Ended, PodEnded, Up
from allmende.model.reason import Reason
from allmende.model.remedy import Remedy
from allmende.model.request import units_asked
from allmende.model.span import show_clock, show_span
from allmende.model.units import show_gpus
from allmende.model.workload import Workload
from allmende.ports.backend import Remark
from allmende.words import GROWING, say, say_decision, say_event, say_places, say_remedy, screen

RECENT = 8
"""Lines of what happened that stay beneath the live table; fewer where it needs the room, a third in any case."""
_STYLE = {
    "running": "green",
    "ending": "yellow",
    "queued": "cyan",
    "later": "dim",
    "ended_ok": "dim green",
    "ended_failed": "bold red",
    "never": "bold magenta",
}


class Board(Protocol):
    """Where a run is shown."""

    def hear(self, line: Line) -> None:
        """Something happened or was decided."""
        ...

    def end(self, at: int, story: Story) -> None:
        """A job is over."""
        ...

    def turn(self, state: State, stories: Stories, fresh: dict[str, Reason]) -> None:
        """A pass is over; `fresh`: reasons that are new."""
        ...

    def __enter__(self) -> Board: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def tell(line: Line, language: str) -> str:
    """A line of the journal for people; '' for what they need not read.

    That is each pod's start and end: of a bad end there is a remark, too.
    """
    match line:
        case Remark(workload=name):
            return f"{name}: {tell_remark(line, language)}"
        case Up() | PodEnded():
            return ""
    return say_decision(line, language) if isinstance(line, Decision) else say_event(line, language)


def tell_remark(remark: Remark, language: str) -> str:
    """What is to be said of a job's processes."""
    return screen(remark.key, language, **remark.params) if remark.key else remark.text


def tell_reason(name: str, reason: Reason, language: str) -> str:
    """Why a job waits, or why one that runs has not all its pods."""
    key = "growing" if reason.code in GROWING else "waiting"
    return screen(key, language, workload=name, reason=say(reason, language))


def tell_end(story: Story, language: str) -> str:
    """That a job is over."""
    return say_event(Ended(story.ended or 0, story.workload.id, story.ok), language)


class PlainBoard:
    """One line for each thing, with the time of the run's clock before it."""

    def __init__(self, console: Console, language: str) -> None:
        self._console = console
        self._language = language

    def hear(self, line: Line) -> None:
        """Print what happened."""
        self._print(line.at, tell(line, self._language))

    def end(self, at: int, story: Story) -> None:
        """Print that a job is over."""
        self._print(at, tell_end(story, self._language))

    def turn(self, state: State, stories: Stories, fresh: dict[str, Reason]) -> None:
        """Print the reasons that are new."""
        for name, reason in fresh.items():
            self._print(state.now, tell_reason(name, reason, self._language))

    def _print(self, at: int, text: str) -> None:
        if text:
            self._console.print(Text(f"{show_clock(at)}  {text}"), soft_wrap=True)

    def __enter__(self) -> PlainBoard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


@dataclass(frozen=True)
class _Row:
    """One job as the table shows it; `since` is a moment, for the time passed is worked out when it is drawn."""

    name: str
    project: str
    gpus: str
    phase: str
    state: str
    since: int | None
    until: int | None
    told: str


class LiveBoard:
    """A table that is drawn again as things change, with the latest lines beneath it.

    It is drawn by a thread of its own, which sees only finished rows; `now` reads the run's clock.
    """

    def __init__(self, console: Console, language: str, now: Callable[[], int]) -> None:
        self._language = language
        self._now = now
        self._rows: tuple[_Row, ...] = ()
        self._recent: deque[str] = deque(maxlen=RECENT)
        self._lines: tuple[str, ...] = ()
        self._console = console
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=4, transient=True)

    def hear(self, line: Line) -> None:
        """Keep what happened among the latest lines."""
        self._keep(line.at, tell(line, self._language))

    def end(self, at: int, story: Story) -> None:
        """Keep that a job is over among the latest lines."""
        self._keep(at, tell_end(story, self._language))

    def _keep(self, at: int, text: str) -> None:
        if text:
            self._recent.append(f"{show_clock(at)}  {text}")

    def turn(self, state: State, stories: Stories, fresh: dict[str, Reason]) -> None:
        """Make new rows; the next drawing shows them."""
        leaving = {pod[0] for pod in state.leaving}
        self._rows = tuple(self._row(state, story, leaving) for story in stories.by_name.values())
        self._lines = tuple(self._recent)
        self._live.refresh()

    def _row(self, state: State, story: Story, leaving: set[str]) -> _Row:
        where = phase(state, story, leaving)
        name = story.workload.id
        place = position(state, name) if where == "queued" else 0
        standing = state.standings.get(name)
        since = story.started if story.ended is not None else story.submitted
        if standing is not None and standing.started is not None:
            since = standing.started
        told = say(story.reason, self._language) if story.reason is not None else ""
        if story.reason is None and story.remark is not None:
            told = tell_remark(story.remark, self._language)
        if where == "running" and standing is not None:
            told = " - ".join([say_places(standing.pods, self._language), *([told] if story.reason else [])])
        word = screen(where, self._language, position=place)
        return _Row(name, story.workload.project, size(story.workload), where, word, since, story.ended, told)

    def _draw(self) -> RenderableType:
        table = Table(expand=True, box=None, pad_edge=False)
        for key in ("job", "project", "gpus", "state", "since"):
            table.add_column(screen(key, self._language), no_wrap=True, justify="right" if key == "since" else "left")
        table.add_column(screen("told", self._language), ratio=1, overflow="ellipsis", no_wrap=True)
        now = self._now()
        room = self._console.height - 3
        recent = max(min(RECENT, room - len(self._rows)), min(RECENT, room // 3), 0)
        for row in _that_fit(self._rows, room - recent):
            passed = "" if row.since is None else show_span(max(0, (row.until or now) - row.since))
            style = _STYLE[row.phase]
            cells = (row.name, row.project, row.gpus, row.state, passed, row.told)
            table.add_row(*(Text(cell, style=style) for cell in cells))
        lines = self._lines[max(0, len(self._lines) - recent) :]
        return Group(table, Text(""), *(Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in lines))

    def __enter__(self) -> LiveBoard:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)


def _that_fit(rows: tuple[_Row, ...], most: int) -> tuple[_Row, ...]:
    """As many rows as the terminal holds: what runs before what waits before what is over."""
    if len(rows) <= most:
        return rows
    rank = {key: place for place, key in enumerate(("running", "ending", "queued", "never", "ended_failed"))}
    return tuple(sorted(rows, key=lambda row: rank.get(row.phase, len(rank)))[: max(most, 1)])


def size(workload: Workload) -> str:
    """GPUs of a job: '2 x 4' for pods of several GPUs each, '0.5' for one pod of a share."""
    role = workload.roles[0]
    each = show_gpus(units_asked(role.ask)) if not role.ask.memory else f"{role.ask.memory} MiB"
    pods = str(role.pods) if workload.gang_min == role.pods else f"{workload.gang_min}-{role.pods}"
    return each if pods == "1" else f"{pods} x {each}"


def summarise(
    console: Console, stories: Stories, language: str, remedies: Mapping[str, Sequence[Remedy]] = MappingProxyType({})
) -> None:
    """Print what became of the jobs: a row each, then why some failed or still wait, and what would start those."""
    table = Table(title=screen("summary", language), title_justify="left")
    for key in ("job", "project", "gpus", "waited", "ran", "evicted", "end"):
        table.add_column(screen(key, language), justify="right" if key in ("waited", "ran", "evicted") else "left")
    for story in stories.by_name.values():
        waited = ran = ""
        if story.started is not None and story.submitted is not None:
            waited = show_span(story.started - story.submitted)
            ran = "" if story.ended is None else show_span(story.ended - story.started)
        key = _end(story)
        cells = (
            story.workload.id,
            story.workload.project,
            size(story.workload),
            waited,
            ran,
            str(story.evictions or ""),
        )
        table.add_row(*(Text(cell) for cell in cells), Text(screen(key, language), style=_STYLE.get(key, "yellow")))
    console.print(table)
    for name, story in stories.by_name.items():
        text = _why(story, language)
        if text:
            changes = (say_remedy(remedy, language) for remedy in remedies.get(name, ()))
            console.print(Text(" ".join([text, *changes])), soft_wrap=not console.is_terminal)


def _end(story: Story) -> str:
    """The key of the screen's word for how a job stands when the run is over."""
    if story.ended is not None:
        return "ended_ok" if story.ok else "ended_failed"
    return "never" if story.never else "waits" if story.submitted is not None else "later"


def _why(story: Story, language: str) -> str:
    """What is to be said of a job that failed or still waits."""
    name = story.workload.id
    if story.ended is not None:
        return tell(story.remark, language) if story.remark is not None and not story.ok else ""
    return tell_reason(name, story.reason, language) if story.reason is not None else ""


def declared(nodes: tuple[Node, ...], language: str) -> str:
    """The machine in one line."""
    shown = ", ".join(f"{node.name} {len(node.devices)} x {node.model}" for node in nodes)
    return screen("nodes", language, nodes=shown)
