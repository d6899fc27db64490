"""How fast this machine is, so that a bar in milliseconds means the same everywhere.

A bar of X ms allows X * factor() ms here: a machine twice as slow as the reference gets twice the time.
"""

from __future__ import annotations

from functools import cache

from bench.result import best

REFERENCE_S = 0.50  # the loop below on the machine whose milliseconds our bars are written in


@cache
def seconds() -> float:
    """Best of seven runs of a fixed pure-Python loop, in seconds; about four seconds of work, done once a process."""
    return best(lambda: sum(i * i for i in range(10_000_000)), n=7)


def factor() -> float:
    """What to multiply a bar's time by on this machine; above 1 where it is slower than the reference."""
    return seconds() / REFERENCE_S


def main() -> None:
    print(f"loop {seconds():.3f} s, reference {REFERENCE_S:.2f} s, factor {factor():.3f}")


if __name__ == "__main__":
    main()
