"""A scene that was played, and what a measure of it is."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from msgspec import Struct

from allmende.engine.state import State
from allmende.scene.record import Record
from allmende.scene.value import Scene
from allmende.sim.world import World


class Played(Struct):
    """A scene that was played, with what there is to measure."""

    scene: Scene
    world: World
    record: Record

    @property
    def state(self) -> State:
        """The state at the end."""
        return self.world.state


Measure = Callable[[Played], Fraction | None]
"""A figure of a played scene; None where there is none, as for the start of what never started."""
Build = Callable[..., Measure | None]
"""Makes the measure from the scene and the parts of its name; None where these name nothing."""


def plain(test: Callable[[Played], Fraction | int]) -> Callable[[Scene], Measure]:
    """A measure whose name has no parts."""
    return lambda _: lambda played: Fraction(test(played))


def fraction(value: Fraction | int | None) -> Fraction | None:
    """A figure, exactly; None stays None."""
    return None if value is None else Fraction(value)
