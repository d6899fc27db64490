"""Figures that all languages write alike."""

from collections.abc import Mapping

from allmende.model.span import DAY, HOUR, MINUTE, SECOND

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
