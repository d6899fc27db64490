"""What a state says, read from its facts: who runs and where, what is used, what is idle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from allmende.engine.state import State
from allmende.model.cluster import Node, NodeState, Pod
from allmende.model.standing import Phase, Standing
from allmende.model.units import GPU


def runs(standing: Standing | None) -> bool:
    """Whether at least the gang's minimum of pods was seen running."""
    return (
        standing is not None
        and standing.phase is Phase.RUNNING
        and standing.bound
        and len(standing.pods) >= max(1, standing.minimum)
    )


def running(state: State) -> list[str]:
    """Names of the workloads that run, in order."""
    return sorted(name for name, standing in state.standings.items() if runs(standing))


def is_pending(state: State, name: str) -> bool:
    """Whether a workload is there and does not run."""
    standing = state.standings.get(name)
    return standing is not None and not runs(standing)


def bound_pods(state: State, name: str, role: str = "") -> tuple[Pod, ...]:
    """The pods of a workload (of one role) that were seen running."""
    standing = state.standings.get(name)
    if standing is None or not standing.bound:
        return ()
    return tuple(pod for pod in standing.pods if not role or standing.workload.roles[pod.role].name == role)


def placed_pods(state: State, name: str) -> tuple[Pod, ...]:
    """Pods of a workload that have a place, seen running or not, and places that are held for it."""
    standing = state.standings.get(name)
    return (*(standing.pods if standing else ()), *state.holds.get(name, ()))


def present_pods(state: State) -> Iterator[Pod]:
    """Every pod that takes room: those that run or are assigned, and those that are leaving."""
    for standing in state.standings.values():
        yield from standing.pods
    for leaving in state.leaving.values():
        yield leaving.pod


def units_of(pods: Iterable[Pod]) -> int:
    """GPU units that pods hold."""
    return sum(pod.units for pod in pods)


def ancestry(state: State, project: str) -> list[str]:
    """A project and all above it."""
    found: list[str] = []
    while project and project not in found:
        found.append(project)
        above = state.projects.get(project)
        project = above.parent if above else ""
    return found


def usage_own(state: State) -> Counter[str]:
    """GPU units in use by project, without what is below it; leaving pods use nothing any more."""
    found: Counter[str] = Counter()
    for standing in state.standings.values():
        found[standing.workload.project] += units_of(standing.pods)
    return found


def usage(state: State) -> Counter[str]:
    """GPU units in use by project, with everything below it."""
    found: Counter[str] = Counter()
    for project, units in usage_own(state).items():
        for name in ancestry(state, project):
            found[name] += units
    return found


def memory_of(state: State, name: str) -> int:
    """MiB of GPU memory that a workload's pods hold."""
    return sum(part.memory for pod in bound_pods(state, name) for part in pod.slices)


def held_by_device(state: State) -> Counter[tuple[str, int]]:
    """GPU units held of each device (node, index)."""
    found: Counter[tuple[str, int]] = Counter()
    for pod in present_pods(state):
        for part in pod.slices:
            found[pod.node, part.device] += part.units
    return found


def pods_by_device(state: State) -> Counter[tuple[str, int]]:
    """Pods on each device (node, index)."""
    return Counter((pod.node, part.device) for pod in present_pods(state) for part in pod.slices)


def capacity(nodes: Iterable[Node]) -> int:
    """GPU units of sound devices."""
    return sum(GPU for node in nodes for device in node.devices if device.healthy)


def usable(state: State) -> list[Node]:
    """Nodes that take new work."""
    return [node for node in state.nodes.values() if node.state is NodeState.READY and not node.closed]


def idle_on(state: State, node: Node) -> int:
    """GPU units of a node that nothing holds, never below 0, whatever became of its devices."""
    return _idle(node, held_by_device(state))


def _idle(node: Node, held: Counter[tuple[str, int]]) -> int:
    sound = {device.index for device in node.devices if device.healthy}
    known = {device.index for device in node.devices}
    idle = sum(max(0, GPU - held[node.name, index]) for index in sound)
    lost = sum(units for (name, index), units in held.items() if name == node.name and index not in known)
    return max(0, idle - lost)


def idle(state: State) -> int:
    """GPU units that nothing holds, on nodes that are ready."""
    by_node: dict[str, Counter[tuple[str, int]]] = {}
    for device, units in held_by_device(state).items():
        by_node.setdefault(device[0], Counter())[device] = units
    ready = (node for node in state.nodes.values() if node.state is NodeState.READY)
    return sum(_idle(node, by_node.get(node.name, Counter())) for node in ready)


def domain(node: Node, level: str) -> str:
    """The domain of a level that a node is in; the level 'node' is the node itself."""
    return node.name if level == "node" else dict(node.labels).get(level, "")
