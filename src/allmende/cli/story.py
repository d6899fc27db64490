"""What became of each job of a run, gathered from the lines of its journal."""

from __future__ import annotations

from dataclasses import dataclass

from allmende.control.journal import Line
from allmende.engine.state import State
from allmende.model.decision import Cause, Evict, Start
from allmende.model.event import PodEnded, Submitted
from allmende.model.reason import Reason, Waiting
from allmende.model.standing import Phase
from allmende.model.workload import Workload
from allmende.ports.backend import Remark


@dataclass
class Story:
    """One job so far; times in microseconds of the run's clock. `remark`: the last thing said of its processes."""

    workload: Workload
    submitted: int | None = None
    started: int | None = None
    ended: int | None = None
    ok: bool = False
    attempts: int = 0
    evictions: int = 0
    remark: Remark | None = None
    reason: Reason | None = None

    @property
    def never(self) -> bool:
        """Whether it was found that it can never start."""
        return self.ended is None and self.reason is not None and self.reason.waiting is Waiting.NEVER


class Stories:
    """All jobs of a run, in the order of the file."""

    def __init__(self, workloads: list[Workload]) -> None:
        self.by_name = {workload.id: Story(workload) for workload in workloads}

    def hear(self, line: Line) -> None:
        """Take one line of the journal into the story it belongs to."""
        match line:
            case Submitted(workload=workload):
                self.by_name[workload.id].submitted = line.at
            case Start(workload=name):
                story = self.by_name[name]
                story.attempts += 1
                story.started = line.at if story.started is None else story.started
            case Evict(workload=name, cause=cause):
                self.by_name[name].evictions += cause is not Cause.SHRINK
            case Remark(workload=name):
                self.by_name[name].remark = line
            case _:
                pass

    def over(self, line: Line, state: State) -> Story | None:
        """The job that this line (already applied) has ended, if any."""
        name = line.pod[0] if isinstance(line, PodEnded) else getattr(line, "workload", None)
        outcome = state.outcomes.get(name) if isinstance(name, str) else None
        if outcome is None or self.by_name[outcome.workload].ended is not None:
            return None
        story = self.by_name[outcome.workload]
        story.ended, story.ok = outcome.ended, outcome.ok
        return story

    def settle(self, reasons: dict[str, Reason]) -> None:
        """Take over why those wait that do."""
        for name, story in self.by_name.items():
            story.reason = reasons.get(name)

    def reasons(self, names: list[str]) -> dict[str, Reason]:
        """What these were last found to wait for."""
        return {name: reason for name in names if (reason := self.by_name[name].reason) is not None}

    @property
    def failed(self) -> bool:
        """Whether a job that could run did not end well (or never came to run)."""
        return any(not story.ok and not story.never for story in self.by_name.values())


def phase(state: State, story: Story, leaving: set[str]) -> str:
    """The key of the screen's word for where a job stands."""
    name = story.workload.id
    if story.ended is not None:
        return "ending" if name in leaving else "ended_ok" if story.ok else "ended_failed"
    standing = state.standings.get(name)
    if standing is None:
        return "later"
    if standing.phase is Phase.RUNNING:
        return "running"
    return "never" if story.never else "ending" if name in leaving else "queued"
