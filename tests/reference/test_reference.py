"""The references against answers found by hand, so that they are trusted before they judge the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from allmende.model.cluster import Device, Leaving, Node, NodeState, Pod, PodId, Slice
from allmende.model.request import Ask, Where
from allmende.model.standing import Phase, Standing
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.model.workload import Role, Workload
from tests.reference.place import Facts, place, rooms
from tests.reference.surplus import surplus
from tests.reference.victims import as_units, key, victims


@dataclass
class Table:
    """Facts written down by hand."""

    levels: tuple[str, ...] = ()
    projects: dict[str, Project] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)
    leaving: dict[PodId, Leaving] = field(default_factory=dict)
    holds: dict[str, tuple[Pod, ...]] = field(default_factory=dict)

    def project(self, name: str, guarantee: int = 0, parent: str = "", **more: object) -> None:
        self.projects[name] = Project(name, parent, guarantee * GPU, **more)  # type: ignore[arg-type]

    def node(self, name: str, gpus: int, **more: object) -> None:
        self.nodes[name] = Node(name, tuple(Device(index) for index in range(gpus)), **more)  # type: ignore[arg-type]

    def workload(
        self, name: str, project: str, roles: tuple[Role, ...], minimum: int = 0, priority: int = 0
    ) -> Standing:
        work = Workload(name, project, roles, minimum or sum(role.pods for role in roles), priority=priority)
        self.standings[name] = Standing(work, 0, tuple(role.pods for role in roles), work.gang_min)
        return self.standings[name]

    def run(
        self,
        name: str,
        project: str,
        places: list[tuple[str, int]],
        gpus: int,
        started: int,
        minimum: int = 0,
        rank: int = 0,
    ) -> None:
        """A running workload of equal pods at (node, first device); `rank` is its priority."""
        self.workload(name, project, (Role("main", len(places), Ask(whole=gpus)),), minimum, rank)
        pods = tuple(
            Pod(name, 1, 0, number, node, tuple(Slice(first + index, GPU) for index in range(gpus)))
            for number, (node, first) in enumerate(places)
        )
        waiting = self.standings[name]
        self.standings[name] = Standing(
            waiting.workload, 0, waiting.wanted, waiting.minimum, Phase.RUNNING, 1, started, pods, True
        )

    def leave(self, pod: Pod) -> None:
        self.leaving[pod.id] = Leaving(pod, Ask(), 0)

    def names(self, claimant: str, now: int = 1_000) -> list[tuple[str, int]] | None:
        """The victims as (workload, rank), in order."""
        found = victims(self, claimant, now)
        return None if found is None else sorted((pod[0], pod[3]) for pod in found[1])


def one(gpus: int, pods: int = 1, **where: Any) -> tuple[Role, ...]:
    return (Role("main", pods, Ask(whole=gpus), Where(**where)),)


def fits(facts: Facts, name: str) -> list[str] | None:
    found = place(facts.standings[name], rooms(facts, name), facts.levels)
    return None if found is None else [pod.node for pod in found]


def test_table_is_facts() -> None:
    facts: Facts = Table()
    assert not facts.standings


def test_surplus_goes_from_the_last_pod_and_keeps_what_is_due() -> None:
    table = Table()
    roles = (Role("lead", 2, Ask(), least=1), Role("worker", 4, Ask(), least=2))
    waiting = table.workload("j", "p", roles, 4)
    pods = tuple(Pod("j", 1, role, rank, "n1") for role in (0, 1) for rank in range((2, 4)[role]))
    running = Standing(waiting.workload, 0, waiting.wanted, 4, pods=pods)
    assert [(pod.role, pod.rank) for pod in surplus(running)] == [(1, 3), (1, 2)]  # six less two is the minimum
    loose = Standing(waiting.workload, 0, waiting.wanted, 1, pods=pods)
    assert [(pod.role, pod.rank) for pod in surplus(loose)] == [(1, 3), (1, 2), (0, 1)]  # role minima 1 and 2 stay
    free = table.workload("k", "p", (Role("main", 3, Ask()),), 1)
    alone = Standing(free.workload, 0, (3,), 0, pods=tuple(Pod("k", 1, 0, rank, "n1") for rank in range(3)))
    assert [pod.rank for pod in surplus(alone)] == [2, 1]  # never rank 0


def test_role_minima_come_first_in_a_gang() -> None:  # case 007
    table = Table()
    table.project("q", 8)
    table.node("n1", 4)
    table.workload("j", "q", (Role("a", 6, Ask(whole=1), least=2), Role("b", 2, Ask(whole=1), least=2)), 5)
    assert fits(table, "j") is None
    table.node("n2", 1)
    found = place(table.standings["j"], rooms(table, "j"), ())
    assert found is not None
    assert sorted(pod.role for pod in found) == [0, 0, 0, 1, 1]


def test_shares_share_a_device_and_whole_gpus_do_not() -> None:
    table = Table()
    table.project("q")
    table.node("n1", 2)
    table.workload("thirds", "q", (Role("main", 5, Ask(share=GPU // 3)),))
    table.workload("mixed", "q", (Role("s", 2, Ask(share=GPU // 2)), Role("w", 1, Ask(whole=1))))
    table.workload("apart", "q", (Role("s", 2, Ask(share=GPU // 2 + 1)), Role("w", 1, Ask(whole=1))))
    table.workload("seven", "q", (Role("main", 7, Ask(share=GPU // 3)),))
    assert fits(table, "thirds") == ["n1"] * 5
    assert fits(table, "mixed") == ["n1"] * 3
    assert fits(table, "apart") is None
    assert fits(table, "seven") is None


def test_a_domain_is_its_whole_path() -> None:  # case 048, and a level below with equal names
    table = Table(levels=("block", "rack"))
    table.project("q")
    for name, block, rack in (("b1", "b1", "r1"), ("n2", "b1", "r2"), ("n3", "b2", "r1")):
        table.node(name, 8, labels=(("block", block), ("rack", rack)))
    for level, expected in (("block", ["b1", "n2"]), ("rack", None), ("node", None), ("", ["b1", "n2"])):
        waiting = table.workload(f"j{level}", "q", one(8, 2))
        work = Workload(f"j{level}", "q", waiting.workload.roles, 2, same=level)
        table.standings[work.id] = Standing(work, 0, (2,), 2)
        assert fits(table, work.id) == expected


@pytest.mark.parametrize(
    ("node", "where"),
    [
        ({"state": NodeState.CORDONED}, {}),
        ({"taints": ("kept",)}, {}),
        ({"closed": "dust"}, {}),
        ({"only_for": "p"}, {}),
        ({"max_pods": 0}, {}),
        ({"model": "A100"}, {"models": ("H100",)}),
        ({"labels": (("zone", "a"),)}, {"select": (("zone", "b"),)}),
    ],
)
def test_a_node_that_will_not_do(node: dict[str, object], where: dict[str, Any]) -> None:
    table = Table()
    table.project("q")
    table.node("n1", 8, **node)
    table.workload("j", "q", one(1, **where))
    assert fits(table, "j") is None


def test_only_the_pods_that_are_needed_go() -> None:  # case 021
    table = Table()
    table.project("qa", 2)
    table.project("qb", 9)
    table.node("n1", 11)
    table.run("v", "qa", [("n1", first) for first in range(11)], 1, 0, minimum=1)
    table.workload("r", "qb", one(1))
    found = victims(table, "r", 1_000)
    assert found is not None
    assert found[0] == (GPU, 0, (0,), GPU * 1_000, 1_000, ("v",))
    assert len(found[1]) == 1


def test_the_whole_gang_is_tried_against_the_freed_room() -> None:  # case 025
    table = Table()
    table.project("q", 8)
    table.node("n1", 8)
    table.run("low", "q", [("n1", 0)], 8, 0, rank=1)
    table.workload("high", "q", one(2, 2), priority=100)
    assert table.names("high") == [("low", 0)]
    table.workload("equal", "q", one(2, 2), priority=1)
    assert table.names("equal") is None


def test_who_holds_only_the_pod_slot_goes_too() -> None:  # case 027
    table = Table()
    table.project("q", 8)
    table.node("n1", 8, max_pods=2)
    table.run("gpu", "q", [("n1", 0)], 8, 0, rank=1)
    table.run("cpu", "q", [("n1", 0)], 0, 100, rank=1)
    table.workload("high", "q", one(4, 2), priority=100)
    assert table.names("high") == [("cpu", 0), ("gpu", 0)]


def test_surplus_goes_down_to_the_guarantee_and_no_further() -> None:  # case 140
    table = Table()
    table.project("q", 5)
    table.project("r", 3)
    table.node("n1", 8)
    table.run("e", "q", [("n1", first) for first in range(7)], 1, 0, minimum=5)
    table.run("x", "r", [("n1", 7)], 1, 0)
    table.workload("y", "r", one(1, 2))
    assert table.names("y") == [("e", 5), ("e", 6)]
    table.workload("z", "r", one(1, 3))  # 1 + 3 is above the guarantee of r
    assert table.names("z") is None


def test_two_victims_together_may_not_cut_into_a_guarantee_above() -> None:
    table = Table()
    table.project("mine", 2)
    table.project("area", 3)
    table.project("a", parent="area")
    table.project("b", parent="area")
    table.node("n1", 4)
    for name, project, first in (("a1", "a", 0), ("a2", "a", 1), ("b1", "b", 2), ("b2", "b", 3)):
        table.run(name, project, [("n1", first)], 1, first)
    table.workload("r", "mine", one(1))
    assert table.names("r") == [("b2", 0)]  # the youngest
    table.workload("two", "mine", one(2))
    assert table.names("two") is None  # area would be left with 2 of its 3


def test_guarantees_by_model_are_kept_per_model() -> None:  # case 044
    table = Table()
    table.node("h1", 8, model="H100")
    table.node("a1", 4, model="A100")
    table.project("A", guarantee_by_model={"H100": 0, "A100": 4 * GPU})
    table.project("B", guarantee_by_model={"H100": 8 * GPU, "A100": 0})
    table.run("a_h", "A", [("h1", 0)], 8, 0)
    table.run("b_a", "B", [("a1", 0)], 4, 300)
    table.workload("a_a", "A", one(4, models=("A100",)))
    assert table.names("a_a") == [("b_a", 0)]


def test_a_cap_can_be_what_is_in_the_way() -> None:
    table = Table()
    table.project("q", cap=2 * GPU)
    table.node("n1", 8)
    table.run("low", "q", [("n1", 0)], 2, 0)
    table.workload("high", "q", one(1), priority=1)
    assert table.names("high") == [("low", 0)]


def test_nobody_goes_where_leaving_pods_make_the_room() -> None:
    table = Table()
    table.project("q", 2)
    table.node("n1", 2)
    table.run("low", "q", [("n1", 0)], 1, 0)
    table.leave(Pod("old", 1, 0, 0, "n1", (Slice(1, GPU),)))
    table.workload("high", "q", one(1), priority=1)
    assert table.names("high") == []
    table.leave(Pod("low", 1, 0, 1, "n1"))
    table.workload("more", "q", one(2), priority=1)
    assert table.names("more") is None  # a workload that is leaving is nobody's victim


def test_the_key_prefers_gpus_then_workloads_then_priority_then_work_then_age_then_name() -> None:
    table = Table()
    table.project("q", 8)
    table.node("n1", 16)
    for number, (name, rank, started) in enumerate((("b", 3, 0), ("a", 3, 0), ("c", 3, 10), ("d", 2, 0))):
        table.run(name, "q", [("n1", number)], 1, started, rank=rank)
    table.run("two", "q", [("n1", 4)], 2, 0, rank=0)
    table.run("gang", "q", [("n1", 6), ("n1", 7)], 1, 0, rank=0)

    def cost(*names: str) -> tuple[object, ...]:
        pods = [pod.id for name in names for pod in table.standings[name].pods]
        return key(as_units(table, pods), 1_000)

    assert cost("b") < cost("two")  # fewer GPUs, whatever the priority
    assert cost("two") < cost("c", "d")  # as many GPUs, fewer workloads
    assert cost("d") < cost("c") < cost("a") < cost("b")  # priority, work lost, name
    assert cost("d", "a") < cost("a", "c")  # one of priority 3 rather than two
    with pytest.raises(AssertionError, match="gang"):
        as_units(table, [table.standings["gang"].pods[1].id])
