"""One possible future of a cluster: a fork of the state, lived through with drawn run times and drawn arrivals.

The engine that decides here is the one that decides in earnest. Times in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from msgspec.structs import replace

from allmende.engine.apply import Entry, apply, settle
from allmende.engine.draws import Draws
from allmende.engine.history import Owner, Run, size_of
from allmende.engine.plan import plan
from allmende.engine.state import State
from allmende.model.cluster import PodId
from allmende.model.decision import Decision, Evict, Start, Stop
from allmende.model.event import Ended, PodGone, Submitted, Ticked, Up
from allmende.model.request import Ask
from allmende.model.span import DAY, HOUR
from allmende.model.standing import Phase, Standing
from allmende.model.units import GPU
from allmende.model.workload import Role, Workload

Lasting = Callable[[Standing, int], int | None]
"""How long a workload runs in all, given how long it has run already; None = it does not end by itself."""

PAST = 2 * DAY
"""Arrivals are drawn from the submissions of so long ..."""
BLOCK = DAY
"""... in blocks of so long, each owner's on its own, so that bursts stay bursts."""
HALVING = 16 * HOUR
"""The further ahead, the fewer: after so long half of them come. What arrives now is no promise for next week."""
COMING = 4 * DAY
"""Nothing that has not been submitted arrives later than this."""

_ROUNDS = 1000  # passes within one instant before a future is given up
_ONE = 1 << 32


def run_ahead(state: State, now: int, lasting: Lasting, arrivals: Iterable[Submitted], until: int) -> dict[str, int]:
    """First starts of the workloads that wait now, in one future; one that has none by `until` is missing.

    The state is left as it was. Ends when everybody has started, when nothing is due any more, or at `until`.
    """
    return _Ahead(state, now, lasting, arrivals).run(until)


class _Ahead:
    """The fork and what is due in it."""

    def __init__(self, state: State, now: int, lasting: Lasting, arrivals: Iterable[Submitted]) -> None:
        self.state = state.fork()
        self.lasting = lasting
        self.starts: dict[str, int] = {}
        self.due: list[tuple[int, int, Entry, int]] = []
        self.count = 0
        self.put(now, Ticked(now))
        settle(self.state)
        standings = self.state.standings
        self.waiting = {name for name, standing in standings.items() if standing.phase is Phase.QUEUED}
        for name in sorted(name for name in standings if name not in self.waiting):
            self.put_end(standings[name], now)
        for pod_id in sorted(self.state.leaving):
            self.put(now, PodGone(now, pod_id))
        for arrival in arrivals:
            self.put(arrival.at, arrival)

    def put(self, at: int, entry: Entry, attempt: int = 0) -> None:
        """Let something happen; equal moments keep the order in which they were put."""
        heappush(self.due, (at, self.count, entry, attempt))
        self.count += 1

    def put_end(self, standing: Standing, now: int) -> None:
        """Draw the end of a running workload. One with a time limit is stopped there by the engine, if not sooner."""
        began = now if standing.started is None else standing.started
        lasts = self.lasting(standing, now - began)
        limit = standing.workload.limit
        name = standing.workload.id
        if limit is not None and (lasts is None or lasts >= limit):
            self.put(max(now, began + limit), Ticked(began + limit))
        elif lasts is not None:
            end = max(now, began + lasts)
            self.put(end, Ended(end, name), standing.attempt)

    def run(self, until: int) -> dict[str, int]:
        """Live through it."""
        rounds, before = 0, -1
        while self.due and self.waiting and self.due[0][0] <= until:
            at = self.due[0][0]
            rounds = rounds + 1 if at == before else 0
            before = at
            if rounds > _ROUNDS:
                break
            self.happen(at)
            found = plan(self.state, at)
            again = False
            for decision in found.decisions:
                again |= self.carry_out(decision, at)
            if again:
                self.put(at, Ticked(at))
            elif found.wake_at is not None and found.wake_at > at:
                self.put(found.wake_at, Ticked(found.wake_at))
        return self.starts

    def happen(self, at: int) -> None:
        """Apply all that is due at this moment."""
        while self.due and self.due[0][0] == at:
            _, _, entry, attempt = heappop(self.due)
            if attempt:
                standing = self.state.standings.get(entry.workload) if isinstance(entry, Ended) else None
                if standing is None or standing.phase is not Phase.RUNNING or standing.attempt != attempt:
                    continue
            apply(self.state, entry)

    def carry_out(self, decision: Decision, at: int) -> bool:
        """Apply a decision and what the world answers; whether another pass at this moment may find more to do."""
        match decision:
            case Start(workload=name):
                apply(self.state, decision)
                apply(self.state, Up(at, name))
                if name in self.waiting:
                    self.waiting.discard(name)
                    self.starts[name] = at
                self.put_end(self.state.standings[name], at)
                return False
            case Evict(workload=name):
                grace = self.state.standings[name].workload.grace
                apply(self.state, decision)
                self.let_leave(decision.pods, at + grace)
            case Stop(workload=name):
                standing = self.state.standings[name]
                apply(self.state, decision)
                self.let_leave((pod.id for pod in standing.pods), at + standing.workload.grace)
            case _:
                apply(self.state, decision)
        return True

    def let_leave(self, pods: Iterable[PodId], at: int) -> None:
        """Pods told to go are gone after their grace."""
        for pod_id in pods:
            self.put(at, PodGone(at, pod_id))


# -- arrivals -------------------------------------------------------------------------------------------------


def arrivals(seen: Iterable[Run], models: dict[int, Workload], now: int, draws: Draws) -> list[tuple[Submitted, str]]:
    """Submissions that may come after `now`, each with the id of the past one that it repeats, in order of time.

    Each owner's submissions of the last PAST are cut into blocks of BLOCK at random moments and laid end to end.
    `models`: a workload of each size (GPU units) to be copied.
    """
    by_owner: dict[Owner, list[Run]] = {}
    for run in seen:
        if now - PAST < run.submitted <= now and run.units in models:
            by_owner.setdefault(run.owner, []).append(run)
    found: list[tuple[Submitted, str]] = []
    earliest = max(0, now - PAST)
    room = max(1, now - BLOCK - earliest)
    for owner in sorted(by_owner):
        for begin in range(now, now + COMING, BLOCK):
            cut = earliest + draws.below(room)
            for run in by_owner[owner]:
                at = begin + run.submitted - cut
                if cut < run.submitted <= cut + BLOCK and draws.below(_ONE) < _kept(at - now):
                    name = f"{run.workload}~{len(found)}"
                    model = replace(models[run.units], id=name, project=owner[0], user=owner[1])
                    found.append((Submitted(at, model), run.workload))
    return sorted(found, key=lambda pair: pair[0].at)


def models_of(state: State, seen: Iterable[Run]) -> dict[int, Workload]:
    """For each size that was seen a workload like it: one of those there are (the first by id), else plain GPUs."""
    found: dict[int, Workload] = {}
    for name in sorted(state.standings):
        standing = state.standings[name]
        units = size_of(standing)
        if units and units not in found:
            found[units] = replace(standing.workload, after=(), array="", throttle=0, limit=None, priority=0)
    most = max((len(node.devices) for node in state.nodes.values()), default=0)
    for run in seen:
        if run.units not in found and run.units > 0 and most:
            found[run.units] = _plain(run.units, most)
    return found


def _plain(units: int, most: int) -> Workload:
    """A gang of so many units on nodes of `most` GPUs: whole nodes and the rest, or a share of one GPU."""
    if units < GPU:
        return Workload("", "", (Role("share", 1, Ask(share=units)),), gang_min=1)
    full, rest = divmod(units // GPU, most)
    roles = [Role("node", full, Ask(whole=most))] if full else []
    if rest:
        roles.append(Role("rest", 1, Ask(whole=rest)))
    return Workload("", "", tuple(roles), gang_min=full + (rest > 0))


def _kept(ahead: int) -> int:
    """The part of _ONE that still comes so far ahead: halved each HALVING, evenly in between."""
    halvings, within = divmod(ahead, HALVING)
    return (_ONE >> halvings) * (2 * HALVING - within) // (2 * HALVING)
