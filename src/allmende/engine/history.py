"""How long work runs: what was seen of an owner's runs, made into a distribution of run times. All times microseconds.

Naive meaning: count, per span of run time, how many that reached it ended in it (the life table; Kaplan and Meier
1958). Runs under way count as having reached what they have run, never as ended. A class with few runs is mixed
with the wider class around it, from the widest in: all; submitted in company of so many equals; of that size; of
that owner; of that very burst. Work submitted by the hundred is short, whoever its owner is: a burst counts as the
square root of its jobs in the wider classes, because its jobs are alike.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from math import isqrt
from typing import NamedTuple

from msgspec import Struct

from allmende.engine.state import State
from allmende.model.request import units_asked
from allmende.model.span import HOUR, MINUTE
from allmende.model.standing import Phase, Standing
from allmende.model.units import SECOND

WINDOW = 10 * MINUTE
"""Submissions of one owner and size so close to each other are one burst."""
ONE = 1 << 40
"""A survival of 1."""

_HALF_OCTAVES = range(6, 52)
EDGES: tuple[int, ...] = (0, *(isqrt((SECOND * SECOND) << power) for power in _HALF_OCTAVES))
"""Where the spans of run time begin: 0, then 8 s, 11 s, 16 s and so on by half octaves up to 1.5 years."""

_COMPANIES = (2, 4, 8, 16, 64, 256)  # from how many equals on the next class of company begins
_JOB = 1024  # weight of a job that came alone
_PRIOR_JOBS = 30 * _JOB  # what we believe before any run was seen counts as so many jobs ...
_PRIOR_SHORT, _PRIOR_LONG = (
    ONE // 20,
    ONE * 3 // 10,
)  # ... of which this part ends per half octave, below and from an hour
_PRIOR = [_PRIOR_SHORT if edge < HOUR else _PRIOR_LONG for edge in EDGES]
_PULL = 10 * _JOB  # a wider class counts as so many jobs beside the narrower one
_MOST_ENDED = ONE * 19 // 20  # no span ends everything: the unseen stays possible

Owner = tuple[str, str]
"""(project, user)."""


class Run(Struct, frozen=True, gc=False):
    """One submission: whose, of what size (GPU units), when.

    `ran`: how long (None: not started), and `over` if that was all.
    """

    workload: str
    owner: Owner
    units: int
    submitted: int
    ran: int | None
    over: bool


class Like(NamedTuple):
    """What a run time depends on: owner, GPU units, class of company, and the burst it came in (-1: none known)."""

    owner: Owner
    units: int
    company: int
    burst: int


def runs_of(state: State, now: int) -> list[Run]:
    """All submissions that the state remembers, in the order (submitted, id)."""
    found = []
    for outcome in state.outcomes.values():
        ran = None if outcome.started is None else outcome.ended - outcome.started
        owner = (outcome.project, outcome.user)
        found.append(Run(outcome.workload, owner, outcome.units, outcome.submitted, ran, True))
    for name, standing in state.standings.items():
        ran = None
        if standing.phase is Phase.RUNNING and standing.started is not None:
            ran = now - standing.started
        owner = (standing.workload.project, standing.workload.user)
        found.append(Run(name, owner, size_of(standing), standing.submitted, ran, False))
    return sorted(found, key=lambda run: (run.submitted, run.workload))


def size_of(standing: Standing) -> int:
    """GPU units of all pods of a workload; memory and slots, whose units depend on the node, count as they are."""
    total = 0
    for role, pods in zip(standing.workload.roles, standing.wanted, strict=True):
        total += pods * (units_asked(role.ask) or role.ask.memory)
    return total


class _Table:
    """Weights per span of run time: of runs that ended in it, and of runs last seen in it."""

    __slots__ = ("ended", "seen")

    def __init__(self) -> None:
        self.ended = [0] * len(EDGES)
        self.seen = [0] * len(EDGES)

    def hazards(self, wider: list[int], pull: int) -> list[int]:
        """Of those that reach each span, the part (of ONE) that ends in it; the wider class's counts as `pull` jobs."""
        found = wider[:]
        beyond = 0
        for span in range(len(EDGES) - 1, -1, -1):
            ended, seen = self.ended[span], self.seen[span]
            if beyond or ended or seen:
                # those last seen in the span count half of it (actuarial)
                reached = beyond + ended + seen // 2
                part = (ended * ONE + pull * wider[span]) // (reached + pull)
                found[span] = min(part, _MOST_ENDED)
                beyond += ended + seen
        return found


class History:
    """Run times of all classes, of which `ended` runs are over. Curves are made when first asked for.

    A curve gives for each of EDGES the part (of ONE) of all runs that last at least so long.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        ordered = sorted(runs, key=lambda run: (run.submitted, run.workload))
        self.likes: dict[str, Like] = {}
        self.ended = 0
        self._tables: dict[tuple[object, ...], _Table] = {}
        self._hazards: dict[tuple[object, ...], list[int]] = {}
        self._curves: dict[Like, list[int]] = {}
        for run, like, equals in _grouped(ordered):
            self.likes[run.workload] = like
            if run.ran is not None:
                self._count(like, run, _JOB * _JOB // isqrt(_JOB * _JOB * equals))

    def _count(self, like: Like, run: Run, weight: int) -> None:
        self.ended += run.over
        span = bisect_right(EDGES, run.ran or 0) - 1
        for classes in _path(like):
            table = self._tables.setdefault(classes, _Table())
            column = table.ended if run.over else table.seen
            column[span] += _JOB if classes[0] == "burst" else weight

    def curve(self, like: Like) -> list[int]:
        """Survival at each of EDGES."""
        found = self._curves.get(like)
        if found is None:
            found, alive = [], ONE
            for hazard in self._hazard(like):
                found.append(alive)
                alive = max(1, alive * (ONE - hazard) // ONE)
            self._curves[like] = found
        return found

    def _hazard(self, like: Like) -> list[int]:
        """The hazards of its narrowest class; those of wider ones are kept."""
        hazards = _PRIOR
        for classes in _path(like):
            # one burst holds work of several companies, so what it is mixed with is not always the same
            known = None if classes[0] == "burst" else self._hazards.get(classes)
            if known is None:
                table = self._tables.get(classes)
                pull = _PULL if len(classes) > 1 else _PRIOR_JOBS
                known = table.hazards(hazards, pull) if table else hazards
                if classes[0] != "burst":
                    self._hazards[classes] = known
            hazards = known
        return hazards

    def run_time(self, like: Like, chance: int, ran: int = 0) -> int:
        """How long a run lasts in all that `chance` of ONE like it outlast, given that it has run `ran` already."""
        curve = self.curve(like)
        target = _survival(curve, ran) * chance // ONE
        span = bisect_left(curve, -target, key=lambda alive: -alive) - 1
        if span < 0:
            return ran
        if span + 1 >= len(EDGES):
            return max(ran, EDGES[-1])
        above, below = curve[span], curve[span + 1]
        within = (EDGES[span + 1] - EDGES[span]) * (above - target) // (above - below)
        return max(ran, EDGES[span] + within)


def _path(like: Like) -> list[tuple[object, ...]]:
    """The classes that hold it, the widest first."""
    found: list[tuple[object, ...]] = [
        ("all",),
        ("company", like.company),
        ("size", like.company, like.units),
        ("project", like.company, like.units, like.owner[0]),
    ]
    if like.owner[1]:
        found.append(("user", like.company, like.units, like.owner))
    if like.burst >= 0:
        found.append(("burst", like.burst))
    return found


def _survival(curve: list[int], ran: int) -> int:
    """The part of ONE that lasts at least `ran`; between two edges it falls evenly."""
    span = bisect_right(EDGES, ran) - 1
    if span + 1 >= len(EDGES):
        return curve[-1]
    above, below = curve[span], curve[span + 1]
    return max(1, above - (above - below) * (ran - EDGES[span]) // (EDGES[span + 1] - EDGES[span]))


def _grouped(ordered: list[Run]) -> Iterator[tuple[Run, Like, int]]:
    """Each run with its class, and how many equals (itself included) were submitted within WINDOW of it.

    Submissions of one owner and size with gaps of at most WINDOW are one burst.
    """
    groups: dict[tuple[Owner, int], list[Run]] = {}
    for run in ordered:
        groups.setdefault((run.owner, run.units), []).append(run)
    burst = -1
    for (owner, units), group in groups.items():
        moments = [run.submitted for run in group]
        for at, run in enumerate(group):
            if at == 0 or run.submitted - moments[at - 1] > WINDOW:
                burst += 1
            equals = bisect_right(moments, run.submitted + WINDOW) - bisect_left(moments, run.submitted - WINDOW)
            yield run, Like(owner, units, bisect_right(_COMPANIES, equals), burst), equals
