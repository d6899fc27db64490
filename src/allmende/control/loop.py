"""The loop: observe, apply, plan, append, act. It decides nothing and knows no concrete world."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import assert_never

from msgspec.structs import replace

from allmende.control.journal import Journal, Line
from allmende.engine.apply import apply
from allmende.engine.plan import plan
from allmende.engine.state import State
from allmende.model.cluster import PodId
from allmende.model.decision import Close, Decision, Evict, Grow, Hold, Release, Start, Stop
from allmende.model.event import Event
from allmende.ports.backend import Backend, Remark
from allmende.ports.clock import Clock

LEAST_WAIT = 1000
"""Microseconds until a moment that the plan names and that has passed already: no slip may make the loop spin."""

MOST_PASSES = 1000
"""Passes without an event between them; more would be a loop of decisions, which is a bug of the engine."""


class Restless(RuntimeError):
    """The engine kept deciding although nothing happened."""


class Loop:
    """Turns one state against one world.

    `watch` is shown every event, decision and remark after it was applied. What is appended to the journal is
    handed to the system before the backend sees it.
    """

    def __init__(self, backend: Backend, clock: Clock, journal: Journal, watch: Callable[[Line], None]) -> None:
        self.state = State()
        self._backend = backend
        self._clock = clock
        self._journal = journal
        self._watch = watch
        self._wake_at: int | None = None
        self._coming: list[tuple[int, int, Event]] = []
        self._order = count()
        self._grace: dict[PodId, int] = {}
        self._told: set[PodId] = set()

    @property
    def now(self) -> int:
        """Microseconds of the cluster's clock."""
        return self._clock.now()

    @property
    def coming(self) -> int:
        """Events whose time has not come."""
        return len(self._coming)

    @property
    def wake_at(self) -> int | None:
        """When the last plan wants to look again."""
        return self._wake_at

    def tell(self, event: Event) -> None:
        """Let an event happen: now, or at its own time where that is still to come."""
        heapq.heappush(self._coming, (event.at, next(self._order), event))

    def run(self, go_on: Callable[[], bool]) -> None:
        """Decide and act, then wait for what happens next; ends when `go_on` says so after a turn."""
        self._take_due()
        self.decide()
        while go_on():
            self.wait()
            self.decide()

    def decide(self) -> None:
        """Pass over the state as it is now until nothing more is decided; each pass is appended, then acted on.

        Raises Restless where that never comes.
        """
        for _ in range(MOST_PASSES):
            now = max(self._clock.now(), self.state.now)
            planned = plan(self.state, now)
            acts = []
            for decision in planned.decisions:
                acts.append(self._act(decision))
                self._take(decision)
            self._journal.flush()
            for act in acts:
                act()
            self._see_off()
            if not planned.decisions:
                self._wake_at = None if planned.wake_at is None else max(planned.wake_at, now + LEAST_WAIT)
                return
        raise Restless(f"{MOST_PASSES} passes in a row kept deciding; the last was about {planned.decisions[-1]}")

    def wait(self) -> None:
        """Sleep until something happens or is due, and take it into the state."""
        moments = [*([] if self._wake_at is None else [self._wake_at]), *(at for at, _, _ in self._coming[:1])]
        for happened in self._backend.observe(min(moments, default=None)):
            self._take(happened)
        self._take_due()

    def _take_due(self) -> None:
        now = self._clock.now()
        while self._coming and self._coming[0][0] <= now:
            self._take(heapq.heappop(self._coming)[2])

    def _take(self, line: Line) -> None:
        """Append and apply; an event that was seen late happens now, for the journal's time never runs back."""
        if line.at < self.state.now:
            line = replace(line, at=self.state.now)
        self._journal.append(line)
        if not isinstance(line, Remark):
            apply(self.state, line)
        self._watch(line)

    def _act(self, decision: Decision) -> Callable[[], None]:
        """What the backend is to do once a decision is appended. Pods that leave are seen off from the state."""
        match decision:
            case Start(workload=name, pods=pods) | Grow(workload=name, pods=pods):
                workload = self.state.standings[name].workload
                self._grace.update((pod.id, workload.grace) for pod in pods)
                return lambda: self._backend.start(pods, workload)
            case Evict() | Stop() | Hold() | Release() | Close():
                return _nothing
        assert_never(decision)

    def _see_off(self) -> None:
        """Stop every pod that is leaving and was not told yet: evicted, cancelled, or left over of a failed gang."""
        leaving = self.state.leaving
        by_grace: dict[int, list[PodId]] = {}
        for pod in leaving:
            if pod not in self._told:
                by_grace.setdefault(self._grace.pop(pod, 0), []).append(pod)
        self._told = set(leaving)
        for grace, pods in by_grace.items():
            self._backend.stop(pods, grace)


def _nothing() -> None:
    """The backend has no part in it."""
