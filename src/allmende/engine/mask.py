"""Sets of nodes as whole numbers: bit i is the i-th node in natural order of names, so the lowest bit is the stated
tie.

A thousand nodes are one 1,000-bit integer; `and` plus `bit_count` takes a tenth of a microsecond, and an integer
needs no copy to be undone or forked (reference/engine.md section 2).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from allmende.engine.room import LEAVE, Room
from allmende.model.request import Where

Path = tuple[str, ...]


class Demand(Struct, frozen=True, gc=False):
    """What the minimum of a request takes of quotas: GPU units, and MiB of GPU memory."""

    units: int
    memory: int


def order_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Natural order: digits by value, so n2 comes before n10."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part)


def bits(mask: int) -> Iterator[int]:
    """Positions of the set bits, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Masks:
    """Which nodes are where: `by_free[k]` open nodes with k wholly free GPUs, `partial` those with a partly free one.

    `bare` has no GPU at all; `bounded` states CPU, memory or pod slots; `grown` gained room since the last pass;
    `leaving` has pods that are still to leave; `windows` has maintenance ahead.
    """

    __slots__ = (
        "_domains",
        "_where",
        "aside",
        "bare",
        "bounded",
        "by_free",
        "demands",
        "every",
        "grown",
        "leaving",
        "levels",
        "partial",
        "rooms",
        "shared",
        "windows",
    )

    def __init__(self, rooms: Iterable[Room] = (), levels: tuple[str, ...] = ()) -> None:
        self.rooms: list[Room] = list(rooms)
        self.levels = levels
        for position, room in enumerate(self.rooms):
            room.pos = position
        self.every = (1 << len(self.rooms)) - 1
        self.grown = self.every
        self.refresh()

    def refresh(self) -> None:
        """Read every node's facts again."""
        most = max((len(room.sound) for room in self.rooms), default=0)
        self.by_free = [0] * (most + 1)
        self.partial = self.bare = self.bounded = self.windows = self.shared = self.leaving = 0
        self.aside = False
        self._where: dict[tuple[Where, str], int] = {}
        self._domains: dict[str, dict[Path, int]] = {}
        self.demands: dict[object, Demand] = {}
        for room in self.rooms:
            node, bit = room.node, 1 << room.pos
            if not room.sound:
                self.bare |= bit
            if node.cpu is not None or node.ram is not None or node.max_pods is not None:
                self.bounded |= bit
            if node.maintenance:
                self.windows |= bit
            if node.slots:
                self.shared |= bit
            if room.count[LEAVE]:
                self.leaving |= bit
            self.aside = self.aside or bool(node.only_for)
            if room.open:
                self.by_free[room.free] |= bit
                if room.partial:
                    self.partial |= bit

    def fork(self, rooms: list[Room]) -> Masks:
        """A copy of its own over copied rooms in the same order."""
        other = Masks.__new__(Masks)
        for name in Masks.__slots__:
            setattr(other, name, getattr(self, name))
        other.rooms = rooms
        other.by_free = self.by_free[:]
        return other

    def move(self, room: Room, before: int) -> None:
        """A room's number of free GPUs changed."""
        bit = 1 << room.pos
        self.by_free[before] ^= bit
        self.by_free[room.free] |= bit

    @property
    def open(self) -> int:
        """Nodes that take new pods."""
        found = 0
        for mask in self.by_free:
            found |= mask
        return found

    def allowed(self, where: Where, project: str) -> int:
        """Nodes that satisfy the standing constraints, open or not."""
        key = (where, project if self.aside else "")
        found = self._where.get(key)
        if found is None:
            found = 0
            for room in self.rooms:
                if matches(room, where, project):
                    found |= 1 << room.pos
            self._where[key] = found
        return found

    def with_free(self, whole: int) -> int:
        """Open nodes with at least so many wholly free GPUs."""
        found = 0
        for mask in self.by_free[whole:]:
            found |= mask
        return found

    def domains(self, level: str) -> dict[Path, int]:
        """The domains of a level by full path, in natural order; nodes without the label are in none."""
        found = self._domains.get(level)
        if found is None:
            parts: dict[Path, int] = {}
            for room in self.rooms:
                path = domain_of(room, level, self.levels)
                if path is not None:
                    parts[path] = parts.get(path, 0) | 1 << room.pos
            found = {path: parts[path] for path in sorted(parts, key=lambda p: [order_key(part) for part in p])}
            self._domains[level] = found
        return found

    def within(self, level: str, position: int) -> int:
        """The domain of a level that holds a node (0 where it is in none)."""
        return next((mask for mask in self.domains(level).values() if mask >> position & 1), 0)


def matches(room: Room, where: Where, project: str) -> bool:
    """Whether a node satisfies a pod's standing constraints."""
    node = room.node
    if where.models and node.model not in where.models:
        return False
    if node.only_for and node.only_for != project:
        return False
    if any(taint not in where.tolerates and taint.split("=")[0] not in where.tolerates for taint in node.taints):
        return False
    return all(label(room, key) == value for key, value in where.select)


def label(room: Room, key: str) -> str | None:
    """A node's label; its name counts as the labels `name` and `node`."""
    found = next((value for k, value in room.node.labels if k == key), None)
    return room.node.name if found is None and key in ("name", "node") else found


def domain_of(room: Room, level: str, levels: tuple[str, ...]) -> Path | None:
    """The full path of the domain a node is in: a level's name is unique only below the levels above it."""
    if level == "node":
        return (room.node.name,)
    above = levels[: levels.index(level)] if level in levels else ()
    here = label(room, level)
    if here is None:
        return None
    return (*(label(room, key) or "" for key in above if key != "node"), here)
