"""The machine's clock, counted from when a run began."""

import time


class RunClock:
    """Microseconds since it was made; steps of the wall clock do not touch it."""

    def __init__(self) -> None:
        self._start = time.monotonic_ns()

    def now(self) -> int:
        """Microseconds since the run began."""
        return (time.monotonic_ns() - self._start) // 1000
