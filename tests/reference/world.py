"""The engine driven by hand: feed entries, let it plan, judge every step by laws that know nothing of its insides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from allmende.engine.apply import apply
from allmende.engine.explain import explain
from allmende.engine.invariants import check
from allmende.engine.plan import plan
from allmende.engine.state import State
from allmende.model.decision import Decision, Evict, Grow, Hold, Start
from allmende.model.event import Event, PodEnded, PodGone, Up
from allmende.model.standing import Phase
from tests.reference import laws
from tests.reference.victims import use

Entry = Event | Decision


@dataclass
class World:
    """A state, all entries that made it, and the decisions among them by pass."""

    state: State = field(default_factory=State)
    log: list[Entry] = field(default_factory=list)
    passes: list[list[Decision]] = field(default_factory=list)
    done: Counter[tuple[str, int]] = field(default_factory=Counter)  # pods that ended well, by workload and role

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> World:
        """The world after these entries; they are given, so only the books are checked, once."""
        world = cls()
        for entry in entries:
            apply(world.state, entry)
            world.log.append(entry)
        check(world.state)
        return world

    def feed(self, *events: Event) -> None:
        """What happened."""
        for event in events:
            if isinstance(event, PodEnded) and event.ok:
                self.done[event.pod[0], event.pod[2]] += 1
            self._apply(event)

    def step(self, now: int) -> list[Decision]:
        """One pass, its decisions applied, and every law judged."""
        decisions = list(plan(self.state, now).decisions)
        self.passes.append(decisions)
        for decision in decisions:
            self._decide(decision)
        laws.gangs_whole(self.state, self.done)
        laws.nothing_twice(self.state)
        for name, standing in self.state.standings.items():
            if standing.phase is Phase.QUEUED:
                assert explain(self.state, name, now) is not None, f"{name} pends without a reason"
        return decisions

    def settle(self, now: int, rng: Random, rounds: int) -> int:
        """Pass after pass while the clock stands still and whoever leaves is gone at once, until nothing moves."""
        for number in range(rounds):
            decisions = self.step(now)
            ups = [Up(now, decision.workload) for decision in decisions if isinstance(decision, Start)]
            leaving = sorted(self.state.leaving)
            rng.shuffle(leaving)
            if not decisions and not leaving:
                return number
            self.feed(*ups, *(PodGone(now, pod) for pod in leaving))
        raise AssertionError(f"not quiet after {rounds} passes: {self.passes[-2:]}")

    def _apply(self, entry: Entry) -> None:
        apply(self.state, entry)
        self.log.append(entry)
        check(self.state)

    def _decide(self, decision: Decision) -> None:
        state = self.state
        after: Callable[[], None] = lambda: None  # noqa: E731
        match decision:
            case Start() | Grow() | Hold():
                laws.places_legal(state, decision)
                after = lambda: laws.caps_kept(state, decision)  # noqa: E731
            case Evict():
                after = self._spared(decision)
            case _:
                pass
        self._apply(decision)
        after()

    def _spared(self, decision: Evict) -> Callable[[], None]:
        state = self.state
        if not decision.claimant:
            return lambda: None
        before = use(state)
        standing = state.standings[decision.workload]
        claimant = state.standings[decision.claimant].workload.project
        models = {state.nodes[pod.node].model for pod in standing.pods if pod.id in decision.pods}
        victim = standing.workload.project
        return lambda: laws.spared(state, before, decision, victim, claimant, models)
