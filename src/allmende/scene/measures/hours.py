"""Figures of use over time, and of the time a decision takes."""

from __future__ import annotations

from datetime import date, timedelta, tzinfo
from fractions import Fraction
from time import process_time
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from allmende.engine.apply import apply
from allmende.engine.plan import plan
from allmende.metering.window import Use, days, gpu_hours, moment, months, total, within
from allmende.model.event import Cancelled, Submitted
from allmende.model.span import HOUR
from allmende.scene.measures.played import Build, Measure, Played, plain
from allmende.scene.value import Scene


def _first_pass(_: Scene) -> Measure:
    """CPU seconds of the first pass that decided something."""
    return lambda played: Fraction(played.world.pass_seconds[0]) if played.world.pass_seconds else None


def _second_pass(scene: Scene) -> Measure | None:
    """CPU seconds of a pass when the last workload is submitted once more, under another name."""
    specs = list(scene.workloads.values())

    def measure(played: Played) -> Fraction:
        again = replace(specs[-1], id=f"{specs[-1].id} again")
        now = played.world.now
        apply(played.state, Submitted(now, again))
        began = process_time()
        plan(played.state, now)
        taken = process_time() - began
        apply(played.state, Cancelled(now, again.id))
        return Fraction(taken)

    return measure if specs else None


def zone_of(scene: Scene) -> tzinfo:
    """The scene's time zone."""
    return ZoneInfo(scene.zone)


def _uses(played: Played) -> tuple[Use, ...]:
    return played.record.uses


def _last_hour(played: Played) -> Fraction:
    return gpu_hours(total(within(_uses(played), played.world.now - HOUR, played.world.now)))


def _all_hours(played: Played) -> Fraction:
    since = min((use.start for use in _uses(played)), default=played.world.now)
    return gpu_hours(total(within(_uses(played), since, played.world.now)))


def _on_day(_: Scene, text: str) -> Measure:
    def measure(played: Played) -> Fraction:
        start = moment(f"{text if len(text) > 7 else text + '-01'}T12:00:00Z")
        split, around = (days, timedelta(days=2)) if len(text) > 7 else (months, timedelta(days=40))
        reach = around // timedelta(microseconds=1)
        first = date.fromisoformat(text if len(text) > 7 else f"{text}-01")
        periods = [p for p in split(start - reach, start + reach, zone_of(played.scene)) if p.first == first]
        return gpu_hours(sum(total(within(_uses(played), p.start, p.end)) for p in periods))

    return measure


TABLE: list[tuple[str, Build]] = [
    (r"gpu_hours_last_hour", plain(_last_hour)),
    (r"gpu_hours", plain(_all_hours)),
    (r"gpu_hours (\d{4}-\d{2}(?:-\d{2})?)(?: \(?(?:local|UTC)\)?)?", _on_day),
    (r"decision_seconds", _first_pass),
    (r"second_decision_seconds", _second_pass),
]
