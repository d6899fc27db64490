"""A virtual clock: what is due when, in the order it was put down where times are equal."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")


class Agenda(Generic[T]):
    """Things due at moments (microseconds); equal moments keep the order of `put`."""

    __slots__ = ("_heap", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, T]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, at: int, thing: T) -> None:
        """Put something down for a moment."""
        heappush(self._heap, (at, self._sequence, thing))
        self._sequence += 1

    @property
    def next_at(self) -> int | None:
        """The earliest moment at which something is due."""
        return self._heap[0][0] if self._heap else None

    def due(self, at: int) -> list[T]:
        """Take out all that is due at `at` or before, in order."""
        found = []
        while self._heap and self._heap[0][0] <= at:
            found.append(heappop(self._heap)[2])
        return found
