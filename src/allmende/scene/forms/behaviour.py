"""How accepted settings behave: a sentence about past use and two submissions, played under each setting it names."""

from __future__ import annotations

import re

import yaml

from allmende.scene.cases import CaseReader
from allmende.scene.cell import Cell, fields, listed, scalar
from allmende.scene.forms.then import Then
from allmende.scene.moment import number
from allmende.scene.run import play

_GIVEN = re.compile(
    r"queue (?P<hot>\S+) used (?P<n>[\d.]+) GPU-hours(?: \w+)?, queue (?P<cold>\S+) (?:none|nothing|0);"
    r" (?P<gpus>\w+) GPUs?, both submit, (?P<first>\S+) (?:one|\w+) seconds? (?:earlier|before)",
    re.IGNORECASE,
)
_THEN = re.compile(
    r"with (?P<which>(?:settings? )?\d+(?:(?:, and |, | and )(?:settings? )?\d+)*),? (?P<who>\S+)'s job starts first",
    re.IGNORECASE,
)

FREE_AT = 10
"""Seconds until which others hold the GPUs, so that both jobs wait when they come free."""


def behaves(cell: Cell, given_settings: list[Cell], then: Then) -> bool:
    """Play 'queue A used 100 GPU-hours, queue B none; one GPU, both submit'; whether the sentence was understood."""
    given, said = _GIVEN.fullmatch(cell.entries()["given"].text()), _THEN.fullmatch(cell.entries()["then"].text())
    if given is None or said is None:
        return False
    places = [int(place) for place in re.findall(r"\d+", said["which"])]
    if max(places, default=0) >= len(given_settings):
        return False
    for place in places:
        first = _first_to_start(given, given_settings[place], cell)
        then.expect(first == said["who"], f"with setting {place} the job of {first} starts first")
    return True


def _first_to_start(given: re.Match[str], setting: Cell, like: Cell) -> str | None:
    """Which queue's job gets the GPUs when they come free.

    Inside, the queue with past use comes first by name, so that an order by name shows.
    """
    node = like.node
    inside = {given["hot"]: f"1 {given['hot']}", given["cold"]: f"2 {given['cold']}"}
    scene = CaseReader(Cell(_case(given, setting, inside, node)), like.place).scene()
    played, _ = play(scene)
    started = [each.workload for each in played.record.begun if each.workload in _jobs(inside)] if played else []
    return _jobs(inside)[started[0]] if started else None


def _jobs(inside: dict[str, str]) -> dict[str, str]:
    """Queue by the name of its job."""
    return {f"job {name}": queue for queue, name in inside.items()}


def _made(like: yaml.Node, **values: str | int) -> yaml.MappingNode:
    return fields({name: scalar(value, like) for name, value in values.items()}, like)


def _case(given: re.Match[str], setting: Cell, inside: dict[str, str], like: yaml.Node) -> yaml.MappingNode:
    """The sentence as a case of the layout."""
    gpus = int(number(given["gpus"]))
    second = given["cold"] if given["first"] == given["hot"] else given["hot"]
    submits = []
    for at, queue in ((0, given["first"]), (1, second)):
        name = inside[queue]
        work = _made(like, name=f"job {name}", queue=name, pods=1, gpus=gpus)
        submits.append(fields({"at": scalar(at, like), "submit": work}, like))
    before = _made(like, name="before", queue="other", pods=1, gpus=gpus, node="n1", started=-60, ends_at=FREE_AT)
    queues = [
        _made(like, name=inside[given["hot"]], past_use=given["n"]),
        _made(like, name=inside[given["cold"]]),
    ]
    world = {
        "nodes": listed([_made(like, name="n1", gpus=gpus)], like),
        "queues": listed(queues, like),
        "running": listed([before], like),
    }
    checks = listed([_made(like, at=2 * FREE_AT)], like)
    return fields(
        {
            "id": scalar("behaviour", like),
            "rules": setting.node,
            "given": fields(world, like),
            "when": listed(submits, like),
            "then": fields({"checks": checks}, like),
        },
        like,
    )
