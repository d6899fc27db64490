"""The naive meaning of placing a gang: try everything.

A *room* is what one open node will have left for the claimant: what it holds now, less the pods that stay, less the
places held for others. Pods that are leaving, and those the question supposes to be gone, hold nothing there.

A gang fits when some choice of (how many pods of each role, a room for each pod, a device for each share) exists with:
- at least `least` and at most the wanted pods of every role, and `minimum` pods in all (more only if the role minima
  need more);
- whole GPUs on devices that nothing else touches; a share on one device beside other shares, at most one GPU in sum;
- CPU, memory and pod slots of the node enough for all its pods (None = plenty);
- every pod on a node of an allowed model, with every selected label, whose taints it tolerates;
- with `same`: all pods in one domain of that level. A domain is known by its labels from the widest level down, so
  equal names at different levels, or under different parents, are different domains.

Nothing here is clever. Equal pods are interchangeable, and so are the untouched devices of a node: only those
permutations are left out. Asks by GPU memory or slots, whole nodes and `spread` are outside this reference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

from allmende.model.cluster import Leaving, Node, NodeState, Pod, PodId
from allmende.model.request import Ask, Where
from allmende.model.standing import Standing
from allmende.model.tenancy import Project
from allmende.model.units import GPU


class Facts(Protocol):
    """The part of a State that the references read: facts only, never the Index."""

    levels: tuple[str, ...]
    projects: dict[str, Project]
    nodes: dict[str, Node]
    standings: dict[str, Standing]
    leaving: dict[PodId, Leaving]
    holds: dict[str, tuple[Pod, ...]]


@dataclass(frozen=True)
class Room:
    """What is left on one node: `devices` are the free units of each healthy GPU."""

    node: str
    model: str
    labels: Mapping[str, str]
    taints: tuple[str, ...]
    devices: tuple[int, ...]
    cpu: int | None
    ram: int | None
    pods: int | None


@dataclass(frozen=True)
class Placed:
    """One pod of a placement."""

    role: int
    node: str
    model: str
    units: int


Placement = tuple[Placed, ...]


def is_open(node: Node, project: str) -> bool:
    """Whether the node takes new pods of the project at all."""
    return node.state is NodeState.READY and not node.closed and node.only_for in ("", project)


def rooms(facts: Facts, claimant: str, gone: Collection[PodId] = (), *, leaving_are_gone: bool = True) -> list[Room]:
    """What every open node will have left for the claimant once the pods of `gone`, and those leaving, have left."""
    stay: list[tuple[Pod, Ask]] = []
    for standing in facts.standings.values():
        roles = standing.workload.roles
        stay += [(pod, roles[pod.role].ask) for pod in standing.pods if pod.id not in gone]
        if standing.workload.id != claimant:
            stay += [(pod, roles[pod.role].ask) for pod in facts.holds.get(standing.workload.id, ())]
    if not leaving_are_gone:
        stay += [(leaving.pod, leaving.ask) for leaving in facts.leaving.values()]
    project = facts.standings[claimant].workload.project
    return [
        _room(node, [(pod, ask) for pod, ask in stay if pod.node == node.name])
        for _, node in sorted(facts.nodes.items())
        if is_open(node, project)
    ]


def _room(node: Node, stay: list[tuple[Pod, Ask]]) -> Room:
    free = {device.index: GPU for device in node.devices if device.healthy}
    for pod, _ in stay:
        for part in pod.slices:
            if part.device in free:
                free[part.device] -= part.units
    return Room(
        node=node.name,
        model=node.model,
        labels=dict(node.labels),
        taints=node.taints,
        devices=tuple(free[index] for index in sorted(free)),
        cpu=None if node.cpu is None else node.cpu - sum(ask.cpu for _, ask in stay),
        ram=None if node.ram is None else node.ram - sum(ask.ram for _, ask in stay),
        pods=None if node.max_pods is None else node.max_pods - len(stay),
    )


def least(standing: Standing) -> list[int]:
    """What each role needs now: pods that came to their end are not missed."""
    return [min(role.least, wanted) for role, wanted in zip(standing.workload.roles, standing.wanted, strict=True)]


def compositions(standing: Standing) -> Iterator[tuple[int, ...]]:
    """Every number of pods per role with which the workload may start."""
    total = max(standing.minimum, sum(least(standing)))
    ranges = [range(low, wanted + 1) for low, wanted in zip(least(standing), standing.wanted, strict=True)]
    yield from (counts for counts in product(*ranges) if sum(counts) == total)


def placements(standing: Standing, left: list[Room], levels: tuple[str, ...]) -> Iterator[Placement]:
    """Every way to place the gang's minimum, up to the order of equal pods and of untouched devices."""
    for domain in _domains(standing.workload.same, left, levels):
        for counts in compositions(standing):
            wish = [role for role, count in enumerate(counts) for _ in range(count)]
            yield from _each(standing, wish, domain, 0)


def place(
    standing: Standing,
    left: list[Room],
    levels: tuple[str, ...],
    good: Callable[[Placement], bool] = lambda placement: True,
) -> Placement | None:
    """Some placement of the gang's minimum that is good, or None where there is none."""
    return next((found for found in placements(standing, left, levels) if good(found)), None)


def _domains(level: str, left: list[Room], levels: tuple[str, ...]) -> list[list[Room]]:
    """The rooms of each domain of the level; without a level all rooms are one domain."""
    if not level:
        return [left]
    if level == "node":
        return [[room] for room in left]
    above = levels[: levels.index(level) + 1]
    found: dict[tuple[str, ...], list[Room]] = {}
    for room in left:
        if all(key in room.labels for key in above):
            found.setdefault(tuple(room.labels[key] for key in above), []).append(room)
    return [found[key] for key in sorted(found)]


def _each(standing: Standing, wish: list[int], left: list[Room], lowest: int) -> Iterator[Placement]:
    """Every way to place the roles of `wish`, the first of them in no room before `lowest`."""
    if not wish:
        yield ()
        return
    role, later = wish[0], wish[1:]
    ask, where = standing.workload.roles[role].ask, standing.workload.roles[role].where
    for at in range(lowest, len(left)):
        for after in _put(ask, where, left[at]):
            placed = Placed(role, after.node, after.model, ask.whole * GPU + ask.share)
            following = at if later and later[0] == role else 0  # equal pods: rooms in rising order
            for rest in _each(standing, later, [*left[:at], after, *left[at + 1 :]], following):
                yield (placed, *rest)


def _put(ask: Ask, where: Where, room: Room) -> Iterator[Room]:
    """The room after one pod was put there, in every way that differs; nothing where it does not fit."""
    if ask.memory or ask.slots or ask.exclusive:
        raise NotImplementedError("outside this reference")
    if where.models and room.model not in where.models:
        return
    if any(room.labels.get(key) != value for key, value in where.select):
        return
    if any(taint not in where.tolerates for taint in room.taints):
        return
    needed = ((ask.cpu, room.cpu), (ask.ram, room.ram), (1, room.pods))
    if any(have is not None and need > have for need, have in needed):
        return
    rest = replace(
        room,
        cpu=None if room.cpu is None else room.cpu - ask.cpu,
        ram=None if room.ram is None else room.ram - ask.ram,
        pods=None if room.pods is None else room.pods - 1,
    )
    for devices in _devices(ask, room.devices):
        yield replace(rest, devices=devices)


def _devices(ask: Ask, devices: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """What may be left of the devices; devices with equally much left are interchangeable."""
    if ask.whole:
        whole = [at for at, free in enumerate(devices) if free == GPU]
        if len(whole) >= ask.whole:
            taken = set(whole[: ask.whole])
            yield tuple(0 if at in taken else free for at, free in enumerate(devices))
    elif ask.share:
        for level in sorted({free for free in devices if free >= ask.share}):
            at = devices.index(level)
            yield (*devices[:at], level - ask.share, *devices[at + 1 :])
    else:
        yield devices
