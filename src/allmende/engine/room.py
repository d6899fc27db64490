"""The room on one node: what runs there, what is leaving, what is held for somebody, what is left."""

from __future__ import annotations

from typing import Final

from allmende.model.cluster import Node, NodeState, Pod, PodId, Slice
from allmende.model.request import Ask
from allmende.model.units import GPU

RUN: Final = 0  # pods that run (or are assigned)
LEAVE: Final = 1  # pods told to go, still there
HELD: Final = 2  # places kept for a workload until LEAVE has left
PLENTY: Final = 1 << 60  # of CPU, memory or pod slots where the node states none


class Room:
    """Occupation of one node, per device and in all, in the three modes RUN, LEAVE and HELD.

    What others may take is capacity - run - max(leave, held): it is there now and will still be there when
    those who wait for the leaving pods have come. `later` ignores the leaving pods. `stamp` counts changes.
    """

    __slots__ = (
        "alone",
        "count",
        "cpu",
        "devices",
        "free",
        "holders",
        "mem",
        "node",
        "partial",
        "pods",
        "pos",
        "ram",
        "sound",
        "stamp",
        "tenants",
        "units",
    )

    def __init__(self, node: Node) -> None:
        self.pos = -1
        self.stamp = 0
        self.pods: dict[PodId, Pod] = {}
        self.holders: dict[str, int] = {}
        self.cpu = [0, 0, 0]
        self.ram = [0, 0, 0]
        self.count = [0, 0, 0]
        self.alone = [0, 0, 0]
        size = max((device.index for device in node.devices), default=-1) + 1
        self.units = [[0] * size for _ in range(3)]
        self.mem = [[0] * size for _ in range(3)]
        self.tenants = [0] * size
        self.devices: list[int] = []
        self.sound: list[bool] = []
        self.set_node(node)

    def set_node(self, node: Node) -> None:
        """Take over new facts about the node; what is on it stays counted, also on devices that went."""
        self.node = node
        self._reach(max((device.index for device in node.devices), default=-1) + 1)
        size = len(self.tenants)
        self.devices = [0] * size  # memory of each sound device in MiB, 0 = unknown
        self.sound = [False] * size
        for device in node.devices:
            self.devices[device.index] = device.memory
            self.sound[device.index] = device.healthy
        self.recount()

    def _reach(self, size: int) -> None:
        """Count at least so many devices: pods may stand on some that the node no longer lists."""
        for row in (*self.units, *self.mem, self.tenants):
            row.extend([0] * (size - len(row)))
        self.devices = [*self.devices, *[0] * (size - len(self.devices))]
        self.sound = [*self.sound, *[False] * (size - len(self.sound))]

    def fork(self) -> Room:
        """A copy of its own."""
        other = Room.__new__(Room)
        other.pos, other.node, other.free, other.partial, other.stamp = (
            self.pos,
            self.node,
            self.free,
            self.partial,
            self.stamp,
        )
        other.devices, other.sound = self.devices, self.sound  # replaced as wholes, never changed in place
        other.pods, other.holders = dict(self.pods), dict(self.holders)
        other.cpu, other.ram, other.count, other.alone = self.cpu[:], self.ram[:], self.count[:], self.alone[:]
        other.units = [row[:] for row in self.units]
        other.mem = [row[:] for row in self.mem]
        other.tenants = self.tenants[:]
        return other

    def recount(self) -> None:
        """Count again the devices that are wholly and partly free."""
        self.free = self.partial = 0
        for index in range(len(self.sound)):
            left = self.left(index)
            if left == GPU:
                self.free += 1
            elif left > 0:
                self.partial += 1

    @property
    def open(self) -> bool:
        """Whether new pods may come."""
        return self.node.state is NodeState.READY and not self.node.closed

    def left(self, device: int) -> int:
        """GPU units of a device that others may take."""
        if not self.sound[device]:
            return 0
        run, leave, held = self.units
        gone = leave[device] if leave[device] > held[device] else held[device]
        rest = GPU - run[device] - gone
        return rest if rest > 0 else 0

    def left_later(self, device: int) -> int:
        """GPU units of a device once the leaving pods have left."""
        return max(0, GPU - self.units[RUN][device] - self.units[HELD][device]) if self.sound[device] else 0

    def left_memory(self, device: int, later: bool = False) -> int:
        """MiB of a device that others may take; 0 where its memory is not known."""
        run, leave, held = self.mem
        gone = held[device] if later else max(leave[device], held[device])
        return max(0, self.devices[device] - run[device] - gone) if self.sound[device] else 0

    def bounds(self, later: bool = False) -> tuple[int, int, int]:
        """(milli-CPUs, bytes, pod slots) that others may take; PLENTY where the node states none."""
        node = self.node
        found = []
        for capacity, used in ((node.cpu, self.cpu), (node.ram, self.ram), (node.max_pods, self.count)):
            if capacity is None:
                found.append(PLENTY)
            else:
                gone = used[HELD] if later else max(used[LEAVE], used[HELD])
                found.append(max(0, capacity - used[RUN] - gone))
        return found[0], found[1], found[2]

    @property
    def empty(self) -> bool:
        """Whether no pod is there, leaving ones and holds included."""
        return not any(self.count)

    def put(self, mode: int, pod: Pod, ask: Ask, sign: int) -> None:
        """Count a pod in (`sign` 1) or out (-1) in a mode."""
        self.stamp += 1
        if pod.slices and max(part.device for part in pod.slices) >= len(self.sound):
            self._reach(max(part.device for part in pod.slices) + 1)
        self.cpu[mode] += sign * ask.cpu
        self.ram[mode] += sign * ask.ram
        self.count[mode] += sign
        if ask.exclusive:
            self.alone[mode] += sign
        units, mem = self.units[mode], self.mem[mode]
        for part in pod.slices:
            device = part.device
            before = self.left(device)
            units[device] += sign * part.units
            mem[device] += sign * part.memory
            self.tenants[device] += sign
            after = self.left(device)
            if before != after:
                self.free += (after == GPU) - (before == GPU)
                self.partial += (0 < after < GPU) - (0 < before < GPU)
        if mode == RUN:
            if sign > 0:
                self.pods[pod.id] = pod
            else:
                del self.pods[pod.id]
        elif mode == HELD:
            held = self.holders.get(pod.workload, 0) + sign
            if held:
                self.holders[pod.workload] = held
            else:
                del self.holders[pod.workload]

    def ready_for(self, pod: Pod, ask: Ask) -> bool:
        """Whether the place held for `pod` is really free now (nothing leaving stands on it)."""
        node = self.node
        if not self.open:
            return False
        run, leave, _ = self.units
        if any(run[p.device] + leave[p.device] + p.units > GPU or not self.sound[p.device] for p in pod.slices):
            return False
        if any(
            p.memory and self.mem[RUN][p.device] + self.mem[LEAVE][p.device] + p.memory > self.devices[p.device]
            for p in pod.slices
        ):
            return False
        if ask.exclusive and (self.count[RUN] or self.count[LEAVE]):
            return False
        for capacity, used, asked in (
            (node.cpu, self.cpu, ask.cpu),
            (node.ram, self.ram, ask.ram),
            (node.max_pods, self.count, 1),
        ):
            if capacity is not None and used[RUN] + used[LEAVE] + asked > capacity:
                return False
        return True


def slots(room: Room, ask: Ask, want: int, later: bool = False) -> int:
    """How many pods of `ask`, at most `want`, the room takes (exact for equal pods)."""
    node = room.node
    if ask.exclusive:
        clear = not (room.count[RUN] or room.count[HELD]) if later else room.empty
        return min(want, 1) if clear and (ask.whole == 0 or _free(room, later) >= ask.whole) else 0
    if room.alone[RUN] or room.alone[HELD] or (room.alone[LEAVE] and not later):
        return 0
    most = want
    if node.cpu is not None or node.ram is not None or node.max_pods is not None:
        cpu, ram, pods = room.bounds(later)
        most = min(most, pods)
        if ask.cpu:
            most = min(most, cpu // ask.cpu)
        if ask.ram:
            most = min(most, ram // ask.ram)
        if most <= 0:
            return 0
    if ask.whole:
        return min(most, _free(room, later) // ask.whole) if not node.slots else 0
    if ask.share or ask.memory or ask.slots:
        return _shares(room, ask, most, later)
    return most


def _free(room: Room, later: bool) -> int:
    if not later:
        return room.free
    run, _, held = room.units
    return sum(1 for d in range(len(room.sound)) if room.sound[d] and not run[d] and not held[d])


def _shares(room: Room, ask: Ask, most: int, later: bool) -> int:
    """Slots for parts of devices; devices are independent, so counting each to its brim is exact."""
    node = room.node
    if ask.slots:
        if not node.slots:
            return 0
        part = GPU // node.slots
        per = [_left(room, d, later) // part for d in range(len(room.sound))]
        if not ask.distinct or ask.slots == 1:
            return min(most, sum(per) // ask.slots)
        fit = 0
        while fit < most and sum(min(p, fit + 1) for p in per) >= ask.slots * (fit + 1):
            fit += 1
        return fit
    if node.slots:
        return 0
    total = 0
    for device in range(len(room.sound)):
        total += _on_device(room, device, ask, later)
        if total >= most:
            return most
    return total


def _left(room: Room, device: int, later: bool) -> int:
    return room.left_later(device) if later else room.left(device)


def _on_device(room: Room, device: int, ask: Ask, later: bool) -> int:
    """Pods of a share or memory ask that one device takes."""
    left = _left(room, device, later)
    if left <= 0:
        return 0
    memory = room.devices[device]
    if ask.memory:
        if not memory:
            return 0
        fit = room.left_memory(device, later) // ask.memory
        fit = min(fit, left // max(1, ask.memory * GPU // memory))
    else:
        fit = left // ask.share
        if memory:
            fit = min(fit, room.left_memory(device, later) // max(1, ask.share * memory // GPU))
    if room.node.tenants:
        fit = min(fit, room.node.tenants - room.tenants[device])
    return max(0, fit)


def choose(room: Room, ask: Ask, later: bool = False) -> tuple[Slice, ...] | None:
    """The slices one pod of `ask` gets: lowest free devices; for a share the fullest device that holds it. None = no
    room."""
    if slots(room, ask, 1, later) < 1:
        return None
    devices = range(len(room.sound))
    if ask.exclusive:
        return tuple(Slice(d, GPU, room.devices[d]) for d in devices if room.sound[d])
    if ask.whole:
        free = [d for d in devices if _left(room, d, later) == GPU]
        if later:  # room that is free already before room that is being left
            free.sort(key=lambda d: room.units[LEAVE][d] > 0)
        return tuple(Slice(d, GPU, room.devices[d]) for d in sorted(free[: ask.whole]))
    if ask.slots:
        return _choose_slots(room, ask, later)
    if ask.share or ask.memory:
        return _choose_share(room, ask, later)
    return ()


def _choose_share(room: Room, ask: Ask, later: bool) -> tuple[Slice, ...]:
    fits = [(_left(room, d, later), d) for d in range(len(room.sound)) if _on_device(room, d, ask, later)]
    device = min(fits)[1]
    memory = room.devices[device]
    if ask.memory:
        return (Slice(device, max(1, ask.memory * GPU // memory), ask.memory),)
    return (Slice(device, ask.share, max(1, ask.share * memory // GPU) if memory else 0),)


def _choose_slots(room: Room, ask: Ask, later: bool) -> tuple[Slice, ...]:
    part = GPU // room.node.slots
    memory = room.devices
    order = sorted((_left(room, d, later), d) for d in range(len(room.sound)) if _left(room, d, later) >= part)
    if ask.distinct:
        return tuple(Slice(d, part, memory[d] // room.node.slots) for d in sorted(d for _, d in order[: ask.slots]))
    found: list[Slice] = []
    wanted = ask.slots
    for left, device in order:
        n = min(wanted, left // part)
        found.append(Slice(device, n * part, n * memory[device] // room.node.slots))
        wanted -= n
        if not wanted:
            break
    return tuple(found)
