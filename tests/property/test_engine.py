"""The engine against the naive meaning of its search: who has to go for one claimant, and that it is worth it."""

from __future__ import annotations

import os
from random import Random

import pytest

from allmende.model.cluster import PodId
from allmende.model.decision import Evict, Start
from allmende.model.event import PodGone, Up
from allmende.model.units import SECOND
from tests.property.states import NOW, single
from tests.reference.victims import as_units, key, victims, works
from tests.reference.world import World

STATES = int(os.environ.get("ALLMENDE_STATES", "50"))
FIRST = int(os.environ.get("ALLMENDE_FIRST", "0"))
SEEDS = range(FIRST, FIRST + STATES)


@pytest.mark.parametrize("seed", SEEDS)
def test_victims_are_the_best_of_all_sets(seed: int) -> None:
    sample = single(seed)
    world = World.of(sample.entries)
    (name,) = sample.pending
    facts = world.state.fork()
    claimant = facts.standings[name]
    best = victims(facts, name, NOW)
    fits = works(facts, claimant, leaving_are_gone=False)

    decisions = world.step(NOW)

    evictions = [decision for decision in decisions if isinstance(decision, Evict)]
    taken: frozenset[PodId] = frozenset(pod for decision in evictions for pod in decision.pods)
    assert all(decision.claimant == name for decision in evictions), f"{name}: {evictions}"
    started = any(isinstance(decision, Start) and decision.workload == name for decision in decisions)
    if best is None or not best[1]:
        assert not taken, f"{name} took {sorted(taken)}; it {'needs nobody to go' if best else 'cannot be helped'}"
        assert started == fits, f"{name} {'should' if fits else 'cannot'} start in free room"
        return
    units = as_units(facts, taken)
    found = key(units, NOW)
    said = f"{name}: expected {best[0]} {sorted(best[1])}, got {found} {sorted(taken)}"
    assert taken, said
    assert works(facts, claimant, units), f"not allowed, or not enough; {said}"
    assert found == best[0], said
    assert not started, f"{name} starts where others still are"


@pytest.mark.parametrize("seed", SEEDS)
def test_who_was_made_room_for_gets_it(seed: int) -> None:
    """The room that is freed goes to the claimant, whoever leaves first, and nobody else has to go for it."""
    sample = single(seed)
    world = World.of(sample.entries)
    (name,) = sample.pending
    helped = victims(world.state, name, NOW) is not None
    world.step(NOW)
    evicted = [decision for decision in world.passes[0] if isinstance(decision, Evict)]
    rng, now = Random(seed), NOW
    while leaving := sorted(world.state.leaving):
        assert len(world.passes) < 100, f"somebody is always leaving: {world.passes[-3:]}"
        now += rng.choice((0, 1, 5)) * SECOND
        world.feed(PodGone(now, rng.choice(leaving)))
        decisions = world.step(now)
        world.feed(*(Up(now, decision.workload) for decision in decisions if isinstance(decision, Start)))
        again = [decision for decision in decisions if isinstance(decision, Evict) and decision.claimant == name]
        assert not (evicted and again), f"a second eviction for {name}: {again}"
        evicted += again
    standing = world.state.standings[name]
    if helped:
        assert len(standing.pods) >= standing.minimum, f"{name} does not run though {evicted} left for it"
