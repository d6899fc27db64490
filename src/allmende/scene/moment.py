"""A stretch of a played scene in which nothing changes: what the sentences of a scene are judged on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from allmende.engine import explain
from allmende.engine.state import State
from allmende.model.cluster import Pod
from allmende.model.decision import Evict, Grow, Start, Stop
from allmende.model.event import Ended, PodEnded
from allmende.model.units import GPU
from allmende.scene import view
from allmende.scene.record import Record
from allmende.sim.world import Entry, World
from allmende.words import say


class Moment:
    """The state from `start` to `until`, with the entries of the instant at `start` that made it.

    `settled` False: a pass within the instant, of no length.
    """

    __slots__ = ("entries", "record", "settled", "start", "until", "world")

    def __init__(
        self, world: World, record: Record, entries: Sequence[Entry], until: int, settled: bool = True
    ) -> None:
        self.world = world
        self.record = record
        self.entries = entries
        self.start = world.now
        self.until = until
        self.settled = settled

    @property
    def state(self) -> State:
        """The engine's state."""
        return self.world.state

    def begun(self, names: Iterable[str], node: str = "") -> list[tuple[str, tuple[Pod, ...]]]:
        """(workload, pods) that were assigned in this instant, of these workloads, on this node."""
        wanted = set(names)
        return [
            (entry.workload, entry.pods)
            for entry in self.entries
            if isinstance(entry, Start | Grow)
            and entry.at == self.start  # what stood before the scene began is no event of it
            and entry.workload in wanted
            and (not node or any(pod.node == node for pod in entry.pods))
        ]

    def evicted(self, names: Iterable[str]) -> list[Evict]:
        """Evictions of this instant from these workloads."""
        wanted = set(names)
        return [entry for entry in self.entries if isinstance(entry, Evict) and entry.workload in wanted]

    def ended(self, names: Iterable[str]) -> bool:
        """Whether one of them came to an end in this instant."""
        wanted = set(names)
        return any(isinstance(entry, Ended | Stop) and entry.workload in wanted for entry in self.entries) or any(
            isinstance(entry, PodEnded) and entry.pod[0] in wanted for entry in self.entries
        )

    def reason(self, name: str) -> str:
        """The reason shown for a pending workload, '' where there is none."""
        found = explain.explain(self.state, name, self.start)
        return say(found, "en") if found is not None else ""


WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBER = rf"(?:\d+(?:\.\d+)?|{'|'.join(WORDS)}|an?|any|no)"
COMPARED = "exactly|only|fewer than|less than|more than|at least|at most|over|above|below|under"
SIZE = rf"(?:(?:{COMPARED}) )?{NUMBER}(?:(?:, or |, | or ){NUMBER})*"
"""A comparison with numbers, as a pattern without groups."""

_SIZE = re.compile(rf"(?:(?P<op>{COMPARED}) )?(?P<list>{NUMBER}(?:(?:, or |, | or ){NUMBER})*)", re.IGNORECASE)


def number(word: str) -> float:
    """'3', 'three', 'a' as a number."""
    word = word.casefold()
    if word in ("a", "an", "any"):
        return 1
    if word == "no":
        return 0
    return float(WORDS.index(word)) if word in WORDS else float(word)


class Size:
    """'fewer than 5', 'exactly one', '1, 2 or 3': a comparison with numbers. 'a' and 'any' mean at least one."""

    __slots__ = ("numbers", "op")

    def __init__(self, text: str) -> None:
        found = _SIZE.fullmatch(text.strip())
        if found is None:
            raise ValueError(text)
        listed = re.split(r", or |, | or ", found["list"])
        loose = found["op"] is None and listed[0].casefold() in ("a", "an", "any")
        self.op = "at least" if loose else (found["op"] or "exactly").casefold()
        self.numbers = [number(word) for word in listed]

    def fits(self, value: float) -> bool:
        """Whether a value is such a number."""
        first = self.numbers[0]
        match self.op:
            case "fewer than" | "less than" | "below" | "under":
                return value < first
            case "more than" | "over" | "above":
                return value > first
            case "at least":
                return value >= first
            case "at most":
                return value <= first
        return value in self.numbers


def gpus(units: int) -> float:
    """GPUs of units, to compare with the numbers of a sentence."""
    return units / GPU


def overfull(state: State, node: str, resource: str) -> bool:
    """Whether the pods that run on a node ask for more of a resource than it has."""
    machine = state.nodes.get(node)
    if machine is None:
        return False
    asks = [
        standing.workload.roles[pod.role].ask
        for standing in state.standings.values()
        for pod in standing.pods
        if pod.node == node
    ]
    asks += [leaving.ask for leaving in state.leaving.values() if leaving.pod.node == node]
    if resource.startswith("cpu"):
        return machine.cpu is not None and sum(ask.cpu for ask in asks) > machine.cpu
    if resource.startswith("pod") or resource.startswith("slot"):
        return machine.max_pods is not None and len(asks) > machine.max_pods
    if "gpu" in resource:
        held = view.held_by_device(state)
        return any(held[node, device.index] > GPU for device in machine.devices)
    return machine.ram is not None and sum(ask.ram for ask in asks) > machine.ram
