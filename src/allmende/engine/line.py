"""Queues: the workloads of one project that wait, in lines of equal shape."""

from __future__ import annotations

from bisect import bisect_left, insort

from allmende.engine.shape import Shape, Size

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
    """All lines of one project, findable by the size of their pods."""

    __slots__ = ("by_size", "lines")

    def __init__(self) -> None:
        self.lines: dict[tuple[Shape, str], Line] = {}
        self.by_size: dict[Size, dict[Line, None]] = {}

    def add(self, shape: Shape, gate: str, entry: Entry, grows: str = "") -> None:
        """Queue an entry."""
        line = self.lines.get((shape, gate))
        if line is None:
            line = self.lines[shape, gate] = Line(shape, gate, grows)
            self.by_size.setdefault(shape.size, {})[line] = None
        line.add(entry)

    def remove(self, shape: Shape, gate: str, entry: Entry) -> None:
        """Take an entry out; an empty line goes with it."""
        line = self.lines[shape, gate]
        line.remove(entry)
        if not line.entries:
            del self.lines[shape, gate]
            group = self.by_size[shape.size]
            del group[line]
            if not group:
                del self.by_size[shape.size]

    def fork(self) -> Queue:
        """A copy of its own."""
        other = Queue()
        for key, line in self.lines.items():
            copy = Line(line.shape, line.gate, line.grows)
            copy.entries = line.entries[:]
            other.lines[key] = copy
            other.by_size.setdefault(line.shape.size, {})[copy] = None
        return other

    def position(self, entry: Entry) -> int:
        """How many entries of this queue come before, plus one."""
        return 1 + sum(bisect_left(line.entries, entry) for line in self.lines.values())
