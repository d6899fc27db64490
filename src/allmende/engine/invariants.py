"""What must hold after every entry; asserted in tests and simulations."""

from __future__ import annotations

from typing import Any

from allmende.engine.apply import settle
from allmende.engine.index import Index
from allmende.engine.room import HELD, RUN
from allmende.engine.state import State
from allmende.model.standing import Phase
from allmende.model.units import GPU


def check(state: State) -> None:
    """Assert that the index equals a rebuild, that no device is given twice and that gangs are whole."""
    settle(state)
    assert picture(state.index) == picture(Index.built(state)), "the index differs from a rebuild"
    for room in state.index.rooms.values():
        for device in range(len(room.sound)):
            used = room.units[RUN][device] + room.units[HELD][device]
            assert used <= GPU, f"{room.node.name} GPU {device} is given twice: {used}"
            if room.devices[device]:
                assert room.mem[RUN][device] + room.mem[HELD][device] <= room.devices[device], (
                    f"{room.node.name} GPU {device} memory"
                )
    for standing in state.standings.values():
        if standing.phase is Phase.RUNNING:
            assert standing.pods, f"{standing.workload.id} runs without a pod"
            assert standing.holds_together(standing.pods) or standing.survivors_since is not None, (
                f"{standing.workload.id} is not whole"
            )
        else:
            assert not standing.pods, f"{standing.workload.id} waits with pods"


def picture(index: Index) -> dict[str, Any]:
    """Everything derived, in plain comparable values (caches that only save work left out)."""
    return {
        "rooms": {
            name: (
                room.units,
                room.mem,
                room.cpu,
                room.ram,
                room.count,
                room.alone,
                room.free,
                room.partial,
                dict(room.pods),
                room.holders,
            )
            for name, room in sorted(index.rooms.items())
        },
        "masks": (index.masks.by_free, index.masks.partial),
        "uses": {
            name: (
                branch.use,
                branch.own,
                branch.use_memory,
                _nonzero(branch.use_model),
                _nonzero(branch.user_running),
                _nonzero(branch.units_user),
                sorted(branch.workloads),
                branch.priorities,
            )
            for name, branch in sorted(index.tree.branches.items())
            if branch.use or branch.workloads or branch in index.queues
        },
        "queues": {
            branch.name: sorted(
                (line.gate, line.entries, line.grows, repr(line.shape.key)) for line in queue.lines.values()
            )
            for branch, queue in index.queues.items()
        },
        "sets": tuple(sorted(s) for s in (index.parked, index.short, index.over, index.unbound, index.suspects)),
        "counts": (_nonzero(index.arrays), index.leaving_of),
    }


def _nonzero(counts: dict[str, int]) -> dict[str, int]:
    return {key: value for key, value in counts.items() if value}
