"""A limit per local day, part of which is spent: who waits until when, and on which day what runs counts."""

from __future__ import annotations

from datetime import date, datetime, timedelta, tzinfo
from math import ceil

import yaml
from msgspec.structs import replace

from allmende.metering.window import days, moment
from allmende.model.mistake import MistakeCode
from allmende.model.quantity import quantity
from allmende.model.span import HOUR, SECOND
from allmende.scene.cases import CaseReader
from allmende.scene.cell import Cell, fields, listed, scalar
from allmende.scene.forms.then import Then
from allmende.scene.forms.windows import zone_of
from allmende.scene.measure import Played
from allmende.scene.run import Status, play
from allmende.scene.value import Check, Expect

ROOM = 1024
"""GPUs of the machine that such a case runs on: it asks about the limit, not about room."""


def daily(top: Cell, given: dict[str, Cell], then: Then) -> None:
    """`queue` with daily_gpu_hours, `spent` by day, and submissions at moments."""
    zone = zone_of(given)
    events = top.entries()["when"].items()
    submitted = {e.entries()["submit"].entries()["name"].text(): moment(e.entries()["at_time"].text()) for e in events}
    first = min(submitted.values())
    past = [_spent(item.entries(), given["queue"], zone, first) for item in given["spent"].items()]
    results = then.take("results")
    wanted = {name: cell.entries() for name, cell in results.entries().items()} if results else {}
    scene = CaseReader(Cell(_case(top, given, [*past, *events])), top.place).scene()
    then.gaps += scene.gaps
    times = [
        moment(each[key].text()) for each in wanted.values() for key in ("pending_until", "starts_at") if key in each
    ]
    checks = [Check(max([*submitted.values(), *times]) + SECOND)]
    for name, each in wanted.items():
        if "reason" in each and name in submitted:
            patterns = tuple(item.text() for item in each["reason"].items())
            checks.append(Check(submitted[name], pending={name: patterns}))
    played, verdict = play(replace(scene, expect=Expect(tuple(checks))))
    if played is None:
        return
    then.failures += verdict.why if verdict.status is Status.FAILED else ()
    for name, each in wanted.items():
        _judge(name, each, played, zone, then)


def _judge(name: str, wanted: dict[str, Cell], played: Played, zone: tzinfo, then: Then) -> None:
    start = played.record.start_of(name)
    for key, cell in wanted.items():
        match key:
            case "pending_until" | "starts_at":
                then.expect(start == moment(cell.text()), f"{name} starts at {start}, not at {cell.text()}")
            case "booked_on":
                uses = [use for use in played.record.uses if use.name == name]
                booked = [str(days(use.start, use.start + 1, zone)[0].first) for use in uses]
                then.expect(booked == [cell.text()], f"{name} is booked on {booked}, not on {cell.text()}")
            case "reason":
                pass  # asked when it was submitted
            case _:
                then.gaps.append(f"expectation {key} of {name}")


def _spent(item: dict[str, Cell], queue: Cell, zone: tzinfo, before: int) -> Cell:
    """A submission that used so many GPU-hours on a local day, from its midnight on."""
    try:
        day = date.fromisoformat(item["day"].text()[:10])
    except ValueError:
        raise item["day"].mistake(MistakeCode.UNREADABLE, "write a day such as 2026-09-08", "is no day") from None
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    following = midnight + timedelta(days=1)
    begins, ends = moment(midnight.isoformat()), min(before, moment(following.isoformat()))
    hours = quantity(item["gpu_hours"].text())
    gpus = max(1, ceil(hours * HOUR / max(1, ends - begins - HOUR)))
    runs = str(int(hours * 3600 / gpus))
    like = queue.node
    work: dict[str, yaml.Node] = {
        "name": scalar(f"spent {day}", like),
        "queue": queue.entries()["name"].node,
        "pods": scalar(1, like),
        "gpus": scalar(gpus, like),
        "runs": scalar(runs, like),
        "limit": scalar(runs, like),
    }
    return Cell(fields({"at_time": scalar(midnight.isoformat(), like), "submit": fields(work, like)}, like))


def _case(top: Cell, given: dict[str, Cell], events: list[Cell]) -> yaml.Node:
    """The case with a machine that has room, and with its past as events."""
    like = top.node
    machine = fields({"name": scalar("n1", like), "gpus": scalar(ROOM, like)}, like)
    world: dict[str, yaml.Node] = {"nodes": listed([machine], like), "queues": listed([given["queue"].node], like)}
    if "timezone" in given:
        world["timezone"] = given["timezone"].node
    return fields(
        {"id": scalar("daily", like), "given": fields(world, like), "when": listed((e.node for e in events), like)},
        like,
    )
