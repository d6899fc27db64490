"""What must hold in a scene, read from its fields; the order and the words are those of docs/scenes.md."""

from __future__ import annotations

import re
from fractions import Fraction

from allmende.model.mistake import MistakeCode
from allmende.model.quantity import quantity
from allmende.scene.cell import Cell
from allmende.scene.value import Check, Expect, Happened, Repeat, Written
from allmende.scene.works import PODS_AT_MOST

EXPECT = (
    "checks", "one_of", "evicted", "evicted_pods", "never", "numbers", "tolerance", "events", "warnings_at_setup",
    "warnings_at_change", "repeat",
)  # fmt: skip
STATE = (
    "running", "pending", "growth_pending", "placement", "on_gpus", "usage", "usage_added", "free", "queue_positions",
)  # fmt: skip


def expectations(cell: Cell, origin: int = 0) -> Expect:
    """What must hold. Raises Mistake where a value has no meaning, such as a pattern that is no regular expression."""
    given = cell.mapping(EXPECT)
    return Expect(
        checks=tuple(_check(item, origin) for item in given["checks"].items()) if "checks" in given else (),
        one_of=tuple(_state(item.mapping(STATE), 0) for item in given["one_of"].items()) if "one_of" in given else (),
        evicted=_counts(given.get("evicted")),
        evicted_pods=_counts(given.get("evicted_pods")),
        never=tuple(_written(item) for item in given["never"].one_or_more()) if "never" in given else (),
        numbers=_numbers(given.get("numbers")),
        tolerance=quantity(given["tolerance"].text()) if "tolerance" in given else Fraction(1, 100),
        events=tuple(_happened(item) for item in given["events"].items()) if "events" in given else (),
        warnings_at_setup=_patterns(given["warnings_at_setup"]) if "warnings_at_setup" in given else None,
        warnings_at_change=_patterns(given["warnings_at_change"]) if "warnings_at_change" in given else None,
        repeat=_repeat(given["repeat"]) if "repeat" in given else None,
    )


def _check(cell: Cell, origin: int) -> Check:
    given = cell.mapping(("at", *STATE), ("at",))
    return _state(given, origin + given["at"].moment())


def _state(given: dict[str, Cell], at: int) -> Check:
    return Check(
        at,
        running=tuple(item.name() for item in given["running"].items()) if "running" in given else None,
        pending=_reasons(given.get("pending")),
        growth_pending=_reasons(given.get("growth_pending")),
        placement=_placements(given.get("placement")),
        on_gpus=_on_gpus(given.get("on_gpus")),
        usage=_amounts(given["usage"]) if "usage" in given else {},
        usage_added=given["usage_added"].amount() if "usage_added" in given else None,
        free=given["free"].amount() if "free" in given and not given["free"].is_mapping else None,
        free_on=_amounts(given["free"]) if "free" in given and given["free"].is_mapping else {},
        queue_positions=_counts(given.get("queue_positions")) or {},
    )


def _repeat(cell: Cell) -> Repeat:
    given = cell.mapping(("times", "vary"), ("times", "vary"))
    vary = tuple(item.choice(("nodes", "projects", "running", "events")) for item in given["vary"].one_or_more())
    return Repeat(given["times"].count(1), vary)


def _amounts(cell: Cell) -> dict[str, int]:
    return {name: value.amount() for name, value in cell.entries().items()}


def _reasons(cell: Cell | None) -> dict[str, tuple[str, ...]]:
    return {name: _patterns(value) for name, value in cell.entries().items()} if cell else {}


def _patterns(cell: Cell) -> tuple[str, ...]:
    for item in cell.items():
        try:
            re.compile(item.text())
        except re.error as error:
            wrong = f"is no regular expression: {error}"
            raise item.mistake(MistakeCode.UNREADABLE, "mend the pattern", wrong) from None
    return tuple(item.text() for item in cell.items())


def _counts(cell: Cell | None) -> dict[str, int] | None:
    return {name: value.count() for name, value in cell.entries().items()} if cell else None


def _placements(cell: Cell | None) -> dict[str, dict[str, tuple[int, int]]]:
    if cell is None:
        return {}
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for name, value in cell.entries().items():
        if value.is_mapping:
            found[name] = {node: _range(pods) for node, pods in value.entries().items()}
        else:
            found[name] = {value.name(): (1, PODS_AT_MOST)}  # all of them there
    return found


def _range(cell: Cell) -> tuple[int, int]:
    """(least, most) of '3' or '2-3'."""
    found = re.fullmatch(r"([0-9]+)-([0-9]+)", cell.text())
    if found is None:
        return cell.count(), cell.count()
    return int(found[1]), int(found[2])


def _on_gpus(cell: Cell | None) -> dict[str, dict[int, int]]:
    if cell is None:
        return {}
    found: dict[str, dict[int, int]] = {}
    for name, value in cell.entries().items():
        value.entries()  # a mapping
        found[name] = {Cell(key, value.path).count(): Cell(pods, value.path).count() for key, pods in value.node.value}
    return found


def _numbers(cell: Cell | None) -> tuple[tuple[Written, Fraction], ...]:
    if cell is None:
        return ()
    return tuple(
        (Written(name, value.place), quantity(value.text(), value.where)) for name, value in cell.entries().items()
    )


def _written(cell: Cell) -> Written:
    return Written(cell.text(), cell.place)


def _happened(cell: Cell) -> Happened:
    given = cell.mapping(("about", "has"), ("about", "has"))
    return Happened(given["about"].name(), _patterns(given["has"]))
