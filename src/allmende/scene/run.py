"""A scene played and judged: the world runs, sentences look at every moment, checks at theirs."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from allmende.scene import check, measure, never
from allmende.scene.again import again
from allmende.scene.claim import Sentence, first_breaches
from allmende.scene.measure import Played
from allmende.scene.moment import Moment
from allmende.scene.record import Record
from allmende.scene.stage import stage
from allmende.scene.value import Scene
from allmende.sim.world import Entry, Observer, World
from allmende.words.figure import clock

CHECKED_AT_MOST = 20_000
"""Workloads that run at the beginning, up to which invariants are asserted (each time by a full rebuild)."""


class Status(StrEnum):
    """How a scene came out."""

    PASSED = "passed"
    FAILED = "failed"
    REFUSED = "refused"  # it names a setting that may be refused, and it is, by name
    NOT_YET = "not yet"  # it asks for what no part of the product does yet


class Verdict(Struct, frozen=True):
    """How a scene came out, and why; `warnings` are what the product said to it."""

    status: Status
    why: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Judge(Observer):
    """Looks at every moment with every sentence, and at the checks when their moments come."""

    def __init__(self, scene: Scene, record: Record) -> None:
        self.scene = scene
        self.record = record
        self.failures: list[str] = []
        self.sentences: list[tuple[str, Sentence]] = []
        self.gaps: list[str] = list(scene.unjudged)
        for written in scene.expect.never:
            sentence = never.parse(written.text, scene)
            if sentence is None:
                self.gaps.append(f"sentence: {written.text}")
            else:
                self.sentences.append((written.text, sentence))

    def told(self, world: World) -> None:
        """Ask what is asked before the first pass."""
        for _, sentence in self.sentences:
            if sentence.fresh:
                sentence.see(Moment(world, self.record, world.instant, world.now))

    def round(self, world: World, entries: Sequence[Entry]) -> None:
        """Ask the sentences of what a pass made."""
        moment = Moment(world, self.record, entries, world.now, settled=False)
        for _, sentence in self.sentences:
            if not sentence.fresh:
                sentence.see(moment)

    def settled(self, world: World, entries: Sequence[Entry], until: int) -> None:
        """Ask the sentences, then the checks whose moments lie before the next instant."""
        moment = Moment(world, self.record, entries, until)
        for _, sentence in self.sentences:
            if not sentence.fresh:
                sentence.see(moment)
        for each in self.scene.expect.checks:
            if world.now <= each.at < until:
                self.failures += check.at_moment(each, world, self.record, self.scene, each.at)


def play(scene: Scene, *, checked: bool = True) -> tuple[Played | None, Verdict]:
    """Run a scene to its end and judge it; one that asks for what is not there yet is not run.

    Raises Mistake where the scene cannot be set up. A failed invariant, a restart that diverges, an engine that breaks
    or does not come to rest are failures of the scene.
    """
    if scene.gaps:
        return None, Verdict(Status.NOT_YET, tuple(dict.fromkeys(scene.gaps)))
    record = Record()
    world = stage(scene, record, checked=checked and len(scene.running) <= CHECKED_AT_MOST)
    judge = Judge(scene, record)
    world.observers += [record, judge]
    try:
        world.run(last(scene) + 1)
    except Exception as error:  # whatever the engine does wrong is this scene's failure
        frame = traceback.extract_tb(error.__traceback__)[-1]
        line = f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno}, at {clock(world.now)})"
        return Played(scene, world, record), Verdict(Status.FAILED, (line,))
    for _, sentence in judge.sentences:
        sentence.finish(record)
    played = Played(scene, world, record)
    failures = judge.failures + first_breaches(judge.sentences)
    failures += check.in_the_end(scene.expect, world, record, scene)
    failures += _figures(played, judge.gaps)
    failures += again(played, last(scene) + 1)
    warnings = (*record.warnings_at_setup, *record.warnings_at_change)
    if failures:
        return played, Verdict(Status.FAILED, tuple(failures), warnings)
    if judge.gaps:
        return played, Verdict(Status.NOT_YET, tuple(dict.fromkeys(judge.gaps)), warnings)
    return played, Verdict(Status.PASSED, (), warnings)


def last(scene: Scene) -> int:
    """When a scene is over: the last step with its graces, or the last check."""
    grace = max((workload.grace for workload in scene.workloads.values()), default=0)
    steps = max((step.at for step in scene.steps), default=scene.origin) + grace
    return max([steps, *(each.at for each in scene.expect.checks)])


def _figures(played: Played, gaps: list[str]) -> list[str]:
    found = []
    for written, wanted in played.scene.expect.numbers:
        made = measure.find(written.text, played.scene)
        if made is None:
            gaps.append(f"measure: {written.text}")
            continue
        value = made(played)
        if value is None:
            found.append(f"{written.text}: it never came to that")
        elif not measure.holds(written.text, value, wanted, played.scene.expect.tolerance):
            found.append(f"{written.text} is {float(value):g}, not {float(wanted):g}")
    return found
