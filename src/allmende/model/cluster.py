"""The machines: devices, nodes, slices of devices, and the pods that hold them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from allmende.model.request import Ask


class NodeState(StrEnum):
    """What a node says of itself, or its operator of it."""

    READY = "ready"
    NOT_READY = "not_ready"
    CORDONED = "cordoned"


class Capacity(StrEnum):
    """How the node was bought."""

    OWNED = "owned"
    RESERVED = "reserved"
    ON_DEMAND = "on_demand"
    SPOT = "spot"


class Device(Struct, frozen=True, gc=False):
    """One GPU of a node; `memory` in MiB, 0 where it is not known; a lost one holds nothing."""

    index: int
    memory: int = 0
    healthy: bool = True
    uuid: str = ""


class Window(Struct, frozen=True, gc=False):
    """Maintenance from `start` to `end` (microseconds): nothing may run on the node in between."""

    start: int
    end: int


class Node(Struct, frozen=True, gc=False):
    """A machine. `cpu` (milli), `ram` (bytes) and `max_pods` are None where they are plenty.

    `slots` > 1: each GPU is offered as so many shared slots. `tenants` caps pods per GPU (0 = no cap).
    `closed`: why the scheduler itself sends it nothing new ("" = open). `only_for`: the one project it serves.
    """

    name: str
    devices: tuple[Device, ...] = ()
    model: str = ""
    cpu: int | None = None
    ram: int | None = None
    max_pods: int | None = None
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[str, ...] = ()
    state: NodeState = NodeState.READY
    slots: int = 0
    tenants: int = 0
    closed: str = ""
    only_for: str = ""
    maintenance: tuple[Window, ...] = ()
    pool: str = ""
    capacity: Capacity = Capacity.OWNED
    elastic: bool = False


class Slice(Struct, frozen=True, gc=False):
    """An exact part of one device: `units` of `GPU`, and `memory` MiB where the device's memory is known."""

    device: int
    units: int
    memory: int = 0


PodId = tuple[str, int, int, int]
"""(workload, attempt, role, rank): a pod is counted and released once, by this identity."""


class Pod(Struct, frozen=True, gc=False):
    """A pod at its place: which role and rank of which attempt, on which slices of which node."""

    workload: str
    attempt: int
    role: int
    rank: int
    node: str
    slices: tuple[Slice, ...] = ()

    @property
    def id(self) -> PodId:
        """The identity by which it is counted and released."""
        return (self.workload, self.attempt, self.role, self.rank)

    @property
    def units(self) -> int:
        """GPU units held."""
        return sum(part.units for part in self.slices)


class Leaving(Struct, frozen=True, gc=False):
    """A pod told to go whose room is not free yet, with what it asked for."""

    pod: Pod
    ask: Ask
    since: int
