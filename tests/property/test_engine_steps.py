"""The engine through random days: every law holds after every step, it comes to rest, and its log replays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import msgspec
import pytest

from allmende.engine.invariants import check
from allmende.engine.plan import plan
from allmende.engine.state import State
from allmende.model.cluster import Node, NodeState, Pod, PodId
from allmende.model.decision import Cause, Evict, Start
from allmende.model.event import (
    Cancelled,
    Checkpointed,
    Ended,
    Event,
    NodeGone,
    NodeSet,
    PodEnded,
    PodGone,
    PodLost,
    ProjectSet,
    Resized,
    Submitted,
    Ticked,
    Up,
)
from allmende.model.standing import Standing
from allmende.model.units import GPU, SECOND
from tests.property.states import NOW, Sample, several, single
from tests.property.test_engine import SEEDS
from tests.reference.world import World

STEPS = 40
ONCE_WRONG = (65, 959, 1211, 1836)
"""Days that once broke a law, kept for good."""


class Day:
    """Random events that can really happen in the world as it is now."""

    def __init__(self, sample: Sample, world: World, rng: Random) -> None:
        self.world, self.rng = world, rng
        self.later = list(sample.later)
        self.gone: list[Node] = []
        self.silent: set[str] = set()  # workloads whose pods do not come up
        self.kinds: tuple[tuple[int, Callable[[int], Event | None]], ...] = (
            (12, self.pod_gone),
            (5, self.submitted),
            (3, self.ended),
            (2, self.pod_ended),
            (1, self.pod_lost),
            (2, self.cancelled),
            (2, self.resized),
            (3, self.node_changed),
            (1, self.node_gone),
            (1, self.node_back),
            (1, self.gpu_lost),
            (1, self.project_changed),
            (1, self.checkpointed),
            (1, Ticked),
        )

    def events(self, at: int) -> list[Event]:
        """One to three events, after the reports of pods that came up."""
        self.world.feed(*self.ups(at))
        weights = [weight for weight, _ in self.kinds]
        found: list[Event] = []
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            event = self.rng.choices(self.kinds, weights)[0][1](at)
            if event is not None:
                self.world.feed(event)
                found.append(event)
        return found

    def ups(self, at: int) -> list[Event]:
        up: list[Event] = []
        for standing in self.running():
            name = standing.workload.id
            if not standing.bound and name not in self.silent:
                if self.rng.random() < 0.05:
                    self.silent.add(name)
                elif self.rng.random() < 0.7:
                    up.append(Up(at, name))
        return up

    def running(self) -> list[Standing]:
        return [each for _, each in sorted(self.world.state.standings.items()) if each.pods]

    def one(self) -> Standing | None:
        running = self.running()
        return self.rng.choice(running) if running else None

    def pod(self) -> Pod | None:
        standing = self.one()
        return self.rng.choice(standing.pods) if standing else None

    def node(self) -> Node | None:
        nodes = [node for _, node in sorted(self.world.state.nodes.items())]
        return self.rng.choice(nodes) if nodes else None

    def pod_gone(self, at: int) -> Event | None:
        leaving = sorted(self.world.state.leaving)
        return PodGone(at, self.rng.choice(leaving)) if leaving else None

    def submitted(self, at: int) -> Event | None:
        return Submitted(at, self.later.pop()) if self.later else None

    def ended(self, at: int) -> Event | None:
        standing = self.one()
        return Ended(at, standing.workload.id, self.rng.random() < 0.8) if standing else None

    def pod_ended(self, at: int) -> Event | None:
        pod = self.pod()
        return PodEnded(at, pod.id, self.rng.random() < 0.8) if pod else None

    def pod_lost(self, at: int) -> Event | None:
        pod = self.pod()
        return PodLost(at, pod.id, "drained") if pod else None

    def cancelled(self, at: int) -> Event | None:
        names = sorted(self.world.state.standings)
        return Cancelled(at, self.rng.choice(names)) if names else None

    def resized(self, at: int) -> Event | None:
        names = sorted(self.world.state.standings)
        if not names:
            return None
        standing = self.world.state.standings[self.rng.choice(names)]
        role = self.rng.randrange(len(standing.wanted))
        others = sum(standing.wanted) - standing.wanted[role]
        low = max(1, standing.workload.roles[role].least, standing.minimum - others)
        return Resized(at, standing.workload.id, role, self.rng.randint(low, max(low, standing.wanted[role] + 2)))

    def node_changed(self, at: int) -> Event | None:
        node = self.node()
        states = (NodeState.READY, NodeState.READY, NodeState.CORDONED, NodeState.NOT_READY)
        return NodeSet(at, msgspec.structs.replace(node, state=self.rng.choice(states), closed="")) if node else None

    def node_gone(self, at: int) -> Event | None:
        node = self.node()
        if node is None or len(self.world.state.nodes) < 2:
            return None
        self.gone.append(node)
        return NodeGone(at, node.name)

    def node_back(self, at: int) -> Event | None:
        if not self.gone:
            return None
        devices = tuple(msgspec.structs.replace(device, healthy=True) for device in self.gone[-1].devices)
        node = msgspec.structs.replace(self.gone.pop(), devices=devices, state=NodeState.READY, closed="")
        return NodeSet(at, node)

    def gpu_lost(self, at: int) -> Event | None:
        node = self.node()
        if node is None:
            return None
        broken = self.rng.randrange(len(node.devices))
        devices = tuple(
            msgspec.structs.replace(device, healthy=index != broken) for index, device in enumerate(node.devices)
        )
        return NodeSet(at, msgspec.structs.replace(node, devices=devices))

    def project_changed(self, at: int) -> Event | None:
        projects = [project for _, project in sorted(self.world.state.projects.items())]
        project = self.rng.choice(projects)
        if project.guarantee_by_model:
            model = self.rng.choice(sorted(project.guarantee_by_model))
            by_model = {**project.guarantee_by_model, model: GPU * self.rng.randint(0, 6)}
            return ProjectSet(at, msgspec.structs.replace(project, guarantee_by_model=by_model))
        return ProjectSet(at, msgspec.structs.replace(project, guarantee=GPU * self.rng.randint(0, 6), cap=None))

    def checkpointed(self, at: int) -> Event | None:
        standing = self.one()
        return Checkpointed(at, standing.workload.id, at) if standing else None


def facts(state: State) -> dict[str, object]:
    """All facts of a state, without what is derived from them."""
    return {name: getattr(state, name) for name in state.__slots__ if name != "index"}


def live(sample: Sample, world: World) -> Iterator[int]:
    """The moments of a random day in the world of the sample; whoever asks for the next has stepped the world."""
    rng, now = Random(f"day {sample.seed}"), NOW
    day = Day(sample, world, rng)
    yield now
    for _ in range(STEPS):
        now += rng.choice((0, 1, 7, 40, 200)) * SECOND
        day.events(now)
        yield now


@pytest.mark.parametrize("seed", sorted({*SEEDS, *ONCE_WRONG}))
def test_laws_hold_and_the_log_replays(seed: int) -> None:
    """Gangs whole, nothing given twice, places legal, caps kept, guarantees spared, reasons given, Index as rebuilt;
    and at every moment the entries so far, folded anew, give the same facts and the same decisions."""
    sample = several(seed)
    world = World.of(sample.entries)
    for now in live(sample, world):
        again = World.of(world.log)
        assert facts(again.state) == facts(world.state)
        assert world.step(now) == list(plan(again.state, now).decisions), "memory decides otherwise than the facts"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_leaves_the_state_as_it_was(seed: int) -> None:
    """Planning is a question: asked twice it is answered alike, and nothing has changed in between."""
    sample = several(seed)
    world = World.of(sample.entries)
    for now in live(sample, world):
        asked = plan(world.state, now)
        check(world.state)
        assert list(asked.decisions) == world.step(now)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sort", [single, several])
def test_it_comes_to_rest_and_nobody_goes_twice(seed: int, sort: Callable[[int], Sample]) -> None:
    """At a frozen clock: few passes, no pod taken twice, nobody gives way twice to the same claimant."""
    world = World.of(sort(seed).entries)
    work = len(world.state.standings)
    world.settle(NOW, Random(seed), 3 * work + 3)
    pods: Counter[PodId] = Counter()
    wholes: Counter[tuple[str, str]] = Counter()
    claims: Counter[tuple[str, int]] = Counter()
    starts: Counter[str] = Counter()
    for decisions in world.passes:
        evictions = [each for each in decisions if isinstance(each, Evict) and each.cause is not Cause.SHRINK]
        pods.update(pod for each in evictions for pod in each.pods)
        wholes.update({(each.workload, each.claimant) for each in evictions if each.claimant})
        claims.update({(each.claimant, starts[each.claimant]) for each in evictions if each.claimant})
        starts.update(each.workload for each in decisions if isinstance(each, Start))
    assert max(pods.values(), default=0) <= 1, f"a pod is taken twice: {pods.most_common(1)}"
    assert max(wholes.values(), default=0) <= 1, f"a workload gives way twice to one claimant: {wholes.most_common(1)}"
    assert max(claims.values(), default=0) <= 1, f"two evictions for one claim: {claims.most_common(1)}"
