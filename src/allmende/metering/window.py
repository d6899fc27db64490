"""Use within windows of time. Moments are microseconds since 1970 in UTC; only borders of days know a time zone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta, tzinfo
from fractions import Fraction

from msgspec import Struct

from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.span import HOUR, SECOND
from allmende.model.units import GPU

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT_DO = "write a moment with its offset, such as 2026-05-02T10:15:00Z or 2026-05-02 10:15 +02:00"
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class Use(Struct, frozen=True, gc=False):
    """Something held `units` of GPU from `start` until `end`; None: it still does."""

    name: str
    units: int
    start: int
    end: int | None = None


class Row(Struct, frozen=True, gc=False):
    """The part of a use that lies in a window; never empty."""

    name: str
    units: int
    start: int
    end: int

    @property
    def amount(self) -> int:
        """GPU units x microseconds."""
        return self.units * (self.end - self.start)


class Period(Struct, frozen=True, gc=False):
    """A calendar day, week or month, by its first day, with the part of it that lies in the window.

    `partial`: the window covers only a part of it.
    """

    first: date
    start: int
    end: int
    partial: bool


def moment(text: str, field: str = "moment") -> int:
    """Microseconds of a written moment with an offset ('2017-10-29 00:30 +02:00', '2026-05-02T10:14:57Z').

    Raises Mistake: UNREADABLE, AMBIGUOUS without an offset (a wall clock may show one time twice).
    """
    try:
        read = datetime.fromisoformat(text.strip().replace(" +", "+").replace(" -", "-"))
    except ValueError:
        raise Mistake(MistakeCode.UNREADABLE, text, field, _MOMENT_DO) from None
    if read.tzinfo is None:
        raise Mistake(MistakeCode.AMBIGUOUS, text, field, _MOMENT_DO)
    return _micros(read)


def show_local(us: int, zone: tzinfo) -> str:
    """A moment on the wall clock of a zone, to the minute, with the zone's name then: '2017-10-29 04:30 CET'."""
    return local(us, zone).strftime("%Y-%m-%d %H:%M %Z")


def local(us: int, zone: tzinfo) -> datetime:
    """A moment as a date and time of a zone."""
    return (_EPOCH + timedelta(microseconds=us)).astimezone(zone)


def clock_changes(zone: tzinfo, start: int, years: int) -> list[tuple[int, int]]:
    """(moment, offset from then on) of a zone: what holds at `start`, then every change in the years after it."""
    found = [(start, _offset(start, zone))]
    day = start
    for _ in range(years * 366):
        following = day + 24 * HOUR
        if _offset(following, zone) != found[-1][1]:
            low, high = day, following
            while high - low > SECOND:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(middle, zone) == found[-1][1] else (low, middle)
            found.append((high // SECOND * SECOND, _offset(high, zone)))
        day = following
    return found


def _offset(us: int, zone: tzinfo) -> int:
    return (local(us, zone).utcoffset() or timedelta(0)) // timedelta(microseconds=1)


def elapsed(start: int, end: int) -> int:
    """Microseconds between two moments, whatever wall clocks did. Raises Mistake where end is before start."""
    if end < start:
        raise Mistake(MistakeCode.CONTRADICTION, end, "end", "let it end after its start", "is before the start")
    return end - start


def within(uses: Iterable[Use], start: int, end: int) -> tuple[Row, ...]:
    """The parts of uses that overlap [start, end), in the given order; an empty overlap is no row (case 083).

    Raises Mistake where the window or a use ends before it starts.
    """
    elapsed(start, end)
    rows = []
    for use in uses:
        until = end if use.end is None else min(end, use.start + elapsed(use.start, use.end))
        since = max(start, use.start)
        if since < until and use.units:
            rows.append(Row(use.name, use.units, since, until))
    return tuple(rows)


def gpu_hours(amount: int) -> Fraction:
    """GPU-hours of an amount in GPU units x microseconds, exactly."""
    return Fraction(amount, GPU * HOUR)


def total(rows: Iterable[Row]) -> int:
    """The sum of the rows' amounts."""
    return sum(row.amount for row in rows)


def days(start: int, end: int, zone: tzinfo) -> tuple[Period, ...]:
    """The local days that overlap [start, end)."""
    return _periods(start, end, zone, lambda day: day, lambda day: day + timedelta(days=1))


def weeks(start: int, end: int, zone: tzinfo, starts: str = "monday") -> tuple[Period, ...]:
    """The local weeks that overlap [start, end); they keep their calendar borders (case 085).

    Raises Mistake for a `starts` that is no weekday.
    """
    if starts.casefold() not in WEEKDAYS:
        raise Mistake(MistakeCode.UNKNOWN_NAME, starts, "week_starts", f"write one of {', '.join(WEEKDAYS)}")
    first = WEEKDAYS.index(starts.casefold())
    back = lambda day: day - timedelta(days=(day.weekday() - first) % 7)  # noqa: E731
    return _periods(start, end, zone, back, lambda day: day + timedelta(days=7))


def months(start: int, end: int, zone: tzinfo) -> tuple[Period, ...]:
    """The local months that overlap [start, end)."""
    return _periods(start, end, zone, lambda day: day.replace(day=1), _next_month)


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _periods(
    start: int, end: int, zone: tzinfo, first: Callable[[date], date], following: Callable[[date], date]
) -> tuple[Period, ...]:
    """Calendar periods over a window, each clipped to it."""
    elapsed(start, end)
    day = first(local(start, zone).date())
    found = []
    while start < end and (begins := _midnight(day, zone)) < end:
        ends = _midnight(following(day), zone)
        clipped = max(begins, start), min(ends, end)
        found.append(Period(day, *clipped, partial=clipped != (begins, ends)))
        day = following(day)
    return tuple(found)


def _midnight(day: date, zone: tzinfo) -> int:
    """The moment a local day begins; where clocks skip midnight, the moment of the change."""
    return _micros(datetime(day.year, day.month, day.day, tzinfo=zone))


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
