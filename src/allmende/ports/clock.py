"""The clock of a cluster."""

from typing import Protocol


class Clock(Protocol):
    """Tells the time; nothing else may ask the machine for it."""

    def now(self) -> int:
        """Microseconds of the cluster's clock; never smaller than what it said before."""
        ...
