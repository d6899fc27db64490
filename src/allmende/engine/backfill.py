"""When and where a reservation can be: earliest start by the time limits of what runs.

The start is the earliest moment at which enough of what runs must have ended by its time limit. Whoever is sure to end
by then may use the room meanwhile; nobody else may.
"""

from __future__ import annotations

from allmende.engine.draft import Draft
from allmende.engine.place import Site
from allmende.engine.reservation import Reservation
from allmende.engine.room import HELD, RUN
from allmende.engine.shape import Shape
from allmende.engine.state import State
from allmende.model.cluster import Pod
from allmende.model.standing import Phase, Standing


def reserve_for(
    state: State, draft: Draft, standing: Standing, shape: Shape, now: int, busy: set[str]
) -> Reservation | None:
    """The earliest reservation for a workload, its places held in the draft; None where it fits not even the empty
    cluster."""
    ends = _ends(state, now, busy)

    def places(count: int) -> list[Pod] | None:
        mark = draft.mark
        for _, other in ends[:count]:
            for pod in other.pods:
                draft.free(RUN, pod, other.workload)
        site = Site(draft, standing.workload, shape, standing.attempt + 1, mode=HELD, later=True)
        pods = site.place()
        draft.back(mark)
        return pods

    if places(len(ends)) is None:
        return None
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        if places(middle) is None:
            low = middle + 1
        else:
            high = middle
    pods = places(low)
    if pods is None:
        return None
    made = Reservation(standing.workload, max(now, ends[low - 1][0]) if low else now, pods)
    if low and ends[low - 1][0] == _NEVER:
        made.at = None
    made.put_back(draft)
    return made


_NEVER = 1 << 62


def _ends(state: State, now: int, busy: set[str]) -> list[tuple[int, Standing]]:
    """What runs, by the moment it must have ended; without a limit, last."""
    found = []
    for branch in state.index.tree.branches.values():
        for name in branch.workloads:
            if name in busy:
                continue
            standing = state.standings[name]
            if standing.phase is Phase.RUNNING:
                limit = standing.workload.limit
                found.append((_NEVER if limit is None else max(now, (standing.started or now) + limit), standing))
    found.sort(key=lambda item: (item[0], item[1].workload.id))
    return found
