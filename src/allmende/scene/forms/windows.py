"""Use in windows of time: elapsed time, rows of a window, days, weeks and months."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from fractions import Fraction

from allmende.metering.window import (
    Period,
    Row,
    Use,
    days,
    elapsed,
    gpu_hours,
    local,
    moment,
    months,
    show_local,
    total,
    weeks,
    within,
)
from allmende.model.mistake import MistakeCode
from allmende.model.quantity import quantity
from allmende.model.span import HOUR, SECOND
from allmende.model.units import GPU, amount
from allmende.scene.cell import Cell
from allmende.scene.forms.then import Then

_SPLITS = {"weeks": "from", "days": "day", "months": "month"}


def windows(_top: Cell, given: dict[str, Cell], then: Then) -> None:
    """A job's or pods' use: its elapsed time, its rows in a window, its days, weeks and months."""
    zone = zone_of(given)
    uses = _uses(given)
    since = min((use.start for use in uses), default=0)
    until = max((use.end for use in uses if use.end is not None), default=since)
    start, end = _window(given) or (since, until)
    rows = within(uses, start, end)
    shown = then.take("shown")
    if shown is not None:
        ends = {"start": since, "end": until}
        for key, cell in shown.entries().items():
            text = show_local(ends.get(key, 0), zone)
            then.expect(text == cell.text(), f"the {key} is shown as {text}, not {cell.text()}")
    named = then.take("listed")
    if named is not None:
        names = [item.text() for item in named.items()]
        then.expect(sorted({row.name for row in rows}) == sorted(names), f"rows are {rows}, not of {names}")
    for key, first in _SPLITS.items():
        _compare(key, first, then, _periods(key, start, end, zone, given), uses)
    then.numbers(lambda name: _measure(name, rows, since, until))
    then.sentences(lambda text: _said(text, rows))


def zone_of(given: dict[str, Cell]) -> tzinfo:
    return given["timezone"].zone() if "timezone" in given else UTC


def _window(given: dict[str, Cell]) -> tuple[int, int] | None:
    if "window" not in given:
        return None
    ends = given["window"].items()
    if len(ends) != 2:
        raise given["window"].mistake(MistakeCode.WRONG_KIND, "write [from, to]", "is no pair of moments")
    first, last = (moment(each.text(), each.where) for each in ends)
    return first, last


def _uses(given: dict[str, Cell]) -> list[Use]:
    items = [given["job"]] if "job" in given else []
    for name in ("jobs", "pods"):
        items += given[name].items() if name in given else []
    return [_use(item.entries(), given) for item in items]


def _use(item: dict[str, Cell], given: dict[str, Cell]) -> Use:
    units = amount(item["gpus"].text()) if "gpus" in item else GPU
    name = item["name"].text() if "name" in item else "job"
    if "running" in item:
        return Use(name, units, *_whole_of(item["running"], given))
    start = item.get("start_local") or item["start"]
    end = item.get("end_local") or item.get("end")
    last = None if end is None or end.is_null else moment(end.text(), end.where)
    return Use(name, units, moment(start.text(), start.where), last)


def _whole_of(cell: Cell, given: dict[str, Cell]) -> tuple[int, int]:
    """'the whole of April' (of the window's year), 'the whole window'."""
    window = _window(given)
    zone = zone_of(given)
    month = re.fullmatch(r"the whole of (?P<m>[A-Z][a-z]+)(?: (?P<y>\d{4}))?", cell.text())
    if window is None:
        raise cell.mistake(MistakeCode.UNREADABLE, "state the window too", "needs a window")
    if month is None or month["m"] not in calendar.month_name:
        return window
    year = int(month["y"]) if month["y"] else local(window[0], zone).year
    number = list(calendar.month_name).index(month["m"])
    first = datetime(year, number, 1, tzinfo=zone)
    last = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=zone)
    return moment(first.isoformat()), moment(last.isoformat())


def _periods(key: str, start: int, end: int, zone: tzinfo, given: dict[str, Cell]) -> tuple[Period, ...]:
    if key == "weeks":
        return weeks(start, end, zone, given["week_starts"].text() if "week_starts" in given else "monday")
    return days(start, end, zone) if key == "days" else months(start, end, zone)


def _compare(key: str, first: str, then: Then, periods: Sequence[Period], uses: Sequence[Use]) -> None:
    """Compare a list of days, weeks or months with what is expected of each."""
    given = then.take(key)
    if given is None:
        return
    wanted = [item.entries() for item in given.items()]
    names = [(item.get(first) or item["from"]).text() for item in wanted]
    found = [str(period.first) for period in periods]
    then.expect(found == names, f"{key} begin on {found}, not {names}")
    for item, period in zip(wanted, periods, strict=False):
        hours = gpu_hours(total(within(uses, period.start, period.end)))
        if "gpu_hours" in item:
            fits = abs(hours - quantity(item["gpu_hours"].text())) <= then.tolerance
            then.expect(fits, f"{period.first}: {float(hours):g} GPU-hours, not {item['gpu_hours'].text()}")
        if "partial" in item:
            then.expect(period.partial == item["partial"].flag(), f"{period.first}: partial is {period.partial}")


def _measure(name: str, rows: Sequence[Row], since: int, until: int) -> Fraction | None:
    own = re.fullmatch(r"(?P<who>.+) (?P<what>seconds|gpu_hours)", name)
    if own is not None:
        mine = [row for row in rows if row.name == own["who"]]
        covered = Fraction(sum(row.end - row.start for row in mine), SECOND)
        return covered if own["what"] == "seconds" else gpu_hours(total(mine))
    match name:
        case "gpu_hours" | "sum":
            return gpu_hours(total(rows))
        case "elapsed_hours":
            return Fraction(elapsed(since, until), HOUR)
        case "elapsed_seconds":
            return Fraction(elapsed(since, until), SECOND)
        case "rows":
            return Fraction(len(rows))
    return None


def _said(text: str, rows: Sequence[Row]) -> bool | None:
    if re.search(r"end before (?:its )?start|negative", text) and re.match(r"an? row", text):
        return any(row.end <= row.start or row.amount <= 0 for row in rows)
    return None
