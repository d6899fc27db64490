"""The rules of a case: named settings, some stated in words, as fields of the policy or habits of the world."""

from __future__ import annotations

import re
from collections.abc import Callable

import yaml
from msgspec import Struct, field

from allmende.model.mistake import Mistake, MistakeCode
from allmende.scene.cell import Cell, scalar

MAY_BE_REFUSED = ("borrowing_evicts_lower_priority", "repacking", "pack_nodes", "use_read_every")
"""Rules that the layout allows a product to refuse as settings, by name."""

LATER = {
    "remove_empty_after": "procurement",
    "drain_first": "procurement",
    "price_per_gpu_hour": "procurement",
    "look_ahead_seconds": "procurement",
    "lost_after": "checkpoints and recovery",
    "stop_signal_then_kill_after": "checkpoints and recovery",
    "idle_after": "idle detection",
    "warn_before": "idle detection",
    "signs_of_life": "idle detection",
}
"""Rules that belong to parts of the product that are not there yet."""


class Rules(Struct):
    """What the rules of a case come to. `strict`: queues in which nothing overtakes ('*' = all of them)."""

    policy: dict[str, yaml.Node] = field(default_factory=dict)
    owners: dict[str, yaml.Node] = field(default_factory=dict)
    strict: tuple[str, ...] = ()
    gaps: list[str] = field(default_factory=list)


class Refused(Exception):
    """A rule is a setting that this product does not take. `allowed`: the layout allows that."""

    def __init__(self, name: str, allowed: bool, where: str) -> None:
        super().__init__(name, allowed, where)
        self.name = name
        self.allowed = allowed
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: the setting {self.name} is refused: it is not offered"


def rules(cell: Cell) -> Rules:
    """The rules of a case. Raises Refused for a rule that is not offered, Mistake for one that cannot be read."""
    into = Rules()
    for name, value in cell.entries().items():
        if name == "meaning":
            continue  # words that explain the rule beside them
        if name in LATER:
            into.gaps.append(LATER[name])
            continue
        turn = _TURNS.get(name)
        if turn is None:
            raise Refused(name, name in MAY_BE_REFUSED, value.where)
        turn(value, into)
    return into


def _time(name: str) -> Callable[[Cell, Rules], None]:
    """A rule that is a time, alone or within a sentence ('... for 600 s while ...')."""

    def turn(cell: Cell, into: Rules) -> None:
        text = cell.text()
        found = re.search(r"\b(\d+(?:\.\d+)?) ?(s|sec|seconds|min|minutes|h|hours)?\b", text)
        if found is None:
            raise cell.mistake(MistakeCode.UNREADABLE, "name a time such as 600 s", "names no time")
        unit = (found[2] or "s")[0]
        into.policy[name] = scalar(f"{found[1]}{unit}", cell.node)

    return turn


def _switch(name: str) -> Callable[[Cell, Rules], None]:
    """A rule that is on when it is stated, in whatever words, and off when it says so."""

    def turn(cell: Cell, into: Rules) -> None:
        off = cell.text().casefold() in ("false", "none", "off", "no", "never")
        into.policy[name] = scalar(not off, cell.node)

    return turn


def _evictions(cell: Cell, into: Rules) -> None:
    words = {"none": False, "off": False, "false": False, "no": False, "all": True, "on": True, "true": True}
    if cell.text().casefold() not in words:
        raise _unknown(cell)
    into.policy["evictions"] = scalar(words[cell.text().casefold()], cell.node)


def _plain(name: str) -> Callable[[Cell, Rules], None]:
    def turn(cell: Cell, into: Rules) -> None:
        into.policy[name] = cell.node

    return turn


def _strict(cell: Cell, into: Rules) -> None:
    if cell.is_list:
        into.strict = tuple(item.text() for item in cell.items())
    elif cell.text() in ("true", "all"):
        into.strict = ("*",)
    else:
        into.strict = (cell.text(),)


def _gpu_loss(cell: Cell, into: Rules) -> None:
    """What becomes of the owner (requeued, always) and of the node (closed, or left open)."""
    text = cell.text().casefold()
    if "requeue" not in text and "clos" not in text and "cordon" not in text and "open" not in text:
        raise _unknown(cell)
    closed = bool(re.search(r"clos|cordon|drain", text)) and not re.search(r"(stays?|keep.*|left) open", text)
    into.policy["close_on_gpu_loss"] = scalar(closed, cell.node)


def _recreates(cell: Cell, into: Rules) -> None:
    into.owners["recreate"] = scalar(cell.text().casefold() not in ("false", "no", "never"), cell.node)


def _always(pattern: str) -> Callable[[Cell, Rules], None]:
    """A rule that states what the product always does; any other wording is not offered."""

    def turn(cell: Cell, _: Rules) -> None:
        if not re.search(pattern, cell.text(), re.IGNORECASE):
            raise _unknown(cell)

    return turn


def _unknown(cell: Cell) -> Mistake:
    return cell.mistake(MistakeCode.UNKNOWN_NAME, "state it as the layout does", "is no known wording of this rule")


_TURNS: dict[str, Callable[[Cell, Rules], None]] = {
    "evictions": _evictions,
    "reserve_after": _time("reserve_after"),
    "not_ready_eviction_after": _time("not_ready_after"),
    "keep_survivors": _time("keep_survivors"),
    "bind_within": _time("bind_within"),
    "on_gpu_loss": _gpu_loss,
    "strict_fifo": _strict,
    "fair_share_eviction": _switch("fair_share_eviction"),
    "borrowing_evicts_lower_priority": _switch("borrowers_evict"),
    "fair_order": _plain("fair_order"),
    "half_life": _plain("half_life"),
    "growth_order": _always(r"earlier.* before .*later"),
    "on_cap_lowered": _always(r"(stays|keeps? running|not stopped).*no new work"),
    "owner_recreates": _recreates,
}
