"""What time and the machines force, before anybody is considered: lost nodes and GPUs, broken gangs, ended limits."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from allmende.engine.mask import bits
from allmende.engine.state import State
from allmende.model.cluster import Node, NodeState
from allmende.model.decision import Cause, Close, Decision, Evict, Stop
from allmende.model.standing import Phase


def upkeep(state: State, now: int) -> list[Decision]:
    """Decisions that are due whatever the queue holds; each workload is named at most once."""
    found: list[Decision] = []
    named: set[str] = set()
    steps = (
        _time_limits(state, now),
        _lost(state, now),
        _unbound(state, now),
        _broken(state, now),
        _shrunk(state, now),
    )
    for step in steps:
        for decision in step:
            if isinstance(decision, Close):
                found.append(decision)
            elif decision.workload not in named:
                named.add(decision.workload)
                found.append(decision)
    return found


def _time_limits(state: State, now: int) -> Iterator[Stop]:
    ends = state.index.ends
    due: list[tuple[int, str, int]] = []
    while ends and (ends[0][0] <= now or not _valid(state, ends[0])):
        end = heappop(ends)
        if _valid(state, end):
            due.append(end)
    for end in due:  # they stay until the decision is applied, so that a plan alone changes nothing
        heappush(ends, end)
        yield Stop(now, end[1], Cause.TIME_LIMIT)


def _valid(state: State, end: tuple[int, str, int]) -> bool:
    standing = state.standings.get(end[1])
    return standing is not None and standing.phase is Phase.RUNNING and standing.attempt == end[2]


def _lost(state: State, now: int) -> Iterator[Evict | Close]:
    """Pods on GPUs that fell off, and on nodes silent for too long."""
    for name in sorted(state.index.suspects):
        node = state.nodes[name]
        dead = {device.index for device in node.devices if not device.healthy}
        if dead and state.policy.close_on_gpu_loss and not node.closed:
            yield Close(now, name, f"GPU {', '.join(map(str, sorted(dead)))} lost")
        if dead:
            yield from _on_dead_gpus(state, now, node, dead)
        if node.state is NodeState.NOT_READY and now - state.silent.get(name, now) >= state.policy.not_ready_after:
            for workload in sorted({pod.workload for pod in state.index.rooms[name].pods.values()}):
                standing = state.standings[workload]
                pods = [pod.id for pod in standing.pods if pod.node == name]
                left = tuple(pod for pod in standing.pods if pod.node != name)
                if not standing.holds_together(left) and not state.policy.keep_survivors:
                    pods = [pod.id for pod in standing.pods]
                yield Evict(now, workload, tuple(pods), Cause.NODE_LOST, detail=name)


def _on_dead_gpus(state: State, now: int, node: Node, dead: set[int]) -> Iterator[Evict]:
    hit: dict[str, set[int]] = {}
    for pod in state.index.rooms[node.name].pods.values():
        for part in pod.slices:
            if part.device in dead:
                hit.setdefault(pod.workload, set()).add(part.device)
    for workload in sorted(hit):
        pods = tuple(pod.id for pod in state.standings[workload].pods)
        gpus = ", ".join(map(str, sorted(hit[workload])))
        yield Evict(now, workload, pods, Cause.GPU_LOST, detail=f"{node.name} GPU {gpus} lost")


def _unbound(state: State, now: int) -> Iterator[Evict]:
    """Assignments that no pod took up, once a node of theirs cannot take pods or their time is over."""
    for name in sorted(state.index.unbound):
        standing = state.standings[name]
        nodes = [state.nodes.get(pod.node) for pod in standing.pods]
        dead = any(node is None or node.state is not NodeState.READY or node.closed for node in nodes)
        if dead or now >= (standing.started or 0) + state.policy.bind_within:
            yield Evict(now, name, tuple(pod.id for pod in standing.pods), Cause.UNBOUND)


def _broken(state: State, now: int) -> Iterator[Evict]:
    """Gangs that lost pods and found no replacement in time."""
    for name in sorted(state.index.short):
        standing = state.standings[name]
        if now >= (standing.survivors_since or 0) + state.policy.keep_survivors:
            yield Evict(now, name, tuple(pod.id for pod in standing.pods), Cause.GANG_BROKEN)


def _shrunk(state: State, now: int) -> Iterator[Evict]:
    """Pods beyond what is wanted now: the highest ranks go."""
    for name in sorted(state.index.over):
        standing = state.standings[name]
        extra = []
        for role, wanted in enumerate(standing.wanted):
            ranked = sorted((pod.rank, pod.id) for pod in standing.pods if pod.role == role)
            extra += [pod_id for _, pod_id in ranked[wanted:]]
        yield Evict(now, name, tuple(extra), Cause.SHRINK)


def next_wake(state: State, now: int) -> list[int]:
    """Moments at which something here falls due."""
    policy = state.policy
    moments = [end[0] for end in state.index.ends[:1]]
    moments += [state.silent[name] + policy.not_ready_after for name in state.index.suspects if name in state.silent]
    moments += [(state.standings[name].started or 0) + policy.bind_within for name in state.index.unbound]
    moments += [(state.standings[name].survivors_since or 0) + policy.keep_survivors for name in state.index.short]
    rooms = state.index.masks.rooms
    moments += [
        edge
        for pos in bits(state.index.masks.windows)
        for w in rooms[pos].node.maintenance
        for edge in (w.start, w.end)
    ]
    return [moment for moment in moments if moment > now]
