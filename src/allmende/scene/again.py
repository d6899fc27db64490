"""A scene played again and again with the order of what is equal varied: the same must come out each time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from allmende.model.event import Event
from allmende.scene.measure import Played
from allmende.scene.record import Record
from allmende.scene.stage import stage
from allmende.scene.value import Scene
from allmende.sim.world import World

T = TypeVar("T")


def again(played: Played, until: int) -> list[str]:
    """A line for the first run whose decisions are not those of the scene as it was written."""
    repeat = played.scene.expect.repeat
    if repeat is None:
        return []
    first = _outcome(played.world)
    for turn in range(1, repeat.times):
        world = stage(varied(played.scene, repeat.vary, turn), Record())
        world.run(until)
        if _outcome(world) != first:
            return [f"run {turn + 1} of {repeat.times}, with {', '.join(repeat.vary)} in another order, ends otherwise"]
    return []


def _outcome(world: World) -> list[str]:
    """What was decided at each moment, whatever the order within it."""
    return sorted(repr(entry) for entry in world.log if not isinstance(entry, Event))


def varied(scene: Scene, vary: Sequence[str], seed: int) -> Scene:
    """The scene with its lists in another order; events keep their moments."""
    dice = random.Random(seed)
    changed: dict[str, object] = {}
    for name in vary:
        if name == "events":
            changed["steps"] = tuple(sorted(_shuffled(scene.steps, dice), key=lambda step: step.at))
        else:
            changed[name] = tuple(_shuffled(getattr(scene, name), dice))
    return replace(scene, **changed)


def _shuffled(items: Sequence[T], dice: random.Random) -> list[T]:
    found = list(items)
    dice.shuffle(found)
    return found
