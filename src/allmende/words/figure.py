"""Figures that all languages write alike."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from allmende.model.span import DAY, HOUR, MINUTE, SECOND, show_clock
from allmende.model.units import GPU

_CALENDAR = 10**15  # microseconds; 2001-09-09 as a moment of Unix time, and 31 years on a clock that began with a world
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEPS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def cpus(milli: int) -> str:
    """Milli-CPUs as CPUs, exactly: 2500 is '2.5'."""
    return f"{milli // 1000}.{milli % 1000:03d}".rstrip("0").rstrip(".")


def memory(size: int) -> str:
    """Bytes in the largest unit that leaves at least one of it, to two decimals, rounded down: '1.5 GiB'."""
    power = 0
    while power + 1 < len(_STEPS) and size >= 1024 ** (power + 1):
        power += 1
    hundredths = size * 100 // 1024**power
    text = f"{hundredths // 100}.{hundredths % 100:02d}".rstrip("0").rstrip(".")
    return f"{text} {_STEPS[power]}"


def gpu_hours(unit_time: int) -> str:
    """GPU units x microseconds as GPU-hours, rounded half up to two decimals (six below a hundredth): '24', '0.25'."""
    hours = Fraction(unit_time, GPU * HOUR)
    places = 2 if abs(hours) >= Fraction(1, 100) else 6
    scaled = int(abs(hours) * 10**places + Fraction(1, 2))
    text = f"{scaled // 10**places}.{scaled % 10**places:0{places}d}".rstrip("0").rstrip(".")
    return f"-{text}" if hours < 0 and scaled else text


def clock(us: int) -> str:
    """A moment: of the calendar as '2026-09-08T16:00:00Z', of a world's own clock as '00:02:05' or '1-02:03:04'."""
    if us > _CALENDAR:
        try:
            return (_EPOCH + timedelta(seconds=us // SECOND)).strftime("%Y-%m-%dT%H:%M:%SZ")
        except OverflowError:  # later than the year 9999
            pass
    return show_clock(us)


def span(us: int, units: Mapping[int, str]) -> str:
    """A span in its two largest units, rounded down as bounds must be: '23 h 59 min'; `units` names all four."""
    sizes = (DAY, HOUR, MINUTE, SECOND)
    largest = next((size for size in sizes if us >= size), SECOND)
    parts: list[str] = []
    rest = us
    for size in sizes[sizes.index(largest) :][:2]:
        count, rest = divmod(rest, size)
        if count or not parts:
            parts.append(f"{count}{units[size]}")
    return " ".join(parts)
