"""Whether what must hold at a moment does, read from the engine's state; each failure is a line with both sides."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from allmende.engine import explain
from allmende.model.reason import Reason
from allmende.model.units import show_gpus
from allmende.scene import view
from allmende.scene.book import position
from allmende.scene.record import Record
from allmende.scene.value import Check, Expect, Scene
from allmende.sim.world import Entry, World
from allmende.words import say, say_decision, say_event
from allmende.words.figure import clock


def at_moment(check: Check, world: World, record: Record, scene: Scene, now: int) -> list[str]:
    """What does not hold of a check, as lines that begin with its moment."""
    found = [
        *_running(check, world, scene),
        *_reasons("pending", check.pending, world, now),
        *_reasons("growth", check.growth_pending, world, now),
        *(line for name, wanted in check.placement.items() for line in _placement(name, wanted, world)),
        *(line for name, wanted in check.on_gpus.items() for line in _on_gpus(name, wanted, world)),
        *_usage(check, world, record),
    ]
    for name, wanted in check.queue_positions.items():
        place = position(world.state, name)
        if place != wanted:
            found.append(f"{name} is number {place} of its queue, not {wanted}")
    return [f"{clock(now)}: {line}" for line in found]


def _running(check: Check, world: World, scene: Scene) -> list[str]:
    if check.running is None:
        return []
    now = set(view.running(world.state))
    missing = sorted(set(check.running) - now)
    extra = sorted(now & scene.submitted - set(check.running)) if check.running else sorted(now)
    found = [f"{name} does not run{_because(name, world)}" for name in missing]
    return found + [f"{name} runs" for name in extra]


def _because(name: str, world: World) -> str:
    reason = explain.explain(world.state, name, world.now)
    return f" ({say(reason, 'en')})" if reason is not None else ""


def _reasons(what: str, wanted: Mapping[str, Sequence[str]], world: World, now: int) -> list[str]:
    found = []
    for name, patterns in wanted.items():
        if what == "pending" and not view.is_pending(world.state, name):
            found.append(f"{name} is not pending")
            continue
        ask = explain.explain if what == "pending" else explain.growth_reason
        reason = ask(world.state, name, now)
        if reason is None:
            found.append(f"{name} has no reason ({what})")
            continue
        found += [f"{name}: {line}" for line in unmatched(said(reason), patterns)]
    return found


def said(reason: Reason) -> str:
    """A reason as people read it."""
    return say(reason, "en")


def unmatched(text: str, patterns: Iterable[str]) -> list[str]:
    """A line for each pattern that is not found in a text."""
    return [f"/{p}/ is not in: {text}" for p in patterns if not re.search(p, text, re.IGNORECASE)]


def _placement(name: str, wanted: Mapping[str, tuple[int, int]], world: World) -> list[str]:
    workload, _, role = name.partition("/") if name not in world.specs else (name, "", "")
    pods = Counter(pod.node for pod in view.bound_pods(world.state, workload, role))
    total = sum(pods.values())
    shown = dict(sorted(pods.items()))
    if "any" in wanted:
        least, most = wanted["any"]
        return [] if least <= total <= most else [f"{name} has {total} pods, not {least}: {shown}"]
    fits = all(least <= pods[node] <= most for node, (least, most) in wanted.items())
    if fits and not set(pods) - set(wanted):
        return []
    return [f"{name} is at {shown}, not at { ({node: low for node, (low, _) in wanted.items()}) }"]


def _on_gpus(name: str, wanted: Mapping[int, int], world: World) -> list[str]:
    found = Counter(part.device for pod in view.bound_pods(world.state, name) for part in pod.slices)
    return [] if dict(found) == dict(wanted) else [f"{name} is on GPUs {dict(found)}, not {dict(wanted)}"]


def _usage(check: Check, world: World, record: Record) -> list[str]:
    used = view.usage(world.state)
    found = [
        f"{name} uses {show_gpus(used[name])} GPUs, not {show_gpus(units)}"
        for name, units in check.usage.items()
        if used[name] != units
    ]
    added = sum(view.usage_own(world.state).values()) - record.usage_at_start
    if check.usage_added is not None and added != check.usage_added:
        found.append(f"{show_gpus(added)} GPUs more are used, not {show_gpus(check.usage_added)}")
    if check.free is not None and (free := view.idle(world.state)) != check.free:
        found.append(f"{show_gpus(free)} GPUs are idle, not {show_gpus(check.free)}")
    for name, wanted in check.free_on.items():
        node = world.state.nodes.get(name)
        idle = view.idle_on(world.state, node) if node is not None else 0
        if idle != wanted:
            found.append(f"{show_gpus(idle)} GPUs are idle on {name}, not {show_gpus(wanted)}")
    return found


def in_the_end(expect: Expect, world: World, record: Record, scene: Scene) -> list[str]:
    """What does not hold when the scene is over."""
    found = []
    for what, wanted, counted in (
        ("evicted", expect.evicted, world.evictions),
        ("evicted pods", expect.evicted_pods, world.evicted_pods),
    ):
        if wanted is None:
            continue
        names = set(wanted) | (set(counted) if what == "evicted" else set())
        found += [
            f"{what} of {name}: {counted[name]}, not {wanted.get(name, 0)}"
            for name in sorted(names)
            if counted[name] != wanted.get(name, 0)
        ]
    if expect.one_of:
        outcomes = [at_moment(each, world, record, scene, world.now) for each in expect.one_of]
        holding = sum(not lines for lines in outcomes)
        if holding != 1:
            found.append(
                f"{holding} of {len(outcomes)} alternatives hold: {'; '.join(line for o in outcomes for line in o)}"
            )
    for happened in expect.events:
        lines = story(happened.about, world)
        if not any(not unmatched(line, happened.has) for line in lines):
            found.append(f"no line about {happened.about} has {' and '.join(happened.has)}: {lines}")
    for when, patterns, lines in (
        ("setup", expect.warnings_at_setup, record.warnings_at_setup),
        ("change", expect.warnings_at_change, record.warnings_at_change),
    ):
        if patterns is not None and not any(not unmatched(line, patterns) for line in lines):
            found.append(f"no warning at {when} has {' and '.join(patterns)}: {lines}")
    return found


def story(about: str, world: World) -> list[str]:
    """What can be read about a workload or a node: a line for each entry that concerns it."""
    return [line for entry in world.log if _concerns(entry, about) and (line := _line(entry))]


def _concerns(entry: Entry, about: str) -> bool:
    workload = getattr(entry, "workload", None)
    node = getattr(entry, "node", None)
    return about in (workload, node, getattr(workload, "id", None), getattr(node, "name", None))


def _line(entry: Entry) -> str:
    return say_event(entry) if type(entry).__module__.endswith(".event") else say_decision(entry)  # type: ignore[arg-type]
