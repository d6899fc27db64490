"""When will it start: for every workload that waits an interval of start times. All times microseconds.

1. A few futures are lived through by the engine itself on forks: run times drawn from the owners' history, arrivals
   from the last days. Their middle is the median.
2. The interval is as wide as forecasts have been wrong before. The futures agree with one another far too well:
   they share one history, and thousands of drawn run times average out, so their own spread says little.
   What matters is the error common to them all, and only past forecasts show it.
   It is measured on the scale of the fourth root of the wait, where it is as large for one hour as for two weeks (a
   wait of days averages over more ends, so its error is relatively smaller). One figure serves all sizes and owners:
   a figure for each would rest on too few independent cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import isqrt

from msgspec import Struct

from allmende.engine.draws import Draws
from allmende.engine.history import ONE, History, Like, Owner, Run, runs_of, size_of
from allmende.engine.runahead import arrivals, models_of, run_ahead
from allmende.engine.state import State
from allmende.model.span import DAY
from allmende.model.standing import Phase, Standing
from allmende.model.workload import Kind, Workload

HORIZON = 60 * DAY
"""Nothing is foretold beyond this."""
COVER = 80
"""Per cent of the true starts that the interval should hold."""

_PRIOR_FORECASTS = 5  # the errors expected before any was seen count as the forecasts of so many moments ...
_PRIOR_ERRORS = (  # ... and are normal, in parts of 5 %, so large that 16 h may well be half or twice as long
    342_254, 685_861, 1_032_211, 1_382_771, 1_739_137, 2_103_084, 2_476_639, 2_862_184,
    3_262_582, 3_681_373, 4_123_064, 4_593_579, 5_100_999, 5_656_866, 6_278_621, 6_994_724,
    7_856_980, 8_977_631, 10_697_507, 13_632_506,
)  # fmt: skip
_WORK = 40_000  # starts that `affordable` spends on one refresh, more or less: ten seconds or so


class StartInterval(Struct, frozen=True, gc=False):
    """When a workload is expected to start: an 80 % interval and its middle. None: beyond HORIZON, or never."""

    low: int | None
    median: int | None
    high: int | None


class Calibration(Struct, frozen=True):
    """How wrong forecasts are: in COVER of 100 cases the roots of true and foretold wait differ by at most `off`.

    Unit: 2^-16 of the fourth root of a microsecond (see `root`).
    """

    off: int = 0


EXACT = Calibration()
"""Trust the futures as they are: right where every run time is known."""


def root(wait: int) -> int:
    """The fourth root of a wait, in units of 2^-16."""
    return isqrt(isqrt(max(0, wait) << 64))


def unroot(value: int) -> int:
    """The wait that has this root."""
    return max(0, value) ** 4 >> 64


class Foretold(Struct, frozen=True, gc=False):
    """A forecast of the past beside what came of it (`started` None: it waits still). `made`: when it was made."""

    made: int
    workload: str
    owner: Owner
    units: int
    median: int
    started: int | None


class Knowledge:
    """What a forecast knows beside the state: the history of run times, recent submissions, past errors."""

    def __init__(self, state: State, now: int, calibration: Calibration, *, coming: bool = True) -> None:
        runs = runs_of(state, now)
        self.history = History(runs)
        self.calibration = calibration
        self.recent: list[Run] = runs if coming else []
        self.models: dict[int, Workload] = models_of(state, self.recent)

    def like(self, standing: Standing, source: str) -> Like:
        """What the run time of a workload depends on; of one yet to come, what that of its `source` did."""
        workload = standing.workload
        found = self.history.likes.get(source or workload.id)
        if found is None:
            return Like((workload.project, workload.user), size_of(standing), 0, -1)
        return found._replace(burst=-1) if source else found

    def lasting(self, standing: Standing, ran: int, draws: Draws, source: str = "") -> int | None:
        """A drawn run time in all, of one that has run `ran`; its limit where no end was ever seen."""
        workload = standing.workload
        if workload.kind is Kind.SERVICE:
            return workload.limit
        if not self.history.ended and workload.limit is not None:
            return workload.limit
        lasts = self.history.run_time(self.like(standing, source), draws.below(ONE), ran)
        return lasts if workload.limit is None else min(lasts, workload.limit)


def affordable(waiting: int) -> int:
    """How many futures are worth their time for so many waiting workloads: 3 to 8.

    The median needs few (on the Philly trace 3 do as well as 20), and the width does not come from them. A queue of
    tens of thousands is run ahead whole, 3 times; nothing is extrapolated.
    """
    return max(3, min(8, _WORK // max(1, waiting)))


def forecast(state: State, now: int, knowledge: Knowledge, runs: int, seed: int) -> dict[str, StartInterval]:
    """Start intervals of all that wait, by workload id in the order of ids. The same seed gives the same answer."""
    found = futures(state, now, knowledge, runs, seed)
    return {name: interval(now, starts, knowledge.calibration) for name, starts in found.items()}


def futures(state: State, now: int, knowledge: Knowledge, runs: int, seed: int) -> dict[str, list[int | None]]:
    """For all that wait, by id in order, the first start in each of so many futures (None: not within HORIZON)."""
    draws = Draws(seed)
    waiting = sorted(name for name, standing in state.standings.items() if standing.phase is Phase.QUEUED)
    found = [one_future(state, now, knowledge, draws.split()) for _ in range(runs)]
    return {name: [starts.get(name) for starts in found] for name in waiting}


def one_future(state: State, now: int, knowledge: Knowledge, draws: Draws) -> dict[str, int]:
    """First starts in one drawn future."""
    coming = arrivals(knowledge.recent, knowledge.models, now, draws.split())
    sources = {arrival.workload.id: source for arrival, source in coming}
    times = draws.split()

    def lasting(standing: Standing, ran: int) -> int | None:
        return knowledge.lasting(standing, ran, times, sources.get(standing.workload.id, ""))

    return run_ahead(state, now, lasting, [arrival for arrival, _ in coming], now + HORIZON)


def interval(now: int, starts: Sequence[int | None], calibration: Calibration) -> StartInterval:
    """The interval from the starts in all futures (None: none within HORIZON)."""
    never = now + HORIZON
    ordered = sorted(never if start is None else start for start in starts)
    last = len(ordered) - 1
    median = (ordered[last // 2] + ordered[(last + 1) // 2]) // 2
    part = (100 - COVER) // 2
    low, high = ordered[last * part // 100], ordered[-(-last * (100 - part) // 100)]
    if calibration.off:
        middle = root(median - now)
        low = min(low, now + unroot(middle - calibration.off))
        high = max(high, now + unroot(middle + calibration.off))
    return StartInterval(*(moment if moment < never else None for moment in (low, median, high)))


# -- learning from past forecasts -----------------------------------------------------------------------------


def calibrate(past: Iterable[Foretold], now: int) -> Calibration:
    """The error that COVER per cent of past forecasts stayed within, learnt from what was known at `now`.

    Naive meaning: each moment at which forecasts were made counts once; in it each owner and size counts as the
    square root of its workloads, because their errors are common. One that waits still is known to be wrong by at
    least what it has waited beyond its median (censored; Kaplan and Meier). Expected errors (_PRIOR_ERRORS) count as
    _PRIOR_FORECASTS moments, so that one bad day does not rule alone.
    """
    errors: list[tuple[int, bool, int]] = []
    for made, group in groupby(sorted(past, key=lambda one: one.made), key=lambda one: one.made):
        if made < now:
            errors += _errors(list(group), now)
    each = _PRIOR_FORECASTS * ONE // len(_PRIOR_ERRORS)
    errors += [(error, False, each) for error in _PRIOR_ERRORS]
    left = sum(weight for _, _, weight in errors)
    alive = ONE
    enough = ONE * (100 - COVER) // 100 + len(errors)  # each step rounds by less than 1
    for error, waits, weight in sorted(errors):
        if not waits:
            alive -= alive * weight // left
            if alive <= enough:
                return Calibration(error)
        left -= weight
    return Calibration(max(error for error, _, _ in errors))


def _errors(group: list[Foretold], now: int) -> list[tuple[int, bool, int]]:
    """(error, known to be at least that, weight) of the forecasts of one moment, in all of weight ONE."""
    cells: dict[tuple[Owner, int], list[Foretold]] = {}
    for one in group:
        cells.setdefault((one.owner, one.units), []).append(one)
    roots = {cell: isqrt(len(ones) << 20) for cell, ones in cells.items()}
    total = sum(roots.values())
    found = []
    for cell, ones in cells.items():
        weight = ONE * roots[cell] // (total * len(ones))
        for one in ones:
            waits = one.started is None or one.started > now
            true = now if one.started is None or one.started > now else one.started
            off = root(true - one.made) - root(one.median - one.made)
            found.append((max(0, off) if waits else abs(off), waits, weight))
    return found
