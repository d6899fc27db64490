"""Queues: the workloads of one project that wait, in lines of equal shape."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TypeVar

from allmende.engine.shape import Shape, Size

_Key = TypeVar("_Key")
Entry = tuple[int, int, str]
"""(-priority, moment of submission, id): the order inside a project."""


class Line:
    """Waiting workloads of one project, one shape and one gate (what else may stop exactly these), in order.

    With `grows` the line is the wish of one running workload for more pods.
    """

    __slots__ = ("entries", "gate", "grows", "shape")

    def __init__(self, shape: Shape, gate: str, grows: str = "") -> None:
        self.shape = shape
        self.gate = gate
        self.grows = grows
        self.entries: list[Entry] = []

    def add(self, entry: Entry) -> None:
        """Put an entry in its place."""
        insort(self.entries, entry)

    def remove(self, entry: Entry) -> None:
        """Take an entry out."""
        at = bisect_left(self.entries, entry)
        if self.entries[at] != entry:
            raise KeyError(entry)
        del self.entries[at]


class Queue:
    """All lines of one project, one per shape, gate and priority; found by the size of their pods and by priority."""

    __slots__ = ("by_priority", "by_size", "lines")

    def __init__(self) -> None:
        self.lines: dict[tuple[Shape, str, int], Line] = {}
        self.by_size: dict[Size, dict[Line, None]] = {}
        self.by_priority: dict[int, dict[Line, None]] = {}

    def add(self, shape: Shape, gate: str, entry: Entry, grows: str = "") -> None:
        """Queue an entry."""
        key = (shape, gate, entry[0])
        line = self.lines.get(key)
        if line is None:
            line = Line(shape, gate, grows)
            self._keep(key, line)
        line.add(entry)

    def _keep(self, key: tuple[Shape, str, int], line: Line) -> None:
        self.lines[key] = line
        self.by_size.setdefault(line.shape.size, {})[line] = None
        self.by_priority.setdefault(-key[2], {})[line] = None

    def remove(self, shape: Shape, gate: str, entry: Entry) -> None:
        """Take an entry out; an empty line goes with it."""
        key = (shape, gate, entry[0])
        line = self.lines[key]
        line.remove(entry)
        if not line.entries:
            del self.lines[key]
            _drop(self.by_size, shape.size, line)
            _drop(self.by_priority, -entry[0], line)

    def fork(self) -> Queue:
        """A copy of its own."""
        other = Queue()
        for key, line in self.lines.items():
            copy = Line(line.shape, line.gate, line.grows)
            copy.entries = line.entries[:]
            other._keep(key, copy)
        return other

    def position(self, entry: Entry) -> int:
        """How many entries of this queue come before, plus one."""
        return 1 + sum(bisect_left(line.entries, entry) for line in self.lines.values())


def _drop(groups: dict[_Key, dict[Line, None]], key: _Key, line: Line) -> None:
    group = groups[key]
    del group[line]
    if not group:
        del groups[key]
