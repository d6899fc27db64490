"""The same decisions whatever the hash seed, and whatever the order of entries whose order means nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.property.states import NOW, Entry, digest, several, shuffled
from tests.property.test_engine import SEEDS
from tests.property.test_engine_steps import live
from tests.reference.world import World

ROOT = Path(__file__).parents[2]


def decided(entries: tuple[Entry, ...], seed: int) -> list[list[Entry]]:
    """All that is decided from these entries on until nothing moves, pass by pass."""
    world = World.of(entries)
    world.settle(NOW, Random(seed), 3 * len(world.state.standings) + 3)
    return [list(decisions) for decisions in world.passes]


@pytest.mark.parametrize("seed", SEEDS)
def test_order_of_equals_means_nothing(seed: int) -> None:
    sample = several(seed)
    expected = decided(sample.entries, seed)
    for number in range(2):
        entries = shuffled(sample, Random(f"{seed} {number}"))
        assert decided(entries, seed) == expected


def test_hash_seed_means_nothing() -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.property.test_engine_order", str(SEEDS.start), str(SEEDS.stop)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    first, second = (run.communicate()[0].splitlines() for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    assert len(first) == len(SEEDS)
    assert first == second


def lived(seed: int) -> str:
    """A digest of all that happened and was decided in a random day, up to the first law that broke, if any did."""
    sample = several(seed)
    world = World.of(sample.entries)
    broken = ""
    try:
        for now in live(sample, world):
            world.step(now)
    except Exception as error:  # test_engine_steps reports it
        broken = repr(error)
    return f"{seed} {digest(world.log)} {broken}".splitlines()[0]


if __name__ == "__main__":
    for each in range(int(sys.argv[1]), int(sys.argv[2])):
        print(lived(each))
