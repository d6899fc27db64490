"""Random small clusters, and what is still free on them: the ground on which `states` places running work."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import msgspec

from allmende.model.cluster import Device, Node, NodeState, Pod, Slice
from allmende.model.units import GPU
from allmende.model.workload import Role

GIB = 1 << 30
PLENTY = 1 << 60


@dataclass
class Room:
    """What is still free on a node: units of each device, milli-CPU, bytes, pod slots."""

    node: Node
    devices: list[int]
    cpu: int
    ram: int
    pods: int

    def copy(self) -> Room:
        return Room(self.node, list(self.devices), self.cpu, self.ram, self.pods)


@dataclass
class Cluster:
    """Two to five nodes. `fine`: few small ones, for small work, so that many have to go for one. `scarce`: CPU,
    memory and pod slots are counted. `by_model`: guarantees are given by GPU model."""

    rng: Random
    models: tuple[str, ...] = ("",)
    levels: tuple[str, ...] = ()
    by_model: bool = False
    fine: bool = False
    scarce: bool = False
    rooms: dict[str, Room] = field(default_factory=dict)

    @classmethod
    def made(cls, rng: Random) -> Cluster:
        """A cluster with nothing on it."""
        models = rng.choice((("",), ("H100",), ("H100",), ("A100", "H100")))
        racks = rng.choice((0, 0, 2, 3))
        by_model = len(models) == 2 and rng.random() < 0.6
        found = cls(rng, models, ("rack",) if racks else (), by_model, rng.random() < 0.45, rng.random() < 0.35)
        for number in range(rng.randint(2, 3 if found.fine else 5)):
            node = found.node(f"n{number}", racks)
            found.rooms[node.name] = Room(
                node,
                [GPU if device.healthy else 0 for device in node.devices],
                PLENTY if node.cpu is None else node.cpu,
                PLENTY if node.ram is None else node.ram,
                PLENTY if node.max_pods is None else node.max_pods,
            )
        return found

    def node(self, name: str, racks: int) -> Node:
        rng = self.rng
        labels = [("rack", f"k{rng.randrange(racks)}")] if racks else []
        if rng.random() < 0.2:
            labels.append(("fast", "yes"))
        limited = self.scarce and rng.random() < 0.7
        gpus = rng.choice((2, 2, 3, 4) if self.fine else (1, 2, 2, 4, 4, 8))
        return Node(
            name=name,
            devices=tuple(Device(index, healthy=rng.random() > 0.02) for index in range(gpus)),
            model=rng.choice(self.models),
            cpu=rng.choice((4_000, 8_000, 16_000)) if limited else None,
            ram=rng.choice((16, 32, 64)) * GIB if limited and rng.random() < 0.5 else None,
            max_pods=rng.randint(2, 5) if limited and rng.random() < 0.6 else None,
            labels=tuple(labels),
            taints=("reserved",) if rng.random() < 0.06 else (),
            state=NodeState.CORDONED if rng.random() < 0.06 else NodeState.READY,
        )

    @property
    def largest(self) -> int:
        """GPUs of the largest node."""
        return max(len(room.devices) for room in self.rooms.values())

    def put_all(self, workload: str, roles: tuple[Role, ...]) -> tuple[Pod, ...] | None:
        """All pods of a workload's first attempt somewhere at random, or None and nothing is taken."""
        before = {name: room.copy() for name, room in self.rooms.items()}
        pods: list[Pod] = []
        for number, role in enumerate(roles):
            for rank in range(role.pods):
                pod = self.put(Pod(workload, 1, number, rank, ""), role)
                if pod is None:
                    self.rooms = before
                    return None
                pods.append(pod)
        return tuple(pods)

    def put(self, pod: Pod, role: Role) -> Pod | None:
        """The pod on some node with room, rarely on a cordoned one, or None."""
        rooms = [room for room in self.rooms.values() if room.node.state is NodeState.READY or self.rng.random() < 0.5]
        self.rng.shuffle(rooms)
        return next((placed for room in rooms if (placed := self.put_on(room, pod, role))), None)

    def put_on(self, room: Room, pod: Pod, role: Role) -> Pod | None:
        """The pod on this node, or None where it does not fit."""
        slices = self.slices(room, role)
        if slices is None:
            return None
        for part in slices:
            room.devices[part.device] -= part.units
        room.cpu -= role.ask.cpu
        room.ram -= role.ask.ram
        room.pods -= 1
        return msgspec.structs.replace(pod, node=room.node.name, slices=slices)

    def slices(self, room: Room, role: Role) -> tuple[Slice, ...] | None:
        """Devices for one pod, picked at random, or None where the node will not do."""
        ask, where = role.ask, role.where
        labels = dict(room.node.labels)
        if (where.models and room.node.model not in where.models) or room.pods < 1 or room.cpu < ask.cpu:
            return None
        if room.ram < ask.ram or any(labels.get(key) != value for key, value in where.select):
            return None
        if any(taint not in where.tolerates for taint in room.node.taints):
            return None
        if ask.whole:
            free = [index for index, left in enumerate(room.devices) if left == GPU]
            self.rng.shuffle(free)
            return tuple(Slice(index, GPU) for index in sorted(free[: ask.whole])) if len(free) >= ask.whole else None
        if ask.share:
            fits = [index for index, left in enumerate(room.devices) if left >= ask.share]
            return (Slice(self.rng.choice(fits), ask.share),) if fits else None
        return ()
