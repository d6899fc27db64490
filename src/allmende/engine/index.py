"""What is derived from the facts, so that a pass costs what changed: rooms, masks, uses, queues."""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING

from allmende.engine.line import Entry, Queue
from allmende.engine.mask import Masks, order_key
from allmende.engine.memory import Memory
from allmende.engine.room import HELD, LEAVE, RUN, Room
from allmende.engine.shape import Key, Shape, key_of
from allmende.engine.tree import Branch, Tree
from allmende.model.cluster import Leaving, NodeState, Pod
from allmende.model.request import Ask
from allmende.model.standing import Phase, Standing
from allmende.model.workload import After, Workload

if TYPE_CHECKING:
    from allmende.engine.state import State


class Index:
    """Derived from the facts alone: `Index.built(state)` gives an equal one after every entry.

    `parked`: queued, but a dependency is not met. `growing`: running, more pods are wanted. `short`: running with
    fewer pods than their minimum; `over`: with more than are wanted. `suspects`: nodes with a lost GPU or not ready.
    `unbound`: assigned, not yet seen running.
    `touched`: workloads whose held places should be looked at. `ends`: heap of (end of the time limit, id, attempt).
    `memory`: what earlier passes learnt and need not try again.
    `stale`: nodes came or went, or settings changed; it is built anew before the next pass.
    """

    __slots__ = (
        "arrays",
        "ends",
        "gave_way",
        "growing",
        "leaving_of",
        "masks",
        "memory",
        "over",
        "parked",
        "queues",
        "rooms",
        "shapes",
        "short",
        "stale",
        "suspects",
        "touched",
        "tree",
        "unbound",
        "waited_for",
    )

    def __init__(self) -> None:
        self.rooms: dict[str, Room] = {}
        self.masks = Masks()
        self.tree = Tree()
        self.shapes: dict[Key, Shape] = {}
        self.queues: dict[Branch, Queue] = {}
        self.parked: dict[str, None] = {}
        self.waited_for: dict[str, dict[str, None]] = {}
        self.short: dict[str, None] = {}
        self.over: dict[str, None] = {}
        self.unbound: dict[str, None] = {}
        self.suspects: dict[str, None] = {}
        self.arrays: dict[str, int] = {}
        self.gave_way: dict[str, int] = {}
        self.growing: dict[str, None] = {}
        self.leaving_of: dict[str, int] = {}
        self.touched: dict[str, None] = {}
        self.ends: list[tuple[int, str, int]] = []
        self.memory = Memory()
        self.stale = False

    @classmethod
    def built(cls, state: State) -> Index:
        """The index of these facts."""
        index = cls()
        index.tree = Tree(state.projects.values())
        for name in sorted(state.nodes, key=order_key):
            index.rooms[name] = Room(state.nodes[name])
            index.suspect(name)
        for standing in state.standings.values():
            for pod in standing.pods:
                index.occupy(RUN, pod, standing.workload, 1)
            index.enter(state, standing)
        for leaving in state.leaving.values():
            index.leave(leaving, 1)
        for name, pods in state.holds.items():
            for pod in pods:
                index.occupy(HELD, pod, state.standings[name].workload, 1)
            index.touched[name] = None
        index.masks = Masks(index.rooms.values(), state.levels)
        return index

    def fork(self) -> Index:
        """A copy of its own; shapes, being immutable, are shared."""
        other = Index()
        other.tree = self.tree.fork()
        other.rooms = {name: room.fork() for name, room in self.rooms.items()}
        other.masks = self.masks.fork(list(other.rooms.values()))
        other.shapes = self.shapes
        other.queues = {other.tree.branches[b.name]: queue.fork() for b, queue in self.queues.items()}
        for name in (
            "parked",
            "growing",
            "short",
            "over",
            "unbound",
            "suspects",
            "arrays",
            "gave_way",
            "leaving_of",
            "touched",
        ):
            setattr(other, name, dict(getattr(self, name)))
        other.waited_for = {name: dict(ids) for name, ids in self.waited_for.items()}
        other.ends = list(self.ends)
        other.stale = self.stale
        return other

    def suspect(self, name: str) -> None:
        """Note whether a node needs looking at in each pass."""
        node = self.rooms[name].node
        if node.state is NodeState.NOT_READY or any(not device.healthy for device in node.devices):
            self.suspects[name] = None
        else:
            self.suspects.pop(name, None)

    # -- what stands where ------------------------------------------------------------------------------------

    def put(self, room: Room, mode: int, pod: Pod, ask: Ask, sign: int) -> None:
        """Count a pod in or out of its node's room, and keep the masks true."""
        masks = self.masks
        if room.pos < 0 or not room.open:
            room.put(mode, pod, ask, sign)
        else:
            free, partial = room.free, room.partial > 0
            room.put(mode, pod, ask, sign)
            if room.free != free:
                masks.move(room, free)
            if (room.partial > 0) != partial:
                masks.partial ^= 1 << room.pos
        if mode == LEAVE and room.pos >= 0:
            bit = 1 << room.pos
            masks.leaving = masks.leaving | bit if room.count[LEAVE] else masks.leaving & ~bit
        if sign < 0:
            if room.pos >= 0:
                masks.grown |= 1 << room.pos
            if room.holders:
                self.touched.update(dict.fromkeys(room.holders))

    def occupy(self, mode: int, pod: Pod, workload: Workload, sign: int) -> None:
        """Count a running pod or a held place in (1) or out (-1), and what its project uses."""
        room = self.rooms.get(pod.node)
        if room is not None:
            self.put(room, mode, pod, workload.roles[pod.role].ask, sign)
        self.charge(mode, pod, workload, sign)

    def charge(self, mode: int, pod: Pod, workload: Workload, sign: int) -> None:
        """Count what a pod, or a place held for one, uses in its project and above."""
        units = memory = 0
        for part in pod.slices:
            units += part.units
            memory += part.memory
        room = self.rooms.get(pod.node)
        model = room.node.model if room is not None else ""
        branch = self.tree.leaf(workload.project)
        branch.charge(sign * units, model, sign * memory, workload.user)
        if mode == HELD:
            for step in branch.path:
                step.held += sign * units

    def leave(self, leaving: Leaving, sign: int) -> None:
        """Count a leaving pod in or out: it fills its node, and uses nothing of its project any more."""
        pod = leaving.pod
        room = self.rooms.get(pod.node)
        if room is not None:
            self.put(room, LEAVE, pod, leaving.ask, sign)
        count = self.leaving_of.get(pod.workload, 0) + sign
        if count:
            self.leaving_of[pod.workload] = count
        else:
            del self.leaving_of[pod.workload]

    # -- who waits and who runs -------------------------------------------------------------------------------

    def shape(self, key: Key) -> Shape:
        """The interned shape of a key."""
        found = self.shapes.get(key)
        if found is None:
            found = self.shapes[key] = Shape(key)
        return found

    def place_in_line(self, standing: Standing) -> tuple[Branch, Shape, str, Entry, str]:
        """Where a waiting or short workload stands: project, shape, gate, entry, and its id if it wants to grow."""
        workload = standing.workload
        branch = self.tree.leaf(workload.project)
        if standing.phase is Phase.QUEUED:
            shape = self.shape(key_of(standing))
            entry = (-workload.priority, standing.submitted, workload.id)
            return branch, shape, gate_of(branch, workload), entry, ""
        have = [0] * len(workload.roles)
        for pod in standing.pods:
            have[pod.role] += 1
        roles = tuple(
            (role.ask, role.where, max(0, n - h), max(0, least - h))
            for role, n, least, h in zip(workload.roles, standing.wanted, standing.least, have, strict=True)
        )
        least = max(1, standing.minimum - len(standing.pods))
        key = (roles, least, workload.elastic, workload.same, workload.prefer_same, workload.spread)
        since = standing.submitted if standing.grow_since is None else standing.grow_since
        return branch, self.shape(key), f"grow {workload.id}", (-workload.priority, since, workload.id), workload.id

    def enter(self, state: State, standing: Standing) -> None:
        """Count a workload into the queue or among the running."""
        workload = standing.workload
        if standing.phase is Phase.RUNNING:
            self._running(standing, 1)
            if len(standing.pods) >= sum(standing.wanted):
                return
        elif self._waits_for_others(state, workload):
            self.parked[workload.id] = None
            return
        branch, shape, gate, entry, grows = self.place_in_line(standing)
        queue = self.queues.get(branch)
        if queue is None:
            queue = self.queues[branch] = Queue()
        queue.add(shape, gate, entry, grows)
        if grows:
            self.growing[grows] = None

    def exit(self, standing: Standing) -> None:
        """Take a workload out of wherever `enter` put it."""
        workload = standing.workload
        if standing.phase is Phase.RUNNING:
            self._running(standing, -1)
            if len(standing.pods) >= sum(standing.wanted):
                return
        elif workload.id in self.parked:
            del self.parked[workload.id]
            for other in workload.after:
                self.waited_for.get(other.workload, {}).pop(workload.id, None)
                if not self.waited_for.get(other.workload, True):
                    del self.waited_for[other.workload]
            return
        branch, shape, gate, entry, grows = self.place_in_line(standing)
        if grows:
            del self.growing[grows]
        queue = self.queues[branch]
        queue.remove(shape, gate, entry)
        if not queue.lines:
            del self.queues[branch]

    def _running(self, standing: Standing, sign: int) -> None:
        workload = standing.workload
        branch = self.tree.leaf(workload.project)
        branch.changed()
        count = branch.priorities.get(workload.priority, 0) + sign
        if count:
            branch.priorities[workload.priority] = count
        else:
            del branch.priorities[workload.priority]
        if standing.gave_way_to:
            count = self.gave_way.get(standing.gave_way_to, 0) + sign
            if count:
                self.gave_way[standing.gave_way_to] = count
            else:
                del self.gave_way[standing.gave_way_to]
        users = branch.user_running
        users[workload.user] = users.get(workload.user, 0) + sign
        if workload.throttle:
            self.arrays[workload.array] = self.arrays.get(workload.array, 0) + sign
        if sign > 0:
            branch.workloads[workload.id] = None
            if not standing.holds_together(standing.pods):
                self.short[workload.id] = None
            if len(standing.pods) > sum(standing.wanted):
                self.over[workload.id] = None
            if not standing.bound:
                self.unbound[workload.id] = None
            if workload.limit is not None and standing.started is not None:
                heappush(self.ends, (standing.started + workload.limit, workload.id, standing.attempt))
        else:
            del branch.workloads[workload.id]
            self.short.pop(workload.id, None)
            self.over.pop(workload.id, None)
            self.unbound.pop(workload.id, None)

    def _waits_for_others(self, state: State, workload: Workload) -> bool:
        waits = False
        for other in workload.after:
            if not met(state, other.workload, other.when):
                waits = True
                self.waited_for.setdefault(other.workload, {})[workload.id] = None
        return waits


def met(state: State, other: str, when: After) -> bool:
    """Whether a dependency is met. A workload that nobody knows yet is waited for."""
    outcome = state.outcomes.get(other)
    if outcome is None:
        return False
    return when is After.ANY or outcome.ok is (when is After.OK)


def gate_of(branch: Branch, workload: Workload) -> str:
    """What else may stop this workload and not its likes: its user's limits, its array's throttle, no borrowing."""
    gate = "" if workload.borrow else "own "
    project = branch.project
    if project.running_per_user is not None or project.units_per_user is not None:
        gate += f"user {workload.user} "
    if workload.throttle:
        gate += f"array {workload.array}"
    return gate
