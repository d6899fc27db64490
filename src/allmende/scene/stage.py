"""A scene set up in the simulated world: what stands at its beginning, and every step put down for its moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from msgspec.structs import replace

from allmende.engine.apply import settle
from allmende.engine.room import RUN, Room, choose
from allmende.model.advice import settings_advice
from allmende.model.cluster import NodeState, Pod, Slice
from allmende.model.decision import Grow, Start
from allmende.model.event import (
    Cancelled,
    Checkpointed,
    Ended,
    Event,
    LevelsSet,
    NodeGone,
    NodeSet,
    PodEnded,
    PodGone,
    PodLost,
    PolicySet,
    ProjectSet,
    Resized,
    Submitted,
    Ticked,
    Up,
)
from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.units import GPU
from allmende.scene import view
from allmende.scene.record import Record
from allmende.scene.value import (
    Cancel,
    End,
    EndPods,
    FailAtBind,
    Report,
    Resize,
    Restart,
    Running,
    Scene,
    SetNode,
    SetProject,
    Step,
    Submit,
)
from allmende.sim.world import World

Act = Callable[[World], Iterable[Event]]


def stage(scene: Scene, record: Record, *, checked: bool = True) -> World:
    """The world at the scene's beginning, with everything that will happen on its agenda.

    Raises Mistake where what is said to run at the beginning has no room.
    """
    world = World(checked=checked, recreate=scene.recreate)
    first = min([scene.origin, *(running.started for running in scene.running)])
    world.now = first
    world.enter(PolicySet(first, scene.policy))
    world.enter(LevelsSet(first, scene.levels))
    for node in scene.nodes:
        world.enter(NodeSet(first, node))
    for project in scene.projects:
        world.enter(ProjectSet(first, project))
    _run_at_first(scene, world)
    settle(world.state)  # the picture of what stands was made long ago: no pass of the scene pays for it
    world.now = scene.origin
    record.warnings_at_setup += map(str, settings_advice(scene.projects, view.capacity(scene.nodes), {}))
    record.begin(world)
    world.at(scene.origin, Ticked(scene.origin))  # the engine looks at what stands, whether or not anything happens
    for step in scene.steps:
        if isinstance(step, Submit) and step.runs is not None:
            world.work[step.workload.id] = step.runs
        world.at(step.at, _act(step, record))
    return world


def _run_at_first(scene: Scene, world: World) -> None:
    """Let the workloads that stand at the beginning start at their times, at their places."""
    rooms = {node.name: Room(node) for node in scene.nodes}
    for running in sorted(scene.running, key=lambda each: each.started):
        workload, at = running.workload, running.started
        pods = _places(running, rooms)
        world.now = at
        world.enter(Submitted(at, workload))
        world.enter(Start(at, workload.id, pods))
        if running.ends is not None:
            world.work[workload.id] = running.ends - at
        world.enter(Up(at, workload.id))
        world.answer()


def _places(running: Running, rooms: dict[str, Room]) -> tuple[Pod, ...]:
    """Exact places: the GPUs that are named, else what the engine would choose; the least of each role first."""
    workload = running.workload
    ranks = iter(_ranks(running))
    devices = list(running.devices)
    shared = [index for index, count in running.per_device for _ in range(count)]
    found = []
    for name, count in running.places:
        room = rooms[name]
        for _ in range(count):
            role, rank = next(ranks)
            ask = workload.roles[role].ask
            slices: tuple[Slice, ...] | None
            if ask.whole and devices:
                mine, devices = devices[: ask.whole], devices[ask.whole :]
                slices = tuple(Slice(device, GPU, room.devices[device]) for device in mine)
            elif ask.slots and shared and room.node.slots:
                device = shared.pop(0)
                part = GPU // room.node.slots
                slices = (Slice(device, ask.slots * part, room.devices[device] * ask.slots // room.node.slots),)
            else:
                slices = choose(room, ask)
            if slices is None:
                raise Mistake(
                    MistakeCode.CONTRADICTION, workload.id, f"running on {name}", "give it room", "has no room"
                )
            pod = Pod(workload.id, 1, role, rank, name, slices)
            room.put(RUN, pod, ask, 1)
            found.append(pod)
    return tuple(found)


def _ranks(running: Running) -> list[tuple[int, int]]:
    """(role, rank) of every pod, the least of each role first."""
    roles = list(enumerate(running.workload.roles))
    least = [(i, rank) for i, role in roles for rank in range(role.least)]
    return least + [(i, rank) for i, role in roles for rank in range(role.least, role.pods)]


def _act(step: Step, record: Record) -> Event | Act:
    """What a step of the scene means for the world."""
    match step:
        case Submit():
            return Submitted(step.at, step.workload)
        case End():
            return Ended(step.at, step.workload, step.ok)
        case Cancel():
            return _cancel(step)
        case SetNode():
            return lambda world: _set_node(step, world)
        case NodeGone() | LevelsSet() | Checkpointed():
            return step
        case SetProject():
            return lambda world: _set_project(step, world, record)
        case Resize():
            return lambda world: _resize(step, world)
        case EndPods():
            return lambda world: _end_pods(step, world)
        case Report():
            return lambda world: _report(step, world)
        case FailAtBind():
            return lambda world: _fail_at_bind(step, world)
        case Restart():
            return lambda world: _restart(step, world)
    assert_never(step)


def _cancel(step: Cancel) -> Event | Act:
    if step.unreported:
        return lambda world: world.cancel_unreported(step.workload)
    return Cancelled(step.at, step.workload)


def _set_node(step: SetNode, world: World) -> Iterable[Event]:
    known = world.state.nodes.get(step.node.name)
    closed = step.node.closed if step.reopen or known is None else known.closed
    yield NodeSet(step.at, replace(step.node, closed=closed))
    if step.drained:
        for pod in [pod for pod in view.present_pods(world.state) if pod.node == step.node.name]:
            yield PodLost(step.at, pod.id, "its node is drained")


def _set_project(step: SetProject, world: World, record: Record) -> Iterable[Event]:
    state = world.state
    after = {**state.projects, step.project.name: step.project}
    advice = settings_advice(list(after.values()), view.capacity(state.nodes.values()), view.usage(state))
    record.warnings_at_change += map(str, advice)
    yield ProjectSet(step.at, step.project)


def _resize(step: Resize, world: World) -> Iterable[Event]:
    standing = world.state.standings.get(step.workload)
    if standing is not None:
        names = [role.name for role in standing.workload.roles]
        yield Resized(step.at, step.workload, names.index(step.role) if step.role else 0, step.pods)


def _end_pods(step: EndPods, world: World) -> Iterable[Event]:
    standing = world.state.standings.get(step.workload)
    pods = sorted(standing.pods, key=lambda pod: (pod.role, pod.rank)) if standing else []
    for pod in pods[-step.pods :]:
        yield PodEnded(step.at, pod.id, step.ok)


def _report(step: Report, world: World) -> Iterable[Event]:
    pods = list(world.pods.get(step.workload, ()))
    if step.pod >= len(pods):
        return
    match step.what:
        case "finished":
            yield PodEnded(step.at, pods[step.pod], True)
        case "lost":
            yield PodLost(step.at, pods[step.pod])
        case _:
            yield PodGone(step.at, pods[step.pod])


def _fail_at_bind(step: FailAtBind, world: World) -> Iterable[Event]:
    """From now on: the workload's next pods on that node never come up, because the node goes bad first."""

    def bar(decision: Start | Grow) -> list[Event] | None:
        node = world.state.nodes.get(step.node)
        if node is None or all(pod.node != step.node for pod in decision.pods):
            return None
        return [NodeSet(world.now, replace(node, state=NodeState.NOT_READY))]

    world.barred[step.workload] = bar
    return ()


def _restart(step: Restart, world: World) -> Iterable[Event]:
    world.restart(step.listed)
    return ()
