"""The simulated world: order within an instant, answers to decisions, restarts, and engines that never come to rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from allmende.engine.plan import Plan
from allmende.model.cluster import Device, Node
from allmende.model.decision import Evict, Start
from allmende.model.event import Cancelled, Ended, NodeSet, PodGone, ProjectSet, Submitted, Ticked, Up
from allmende.model.request import Ask
from allmende.model.span import SECOND
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.model.workload import Role, Workload
from allmende.sim import world as worlds
from allmende.sim.heap import Agenda
from allmende.sim.world import Diverged, Entry, Observer, Unsettled, World


def job(name: str, gpus: int = 2, priority: int = 0, grace: int = 0) -> Workload:
    return Workload(name, "q", (Role("main", 1, Ask(whole=gpus)),), 1, priority=priority, grace=grace)


def small(**options: Any) -> World:
    """One node of two GPUs and one project."""
    world = World(checked=True, **options)
    world.at(0, NodeSet(0, Node("n1", tuple(Device(i) for i in range(2)))))
    world.at(0, ProjectSet(0, Project("q", guarantee=2 * GPU)))
    return world


def kinds(entries: Sequence[Entry]) -> list[str]:
    return [type(entry).__name__ for entry in entries]


def test_equal_moments_keep_their_order() -> None:
    agenda: Agenda[str] = Agenda()
    for at, thing in [(5, "b"), (1, "a"), (5, "c"), (9, "d")]:
        agenda.put(at, thing)
    assert (agenda.next_at, len(agenda)) == (1, 4)
    assert agenda.due(5) == ["a", "b", "c"]
    assert agenda.next_at == 9


def test_a_job_runs_for_its_time_and_the_next_one_starts_in_the_same_instant() -> None:
    world = small()
    world.work = {"A": 10 * SECOND}
    world.at(0, Submitted(0, job("A")))
    world.at(0, Submitted(0, job("B")))
    world.run(20 * SECOND)
    assert kinds(world.log) == [
        "NodeSet",
        "ProjectSet",
        "Submitted",
        "Submitted",
        "Start",
        "Up",
        "Ended",
        "Start",
        "Up",
    ]
    assert [entry.at for entry in world.log if isinstance(entry, Start | Ended)] == [0, 10 * SECOND, 10 * SECOND]
    assert world.now == 20 * SECOND


def test_an_evicted_job_leaves_after_its_grace_and_starts_from_zero() -> None:
    world = small()
    world.work = {"low": 10 * SECOND, "high": 5 * SECOND}
    world.at(0, Submitted(0, job("low", grace=3 * SECOND)))
    world.at(4 * SECOND, Submitted(4 * SECOND, job("high", priority=1)))
    world.run(60 * SECOND)
    moments = [(type(e).__name__, e.at // SECOND) for e in world.log if isinstance(e, Evict | PodGone | Start | Ended)]
    assert moments == [
        ("Start", 0), ("Evict", 4), ("PodGone", 7), ("Start", 7), ("Ended", 12), ("Start", 12), ("Ended", 22),
    ]  # fmt: skip
    assert (world.evictions["low"], world.evicted_pods["low"]) == (1, 1)


def test_owners_submit_evicted_work_anew() -> None:
    world = small(recreate=True)
    world.at(0, Submitted(0, job("low")))
    world.at(1, Submitted(1, job("high", priority=1)))
    world.run(SECOND)
    assert set(world.state.standings) == {"low'", "high"}
    assert world.state.outcomes["low"].cancelled


def test_an_unreported_eviction_ends_with_the_cancellation() -> None:
    world = small()
    world.at(0, Submitted(0, job("V", grace=60 * SECOND)))
    world.at(SECOND, Submitted(SECOND, job("H", priority=1)))
    world.at(10 * SECOND, lambda each: each.cancel_unreported("V"))
    world.run(100 * SECOND)
    gone = [entry.at // SECOND for entry in world.log if isinstance(entry, PodGone)]
    assert gone == [70]
    assert [entry.at // SECOND for entry in world.log if isinstance(entry, Start)] == [0, 70]


def test_observers_see_every_instant_and_how_long_it_lasts() -> None:
    seen: list[tuple[int, int, list[str]]] = []

    class Watch(Observer):
        def settled(self, world: World, entries: Sequence[Entry], until: int) -> None:
            seen.append((world.now, until, kinds(entries)))

    world = small()
    world.observers.append(Watch())
    world.at(5, Submitted(5, job("A")))
    world.at(9, Cancelled(9, "A"))
    world.run(20)
    assert seen == [
        (0, 5, ["NodeSet", "ProjectSet"]),
        (5, 9, ["Submitted", "Start", "Up"]),
        (9, 20, ["Cancelled", "PodGone"]),
    ]


def test_a_restart_rebuilds_the_same_state() -> None:
    world = small()
    world.at(0, Submitted(0, job("A")))
    world.at(1, Submitted(1, job("B")))
    world.run(5)
    before = world.state
    world.restart(["B", "A"])
    assert world.state is not before
    assert list(world.state.standings) == ["B", "A"]
    assert world.state.standings == before.standings
    world.log = [entry for entry in world.log if not isinstance(entry, Up)]
    with pytest.raises(Diverged, match="standings"):
        world.restart()


def test_an_engine_without_rest_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    world = small(rounds=3)
    world.at(0, Submitted(0, job("A")))
    world.run(0)
    monkeypatch.setattr(worlds, "plan", lambda state, now: Plan((Evict(now, "A", (), _CAUSE),), None))
    world.at(1, Ticked(1))
    with pytest.raises(Unsettled, match=r"3 passes at .* about: A"):
        world.run(1)
    monkeypatch.setattr(worlds, "plan", lambda state, now: Plan((), now))
    world.at(2, Ticked(2))
    with pytest.raises(Unsettled, match="woken"):
        world.run(2)


_CAUSE = worlds.Cause.RECLAIM


def test_up_comes_only_when_the_node_is_ready() -> None:
    world = small()
    world.run(0)
    bad = Node("n1", tuple(Device(i) for i in range(2)), state=worlds.NodeState.NOT_READY)
    good = Node("n1", tuple(Device(i) for i in range(2)))
    world.barred["A"] = lambda decision: [NodeSet(world.now, bad)]
    world.at(1, Submitted(1, job("A")))
    world.at(SECOND, NodeSet(SECOND, good))
    world.run(2 * SECOND)
    assert [entry.at for entry in world.log if isinstance(entry, Up)] == [SECOND]
