"""The simulated world: it feeds the engine events, carries decisions out at once, and sleeps until something is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from time import process_time
from typing import TypeAlias

from msgspec.structs import replace

from allmende.engine.apply import apply
from allmende.engine.invariants import check
from allmende.engine.plan import plan
from allmende.engine.state import State
from allmende.model.cluster import NodeState, Pod, PodId
from allmende.model.decision import Cause, Decision, Evict, Grow, Start, Stop
from allmende.model.event import (
    Cancelled,
    Ended,
    Event,
    NodeSet,
    PodGone,
    Submitted,
    Ticked,
    Up,
)
from allmende.model.span import show_clock
from allmende.model.standing import Phase
from allmende.model.workload import Workload
from allmende.sim.heap import Agenda

Entry: TypeAlias = Event | Decision
Act: TypeAlias = "Callable[[World], Iterable[Event]]"
"""Something whose events depend on the state when its time comes."""

FACTS = tuple(name for name in State.__slots__ if name != "index")


class Unsettled(RuntimeError):
    """The engine kept deciding within one instant, or asked to be woken in the past."""


class Diverged(RuntimeError):
    """A state rebuilt from its entries is not the state that they made."""


class Observer:
    """Looks on; every method may be left as it is."""

    def told(self, world: World) -> None:
        """The events of an instant are applied, nothing is decided yet."""

    def round(self, world: World, entries: Sequence[Entry]) -> None:
        """A pass was carried out within the instant; `entries` are its decisions and their answers."""

    def settled(self, world: World, entries: Sequence[Entry], until: int) -> None:
        """The instant is over: nothing changes from `world.now` to `until`. `entries` are all of the instant."""


class World:
    """Drives one State through time.

    `work`: how long a workload really runs once its pods are up, by id (absent: until something else ends it); an
    evicted one starts from zero. `recreate`: owners submit an evicted workload anew, its name with ' added.
    `checked`: the engine's invariants are asserted after every instant. `log`: every event and decision, in order.
    `barred`: what happens instead of the next pods of a workload coming up, decided on their decision (None: nothing).
    `muted`: pods that nobody reports as gone. `instant`: the entries of the present instant.
    `pods`: all that a workload ever had. `pass_seconds`: CPU seconds of each pass that decided something.
    """

    def __init__(self, *, checked: bool = False, recreate: bool = False, rounds: int = 1000) -> None:
        self.state = State()
        self.now = 0
        self.log: list[Entry] = []
        self.work: dict[str, int] = {}
        self.specs: dict[str, Workload] = {}
        self.pods: dict[str, dict[PodId, Pod]] = {}
        self.evictions: Counter[str] = Counter()
        self.evicted_pods: Counter[str] = Counter()
        self.observers: list[Observer] = []
        self.agenda: Agenda[Event | Act] = Agenda()
        self.barred: dict[str, Callable[[Start | Grow], Sequence[Event] | None]] = {}
        self.muted: set[PodId] = set()
        self.pass_seconds: list[float] = []
        self.checked = checked
        self.recreate = recreate
        self.rounds = rounds
        self._wake: int | None = None
        self._unborn: dict[str, None] = {}
        self._taken_at: dict[str, int] = {}
        self.instant: list[Entry] = []

    # -- time ---------------------------------------------------------------------------------------------------

    def at(self, when: int, happening: Event | Act) -> None:
        """Let something happen at a moment (microseconds), after what was put there before."""
        self.agenda.put(when, happening)

    def run(self, until: int) -> None:
        """Live through every instant up to and including `until`; afterwards it is `until`.

        Raises Unsettled where the engine does not come to rest, and what apply, plan and the invariants raise.
        """
        while (when := self._next()) is not None and when <= until:
            self._leave(when)
            self._live(when)
        self._leave(until)
        self.now = max(self.now, until)

    def _next(self) -> int | None:
        due = [when for when in (self.agenda.next_at, self._wake) if when is not None]
        return min(due, default=None)

    def _leave(self, until: int) -> None:
        """Tell observers how long the last instant's state held."""
        if until > self.now or self.instant:
            for observer in self.observers:
                observer.settled(self, self.instant, until)
        self.instant = []

    def _live(self, when: int) -> None:
        """One instant: its events, then passes and their answers until nothing comes."""
        self.now = when
        self._wake = None
        if not self.answer():
            self.enter(Ticked(when))
        for observer in self.observers:
            observer.told(self)
        for _ in range(self.rounds):
            start = len(self.instant)
            began = process_time()
            found = plan(self.state, when)
            if found.decisions:
                self.pass_seconds.append(process_time() - began)
            for decision in found.decisions:
                self.enter(decision)
            if not self.answer() and not found.decisions:
                self._sleep(found.wake_at)
                break
            for observer in self.observers:
                observer.round(self, self.instant[start:])
        else:
            last = ", ".join(sorted({getattr(entry, "workload", "") for entry in self.instant[start:]}))
            raise Unsettled(f"{self.rounds} passes at {show_clock(when)} and no rest; the last was about: {last}")
        if self.checked:
            check(self.state)

    def answer(self) -> bool:
        """Apply what is due now, answers to it included, and decide nothing; whether there was anything."""
        found = False
        while happenings := self.agenda.due(self.now):
            found = True
            for happening in happenings:
                if callable(happening):
                    for event in happening(self):
                        self.enter(event)
                elif not (isinstance(happening, PodGone) and happening.pod in self.muted):
                    self.enter(happening)
        return found

    def _sleep(self, wake_at: int | None) -> None:
        if wake_at is not None and wake_at <= self.now:
            raise Unsettled(f"the engine asks at {show_clock(self.now)} to be woken at {show_clock(wake_at)}")
        self._wake = wake_at

    # -- entries and their answers ---------------------------------------------------------------------------------

    def enter(self, entry: Entry) -> None:
        """Append an entry to the log, apply it, and put down what the world answers."""
        self.log.append(entry)
        self.instant.append(entry)
        match entry:
            case Evict():
                apply(self.state, entry)
                self._evicted(entry)
            case Start() | Grow():
                apply(self.state, entry)
                self._started(entry)
            case Stop() | Cancelled():
                standing = self.state.standings.get(entry.workload)
                apply(self.state, entry)
                self._leave_pods(entry.workload, [pod.id for pod in standing.pods] if standing else ())
            case Submitted():
                self.specs[entry.workload.id] = entry.workload
                apply(self.state, entry)
            case Up():
                apply(self.state, entry)
                self._up(entry)
            case NodeSet():
                apply(self.state, entry)
                self._bear()
            case _:
                apply(self.state, entry)

    def _started(self, decision: Start | Grow) -> None:
        known = self.pods.setdefault(decision.workload, {})
        known.update((pod.id, pod) for pod in decision.pods)
        bar = self.barred.get(decision.workload)
        prevented = bar(decision) if bar else None
        if prevented is not None:
            del self.barred[decision.workload]
            for event in prevented:
                self.at(self.now, event)
            self._unborn[decision.workload] = None
        elif self._can_come_up(decision.workload):
            self.at(self.now, Up(self.now, decision.workload))
        else:
            self._unborn[decision.workload] = None

    def _can_come_up(self, workload: str) -> bool:
        standing = self.state.standings.get(workload)
        if standing is None or standing.phase is not Phase.RUNNING:
            return False
        nodes = (self.state.nodes.get(pod.node) for pod in standing.pods)
        return all(node is not None and node.state is not NodeState.NOT_READY for node in nodes)

    def _bear(self) -> None:
        """Pods that waited for their node come up once it is ready."""
        for workload in [name for name in self._unborn if self._can_come_up(name)]:
            del self._unborn[workload]
            self.at(self.now, Up(self.now, workload))

    def _up(self, event: Up) -> None:
        """Count a known run time from the moment the pods of an attempt are first up."""
        self._unborn.pop(event.workload, None)
        long = self.work.get(event.workload)
        standing = self.state.standings.get(event.workload)
        if long is None or standing is None or standing.started is None:
            return
        self.at(max(self.now, event.at + long), _OwnEnd(event.workload, standing.attempt))

    def _evicted(self, decision: Evict) -> None:
        name = decision.workload
        if decision.cause is not Cause.SHRINK:
            self.evictions[name] += self._taken_at.get(name) != self.now
            self.evicted_pods[name] += len(decision.pods)
            self._taken_at[name] = self.now
        self._leave_pods(name, decision.pods)
        standing = self.state.standings.get(name)
        if self.recreate and standing is not None and standing.phase is Phase.QUEUED:
            spec = self.specs[name]
            again = replace(spec, id=f"{name}'")
            if name in self.work:
                self.work[again.id] = self.work[name]
            self.at(self.now, Cancelled(self.now, name))
            self.at(self.now, Submitted(self.now, again))

    def _leave_pods(self, workload: str, pods: Iterable[PodId]) -> None:
        """Pods told to go are gone after their workload's grace."""
        gone = self.now + self.specs[workload].grace if workload in self.specs else self.now
        for pod in pods:
            self.at(gone, PodGone(gone, pod))

    def cancel_unreported(self, workload: str) -> Iterable[Event]:
        """The owner removes a workload; of its pods nothing is heard but that they are gone after one more grace."""
        yield Cancelled(self.now, workload)
        pods = [pod for pod in self.state.leaving if pod[0] == workload]
        self.muted.update(pods)
        gone = self.now + self.specs[workload].grace
        self.at(gone, lambda _: [PodGone(gone, pod) for pod in pods])

    # -- restart ------------------------------------------------------------------------------------------------

    def restart(self, listed: Sequence[str] = ()) -> None:
        """Forget everything and rebuild the state from the log; `listed`: the order in which the store lists work.

        Raises Diverged where the rebuilt facts are not the ones that were forgotten.
        """
        rebuilt = State()
        for entry in self.log:
            apply(rebuilt, entry)
        for name in FACTS:
            if getattr(rebuilt, name) != getattr(self.state, name):
                raise Diverged(f"at {show_clock(self.now)} the rebuilt {name} are not the same")
        first = {name: place for place, name in enumerate(listed)}
        order = sorted(rebuilt.standings, key=lambda name: (first.get(name, len(first)), name))
        rebuilt.standings = {name: rebuilt.standings[name] for name in order}
        self.state = rebuilt


class _OwnEnd:
    """The end of a run of known length, unless that attempt is over by then."""

    __slots__ = ("attempt", "workload")

    def __init__(self, workload: str, attempt: int) -> None:
        self.workload = workload
        self.attempt = attempt

    def __call__(self, world: World) -> Iterable[Event]:
        standing = world.state.standings.get(self.workload)
        if standing is not None and standing.phase is Phase.RUNNING and standing.attempt == self.attempt:
            yield Ended(world.now, self.workload)
