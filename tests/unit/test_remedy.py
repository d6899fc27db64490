"""Each remedy is the smallest change of its kind that a pass really starts."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from allmende.engine.apply import apply
from allmende.engine.plan import plan
from allmende.engine.remedy import remedies
from allmende.engine.state import State
from allmende.model.cluster import Device, Node, Window
from allmende.model.decision import Start
from allmende.model.event import Event, LevelsSet, NodeSet, ProjectSet, Submitted, Up
from allmende.model.remedy import Change, Remedy
from allmende.model.request import Ask, Where
from allmende.model.tenancy import Project
from allmende.model.units import GPU, SECOND
from allmende.model.workload import Role, Workload

HOUR = 3600 * SECOND


def node(name: str, gpus: int, model: str = "H100", rack: str = "A", **more: object) -> NodeSet:
    return NodeSet(0, Node(name, tuple(Device(i) for i in range(gpus)), model, labels=(("rack", rack),), **more))  # type: ignore[arg-type]


def job(name: str, pods: int, gpus: int, models: tuple[str, ...] = (), cpu: int = 0, **more: object) -> Submitted:
    role = Role("main", pods, Ask(whole=gpus, cpu=cpu), Where(models), pods)
    return Submitted(0, Workload(name, "q", (role,), pods, **more))  # type: ignore[arg-type]


def world(events: Iterable[Event]) -> State:
    state = State()
    for event in events:
        apply(state, event)
    for decision in plan(state, 0).decisions:
        apply(state, decision)
        if isinstance(decision, Start):
            apply(state, Up(0, decision.workload))
    return state


QUEUE = ProjectSet(0, Project("q", guarantee=4 * GPU))

TABLE = {
    "fewer pods": ([node("n1", 4), QUEUE, job("z", 6, 1)], [Remedy(Change.FEWER_PODS, {"asked": 6, "pods": 4})]),
    "fewer GPUs": (
        [node("n1", 4), node("n2", 4), QUEUE, job("a", 1, 1), job("b", 1, 4), job("z", 1, 4)],
        [Remedy(Change.FEWER_GPUS, {"asked": 4, "gpus": 3})],
    ),
    "fewer CPUs": (
        [node("n1", 4, cpu=4500), QUEUE, job("z", 1, 1, cpu=6000)],
        [Remedy(Change.FEWER_CPUS, {"asked": 6000, "cpus": 4000})],
    ),
    "another model": (
        [node("n1", 1, "A100"), node("n2", 1, "H100"), QUEUE, job("a", 1, 1, ("H100",)), job("z", 1, 1, ("H100",))],
        [Remedy(Change.OTHER_MODEL, {"asked": "H100", "model": "A100"})],
    ),
    "a wider level": (
        [
            LevelsSet(0, ("rack", "node")),
            node("n1", 1, rack="A"),
            node("n2", 1, rack="B"),
            QUEUE,
            job("z", 2, 1, same="rack"),
        ],
        [
            Remedy(Change.FEWER_PODS, {"asked": 2, "pods": 1}),
            Remedy(Change.WIDER_LEVEL, {"asked": "rack", "level": ""}),
        ],
    ),
    "a shorter limit": (
        [node("n1", 1, maintenance=(Window(24 * HOUR, 28 * HOUR),)), QUEUE, job("z", 1, 1)],
        [Remedy(Change.SHORTER_LIMIT, {"asked": -1, "limit": 24 * HOUR})],
    ),
    "preemptible": (
        [node("n1", 8), QUEUE, job("z", 1, 5, borrow=False)],
        [
            Remedy(Change.FEWER_GPUS, {"asked": 5, "gpus": 4}),
            Remedy(Change.PREEMPTIBLE, {"project": "q", "guarantee": 4 * GPU}),
        ],
    ),
    "nothing helps": ([node("n1", 1), QUEUE, job("a", 1, 1), job("z", 1, 1)], []),
    "it starts anyway": ([node("n1", 1), QUEUE], []),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_smallest_change(name: str) -> None:
    events, expected = TABLE[name]
    state = world(events)
    before = {key: state.standings[key] for key in state.standings}
    assert remedies(state, "z", 0) == expected
    assert state.standings == before, "the state itself is left alone"
