"""What the engine's own books say, to be held against the facts."""

from __future__ import annotations

from allmende.engine import explain
from allmende.engine.state import State
from allmende.model.cluster import NodeState
from allmende.model.request import units_asked
from allmende.model.units import GPU
from allmende.scene import view


def book_use(state: State, project: str) -> int:
    """GPU units that the engine's index counts as used by a project, places held for it left out."""
    branch = state.index.tree.branches.get(project)
    if branch is None:
        return view.usage(state)[project]
    held = 0
    for name, pods in state.holds.items():
        standing = state.standings.get(name)
        if standing is not None and project in view.ancestry(state, standing.workload.project):
            held += view.units_of(pods)
    return branch.use - held


def demand(state: State, project: str, without: str = "") -> int:
    """GPU units that a project's workloads want in all, running and pending."""
    return sum(
        wanted * units_asked(role.ask)
        for name, standing in state.standings.items()
        if name != without and project in view.ancestry(state, standing.workload.project)
        for wanted, role in zip(standing.wanted, standing.workload.roles, strict=True)
    )


def position(state: State, name: str) -> int:
    """A workload's place in its project's queue, 1 = next; 0 where it does not wait."""
    return explain.position(state, name) if view.is_pending(state, name) else 0


def raw_free(state: State, name: str) -> int:
    """Wholly free GPUs of a node as the engine's index counts them; 0 for a node that it does not know."""
    room = state.index.rooms.get(name)
    return 0 if room is None else room.free


def node_free(state: State, name: str) -> bool:
    """Whether a node takes work and nothing is on it."""
    node = state.nodes.get(name)
    if node is None or node.state is not NodeState.READY or node.closed:
        return False
    return all(pod.node != name for pod in view.present_pods(state))


def gpu_of_two(state: State) -> bool:
    """Whether more of a GPU is given out than there is."""
    return any(units > GPU for units in view.held_by_device(state).values())
