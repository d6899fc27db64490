"""What a search for victims found, and how sure that is."""

from __future__ import annotations

from msgspec import Struct

from allmende.engine.room import Room
from allmende.engine.victim import Price, Victim


class Search(Struct, frozen=True):
    """What one search for victims found: GPU units evicted, a lower bound of them, and whether it is proved the
    least."""

    workload: str
    units: int
    bound: int
    steps: int
    exact: bool


class Answer(Struct, frozen=True):
    """Victims to take, and how many pods go to which node (position) once they have left; None = place by search."""

    price: Price
    victims: tuple[Victim, ...]
    nodes: tuple[tuple[int, int], ...] | None
    search: Search


def cheapest_devices(rooms: list[Room], count: int) -> int:
    """GPU units in the way on the `count` devices with the least on them: nobody frees so many devices for less."""
    if count <= 0:
        return 0
    used: list[int] = []
    for room in rooms:
        run, _, held = room.units
        used += [run[d] for d in range(len(room.sound)) if room.sound[d] and run[d] and not held[d]]
    used.sort()
    return sum(used[:count])
