"""Spans of time: Slurm's limits, our own files' durations, and how they are shown; inside, time is microseconds."""

import re
from fractions import Fraction

from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.quantity import MOST, Written, number

SECOND = 1_000_000
"""Microseconds in a second: the engine's only unit of time."""
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_SLURM = re.compile(r"(?:([0-9]{1,19})-)?([0-9]{1,19})(?::([0-9]{1,19}))?(?::([0-9]{1,19}))?")
_NO_LIMIT = ("unlimited", "infinite")
_SLURM_DO = "write minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]] or UNLIMITED"

_UNIT = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": 1000, "us": 1}
_PLAIN = re.compile(r"([+-]?)([0-9]{1,19}(?:\.[0-9]{1,19})?|\.[0-9]{1,19})")
_PART = r"(?:([0-9]{1,19}(?:\.[0-9]{1,19})?) ?%s ?)?"
_PARTS = re.compile("".join(_PART % name for name in ("d", "h", "m(?:in)?", "s", "ms", "us")))
_SPAN_DO = "write seconds, a number with d, h, m, s or ms such as 1h30m, or h:mm:ss or d-hh:mm:ss"


def slurm_time(text: str | int, field: str = "time") -> int | None:
    """Seconds (not microseconds) of a Slurm time limit; None is no limit ('0', UNLIMITED, INFINITE; any total of 0).

    Fields are summed, not checked for range ('0:240:0' is four hours). A bare number is minutes (cases 160, 166).
    Raises Mistake: EMPTY, UNREADABLE, WRONG_KIND, ABSURD. Source: sbatch(1), --time.
    """
    if not isinstance(text, str):
        number(text, field, _SLURM_DO)  # a number at all, and no absurd one
        text = str(text)
    if text.lower() in _NO_LIMIT:
        return None
    total = _colons(text, field, _SLURM_DO)
    return total or None


def _colons(text: str, field: str, do: str) -> int:
    """Seconds of any of Slurm's colon and day forms."""
    found = _SLURM.fullmatch(text)
    if found is None:
        raise Mistake(MistakeCode.UNREADABLE if text.strip() else MistakeCode.EMPTY, text, field, do)
    days, *fields = found.groups()
    given = [int(part) for part in fields if part is not None]
    if days is None and len(given) < 3:  # minutes, or minutes and seconds
        given = [0, *given]
    hours, minutes, seconds = (*given, 0, 0)[:3]
    total = (int(days or 0) * 24 + hours) * 3600 + minutes * 60 + seconds
    if total > MOST // SECOND:
        raise Mistake(MistakeCode.ABSURD, text, field, do)
    return total


def seconds(value: Written, field: str, least: int | None = 0) -> int:
    """MICROSECONDS of a duration in our own files: a bare number is seconds; '90s', '1h30m', '1:30:00', '2-12'.

    least: the smallest allowed, in microseconds (1 refuses zero, None lets a moment be negative).
    Raises Mistake: AMBIGUOUS ('3:00'), TOO_FINE below 1 us, NEGATIVE or ZERO below least, EMPTY, UNREADABLE, ABSURD.
    """
    exact = (_read(value, field) if isinstance(value, str) else number(value, field, _SPAN_DO)) * SECOND
    if exact.denominator != 1:
        raise Mistake(MistakeCode.TOO_FINE, value, field, _SPAN_DO, "is finer than one microsecond")
    if abs(exact) > MOST:
        raise Mistake(MistakeCode.ABSURD, value, field, _SPAN_DO)
    if least is not None and exact < least:
        do = f"write at least {write_span(least)}" if least > 0 else _SPAN_DO
        wrong = f"is less than {write_span(least)}" if exact > 0 else ""
        code = MistakeCode.NEGATIVE if exact < 0 else MistakeCode.TOO_FINE if exact else MistakeCode.ZERO
        raise Mistake(code, value, field, do, wrong)
    return int(exact)


def _read(text: str, field: str) -> Fraction:
    """Seconds of a duration that is text."""
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        return Fraction(text)
    if ":" not in text and "-" not in text:
        parts = _PARTS.fullmatch(text)
        if parts is None or not any(parts.groups()) or text != text.strip():
            raise Mistake(MistakeCode.UNREADABLE if text.strip() else MistakeCode.EMPTY, text, field, _SPAN_DO)
        us = sum(Fraction(part) * unit for part, unit in zip(parts.groups(), _UNIT.values(), strict=True) if part)
        return Fraction(us, SECOND)
    if "-" not in text and text.count(":") == 1 and _SLURM.fullmatch(text):
        first, second = text.split(":")
        do = f"write {first}h{second}m for hours and minutes, or {first}m{second}s for minutes and seconds"
        raise Mistake(MistakeCode.AMBIGUOUS, text, field, do)
    return Fraction(_colons(text, field, _SPAN_DO))


def write_span(us: int) -> str:
    """A span of microseconds exactly, as seconds() reads it back: '1h30m', '2d500ms', '0s'."""
    if us < 0:
        return f"-{-us // SECOND}.{-us % SECOND:06d}"  # only a bare number may be negative
    parts, rest = [], us
    for name, unit in _UNIT.items():
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count}{name}")
    return "".join(parts) or "0s"


_SHOWN = ((DAY, "d", HOUR, "h"), (HOUR, "h", MINUTE, "min"), (MINUTE, "min", SECOND, "s"))


def show_span(us: int) -> str:
    """A span for people, its two largest units, rounded half up: '2 h 05 min', '3 d 04 h', '12 s', '500 ms', '0 s'."""
    if us < 0:
        return f"-{show_span(-us)}"
    for large, name, small, small_name in _SHOWN:
        rounded = (us + small // 2) // small * small
        if rounded >= large:
            return f"{rounded // large} {name} {rounded % large // small:02d} {small_name}"
    if us + 500 >= SECOND or us == 0:
        return f"{(us + SECOND // 2) // SECOND} s"
    return f"{(us + 500) // 1000} ms" if us >= 1000 else f"{us} us"


def show_clock(us: int) -> str:
    """A moment since a world's start, in whole seconds: '00:02:05', after a day '1-02:03:04' (seconds() reads it)."""
    if us < 0:
        return f"-{show_clock(-us)}"
    days, rest = divmod(us // SECOND, 86_400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock
