"""Figures by name: which measure a name stands for, and whether a value is what was wanted."""

from __future__ import annotations

import re
from fractions import Fraction

from allmende.scene.measures import hours, machines, projects, workloads
from allmende.scene.measures.played import Build, Measure
from allmende.scene.measures.played import Played as Played
from allmende.scene.value import Scene

_TABLE: tuple[tuple[str, Build], ...] = (*machines.TABLE, *projects.TABLE, *workloads.TABLE, *hours.TABLE)

BOUNDS = {
    "_no_later_than": "at most",
    "_at_most": "at most",
    "_no_earlier_than": "at least",
    "_at_least": "at least",
}
"""Endings of a figure's name that make the given number a bound."""


def holds(name: str, value: Fraction, wanted: Fraction, tolerance: Fraction) -> bool:
    """Whether a measured figure is what was wanted, or within its bound."""
    kind = next((kind for ending, kind in BOUNDS.items() if name.endswith(ending)), "")
    if kind == "at most":
        return value <= wanted + tolerance
    if kind == "at least":
        return value >= wanted - tolerance
    return abs(value - wanted) <= tolerance


def find(name: str, scene: Scene) -> Measure | None:
    """The measure of a name; None where there is none."""
    plain = name
    for ending in BOUNDS:
        plain = plain.removesuffix(ending)
    for pattern, build in _TABLE:
        found = re.fullmatch(pattern, plain)
        if found is not None and (made := build(scene, *found.groups())) is not None:
            return made
    return None
