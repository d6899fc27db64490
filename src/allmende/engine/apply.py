"""The fold: what happened, and what was decided, becomes state. It decides nothing and costs what changed.

Late, repeated and unknown reports change nothing: a pod is counted and released once, by its identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from allmende.engine import life
from allmende.engine.account import fresh
from allmende.engine.index import Index
from allmende.engine.room import HELD
from allmende.engine.state import State
from allmende.model.cluster import NodeState
from allmende.model.decision import Close, Decision, Evict, Grow, Hold, Release, Start, Stop
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

Entry = Event | Decision


def apply(state: State, entry: Entry) -> None:
    """Fold one entry into the state. Raises Mistake for a workload id that is in use."""
    if entry.at > state.now:
        state.now = entry.at
    _FOLDS[type(entry)](state, entry)
    if isinstance(entry, _DECISIONS):
        state.index.memory.applied += 1


def settle(state: State) -> None:
    """Build the index anew where nodes came or went or settings changed since."""
    if state.index.stale:
        state.index = Index.built(state)


# -- the cluster and its settings -----------------------------------------------------------------------------


def _policy(state: State, entry: PolicySet) -> None:
    state.policy = entry.policy


def _levels(state: State, entry: LevelsSet) -> None:
    state.levels = entry.levels
    state.index.stale = True


def _project(state: State, entry: ProjectSet) -> None:
    project = entry.project
    if project.past_use and project.name not in state.accounts:
        state.accounts[project.name] = fresh(entry.at, state.policy, project.past_use)
    state.projects[project.name] = project
    state.index.stale = True


def _node(state: State, entry: NodeSet) -> None:
    node = entry.node
    before = state.nodes.get(node.name)
    state.nodes[node.name] = node
    if node.state is NodeState.NOT_READY:
        state.silent.setdefault(node.name, entry.at)
    else:
        state.silent.pop(node.name, None)
    index = state.index
    if before is None or before.model != node.model or index.stale:
        index.stale = True  # what projects use is counted by model too
        return
    room = index.rooms[node.name]
    room.set_node(node)
    index.masks.refresh()
    index.masks.grown |= 1 << room.pos
    index.suspect(node.name)
    index.touched.update(dict.fromkeys(room.holders))
    index.memory.clear()


def _node_gone(state: State, entry: NodeGone) -> None:
    if state.nodes.pop(entry.node, None) is None:
        return
    state.silent.pop(entry.node, None)
    for standing in list(state.standings.values()):
        lost = [pod.id for pod in standing.pods if pod.node == entry.node]
        if lost:
            life.lose(state, standing.workload.id, lost, entry.at)
    for leaving in [x for x in state.leaving.values() if x.pod.node == entry.node]:
        life.gone(state, leaving.pod.id)
    state.index.stale = True


# -- workloads ------------------------------------------------------------------------------------------------


def _submitted(state: State, entry: Submitted) -> None:
    workload = entry.workload
    if workload.id in state.standings or workload.id in state.outcomes:
        raise Mistake(MistakeCode.DUPLICATE, workload.id, "workload", "give it another name", "is already in use")
    life.submit(state, workload, entry.at)


def _cancelled(state: State, entry: Cancelled) -> None:
    if entry.workload in state.standings:
        life.end(state, entry.workload, entry.at, ok=False, cancelled=True, leave=True)
        state.index.memory.forget_claims()


def _resized(state: State, entry: Resized) -> None:
    standing = state.standings.get(entry.workload)
    if standing is None:
        return
    wanted = tuple(entry.pods if i == entry.role else n for i, n in enumerate(standing.wanted))
    more = sum(wanted) > sum(standing.wanted)
    new = replace(life.want(standing, wanted), grow_since=entry.at if more else standing.grow_since)
    life.change(state, standing, new)
    if entry.workload in state.holds:
        state.index.touched[entry.workload] = None


def _up(state: State, entry: Up) -> None:
    standing = state.standings.get(entry.workload)
    if standing is not None and standing.pods and not standing.bound:
        life.change(state, standing, replace(standing, bound=True))


def _pod_ended(state: State, entry: PodEnded) -> None:
    standing = state.standings.get(entry.pod[0])
    if standing is None or not any(pod.id == entry.pod for pod in standing.pods):
        life.gone(state, entry.pod)
        return
    life.pod_ended(state, standing, entry.pod, entry.at, entry.ok)


def _pod_gone(state: State, entry: PodGone) -> None:
    life.gone(state, entry.pod)


def _pod_lost(state: State, entry: PodLost) -> None:
    life.gone(state, entry.pod)
    life.lose(state, entry.pod[0], [entry.pod], entry.at)


def _ended(state: State, entry: Ended) -> None:
    if entry.workload in state.standings:
        life.end(state, entry.workload, entry.at, ok=entry.ok)


def _checkpointed(state: State, entry: Checkpointed) -> None:
    standing = state.standings.get(entry.workload)
    if standing is not None:
        state.standings[entry.workload] = replace(standing, checkpoint=entry.made)


def _ticked(state: State, entry: Ticked) -> None:
    pass


# -- decisions ------------------------------------------------------------------------------------------------


def _start(state: State, entry: Start) -> None:
    life.drop_hold(state, entry.workload)
    life.start(state, state.standings[entry.workload], entry.pods, entry.at)


def _grow(state: State, entry: Grow) -> None:
    life.drop_hold(state, entry.workload)
    life.grow(state, state.standings[entry.workload], entry.pods, entry.at)


def _evict(state: State, entry: Evict) -> None:
    life.evict(state, state.standings[entry.workload], set(entry.pods), entry.at, entry.cause, entry.claimant)


def _hold(state: State, entry: Hold) -> None:
    life.drop_hold(state, entry.workload)
    workload = state.standings[entry.workload].workload
    for pod in entry.pods:
        state.index.occupy(HELD, pod, workload, 1)
    state.holds[entry.workload] = entry.pods
    state.index.touched[entry.workload] = None


def _release(state: State, entry: Release) -> None:
    life.drop_hold(state, entry.workload)


def _stop(state: State, entry: Stop) -> None:
    life.end(state, entry.workload, entry.at, ok=False, leave=True)


def _close(state: State, entry: Close) -> None:
    node = state.nodes.get(entry.node)
    if node is not None:
        _node(state, NodeSet(entry.at, replace(node, closed=entry.why)))


_DECISIONS = (Start, Grow, Evict, Hold, Release, Stop, Close)

_FOLDS: dict[type, Callable[[State, Any], None]] = {
    PolicySet: _policy,
    LevelsSet: _levels,
    ProjectSet: _project,
    NodeSet: _node,
    NodeGone: _node_gone,
    Submitted: _submitted,
    Cancelled: _cancelled,
    Resized: _resized,
    Up: _up,
    PodEnded: _pod_ended,
    PodGone: _pod_gone,
    PodLost: _pod_lost,
    Ended: _ended,
    Checkpointed: _checkpointed,
    Ticked: _ticked,
    Start: _start,
    Grow: _grow,
    Evict: _evict,
    Hold: _hold,
    Release: _release,
    Stop: _stop,
    Close: _close,
}
