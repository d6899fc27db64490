"""Use in windows of time: overlaps, calendar borders, changes of the clock."""

from datetime import UTC, date, timedelta, tzinfo
from fractions import Fraction
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allmende.engine.account import midnight
from allmende.metering.window import (
    Use,
    clock_changes,
    days,
    elapsed,
    gpu_hours,
    moment,
    months,
    show_local,
    total,
    weeks,
    within,
)
from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.policy import Policy
from allmende.model.span import DAY, HOUR, SECOND
from allmende.model.units import GPU

AMSTERDAM = ZoneInfo("Europe/Amsterdam")
SAO_PAULO = ZoneInfo("America/Sao_Paulo")  # skipped midnight on 2018-11-04


def test_elapsed_over_the_night_the_clocks_go_back() -> None:
    start, end = moment("2017-10-29 00:30 +02:00"), moment("2017-10-29 04:30 +01:00")
    assert elapsed(start, end) == 5 * HOUR
    assert gpu_hours(8 * GPU * elapsed(start, end)) == 40
    assert show_local(start, AMSTERDAM) == "2017-10-29 00:30 CEST"
    assert show_local(end, AMSTERDAM) == "2017-10-29 04:30 CET"


@pytest.mark.parametrize(
    ("day", "zone", "hours"),
    [
        (date(2017, 10, 29), AMSTERDAM, 25),
        (date(2017, 3, 26), AMSTERDAM, 23),
        (date(2018, 11, 4), SAO_PAULO, 23),
        (date(2024, 2, 29), UTC, 24),
    ],
)
def test_a_local_day_may_have_23_or_25_hours(day: date, zone: tzinfo, hours: int) -> None:
    noon = moment(f"{day}T12:00:00Z")
    (found,) = [p for p in days(noon - 2 * DAY, noon + 2 * DAY, zone) if p.first == day]
    assert (found.end - found.start) // HOUR == hours
    assert not found.partial


def test_empty_overlap_is_no_row() -> None:
    start, end = moment("2026-05-02T10:14:57Z"), moment("2026-05-02T10:16:13Z")
    uses = [
        Use("gone", GPU, start - HOUR, start - 147 * SECOND),
        Use("touches", GPU, start - HOUR, start),
        Use("there", GPU, start + 16 * SECOND),
        Use("later", GPU, end),
        Use("nothing", 0, start),
    ]
    (row,) = within(uses, start, end)
    assert (row.name, row.end - row.start, row.amount) == ("there", 60 * SECOND, GPU * 60 * SECOND)


def test_weeks_keep_their_calendar_borders() -> None:
    start, end = moment("2026-04-07T00:00:00Z"), moment("2026-04-22T00:00:00Z")
    found = [(w.first.isoformat(), (w.end - w.start) // DAY, w.partial) for w in weeks(start, end, UTC)]
    assert found == [("2026-04-06", 6, True), ("2026-04-13", 7, False), ("2026-04-20", 2, True)]
    assert [w.first.day for w in weeks(start, end, UTC, "sunday")] == [5, 12, 19]


def test_months_turn_with_the_year() -> None:
    start, end = moment("2025-12-31T23:50:00Z"), moment("2026-01-01T00:20:00Z")
    hours = [gpu_hours(total(within([Use("J", GPU, start, end)], m.start, m.end))) for m in months(start, end, UTC)]
    assert hours == [Fraction(1, 6), Fraction(1, 3)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("2017-10-29 02:30", MistakeCode.AMBIGUOUS),
        ("yesterday", MistakeCode.UNREADABLE),
        ("2017-13-01T00:00Z", MistakeCode.UNREADABLE),
    ],
)
def test_a_moment_needs_its_offset(text: str, code: MistakeCode) -> None:
    with pytest.raises(Mistake) as refused:
        moment(text)
    assert refused.value.code is code


def test_mistakes_of_windows() -> None:
    with pytest.raises(Mistake, match="before the start"):
        within([], 5, 4)
    with pytest.raises(Mistake, match="before the start"):
        within([Use("J", GPU, 5, 4)], 0, 10)
    with pytest.raises(Mistake, match="week_starts"):
        weeks(0, DAY, UTC, "mon")


@given(
    st.lists(st.tuples(st.integers(0, 90 * DAY), st.integers(0, 40 * DAY), st.integers(1, 8)), max_size=6),
    st.integers(0, 40 * DAY),
    st.integers(0, 60 * DAY),
    st.sampled_from([UTC, AMSTERDAM, SAO_PAULO]),
)
def test_periods_add_up_to_their_window(jobs: list[tuple[int, int, int]], since: int, span: int, zone: tzinfo) -> None:
    base = moment("2018-09-15T00:00:00Z")
    uses = [Use(f"j{i}", n * GPU, base + at, base + at + long) for i, (at, long, n) in enumerate(jobs)]
    start, end = base + since, base + since + span
    whole = total(within(uses, start, end))
    for split in (days, weeks, months):
        periods = split(start, end, zone)
        assert sum(total(within(uses, p.start, p.end)) for p in periods) == whole
        assert all(a.end == b.start for a, b in pairwise(periods))
        assert all(a.first + timedelta(days=1) <= b.first for a, b in pairwise(periods))


@pytest.mark.parametrize(
    ("at", "midnight_is"),
    [
        ("2026-10-24T12:00:00Z", "2026-10-24T22:00:00Z"),  # still summer time
        ("2026-10-25T12:00:00Z", "2026-10-25T23:00:00Z"),  # the clocks went back this morning
        ("2026-10-25T22:30:00Z", "2026-10-25T23:00:00Z"),  # half past eleven, the 25th has 25 hours
        ("2026-10-25T23:30:00Z", "2026-10-26T23:00:00Z"),
        ("2026-03-28T23:30:00Z", "2026-03-29T22:00:00Z"),  # the 29th has 23 hours
    ],
)
def test_a_local_day_turns_at_its_own_midnight(at: str, midnight_is: str) -> None:
    first, *changes = clock_changes(ZoneInfo("Europe/Berlin"), moment("2026-01-01T00:00:00Z"), 1)
    policy = Policy(utc_offset=first[1], clock_changes=tuple(changes))
    assert midnight(moment(at), policy) == moment(midnight_is)
