"""Tentative work on the index: every step is remembered and can be undone; nothing is copied."""

from __future__ import annotations

from allmende.engine.index import Index
from allmende.engine.room import HELD, RUN
from allmende.model.cluster import Leaving, Pod
from allmende.model.workload import Workload


class Draft:
    """An Index plus an undo log. `back(mark)` undoes everything since `mark`."""

    __slots__ = ("_log", "index")

    def __init__(self, index: Index) -> None:
        self.index = index
        self._log: list[tuple[int, Pod, Workload, int]] = []

    @property
    def mark(self) -> int:
        """Where the log stands now."""
        return len(self._log)

    def take(self, mode: int, pod: Pod, workload: Workload) -> None:
        """Put a pod at its place (RUN) or keep the place for it (HELD)."""
        self.index.occupy(mode, pod, workload, 1)
        self._log.append((mode, pod, workload, 1))

    def free(self, mode: int, pod: Pod, workload: Workload) -> None:
        """Give up a held place, or take a running pod off at once."""
        self.index.occupy(mode, pod, workload, -1)
        self._log.append((mode, pod, workload, -1))

    def evict(self, pod: Pod, workload: Workload) -> None:
        """A running pod is told to go: it uses nothing of its project any more, and fills its node until it is gone."""
        self.free(RUN, pod, workload)
        leaving = Leaving(pod, workload.roles[pod.role].ask, 0)
        self.index.leave(leaving, 1)
        self._log.append((_LEFT, pod, workload, 1))

    def keep(self, pod: Pod, workload: Workload, sign: int) -> None:
        """Keep a place on its node (1) or give it up (-1) without counting it as used by its project."""
        index = self.index
        index.put(index.rooms[pod.node], HELD, pod, workload.roles[pod.role].ask, sign)
        self._log.append((_KEPT, pod, workload, sign))

    def back(self, mark: int = 0) -> None:
        """Undo everything since `mark`."""
        log, index = self._log, self.index
        while len(log) > mark:
            mode, pod, workload, sign = log.pop()
            if mode == _KEPT:
                index.put(index.rooms[pod.node], HELD, pod, workload.roles[pod.role].ask, -sign)
            elif mode == _LEFT:
                index.leave(Leaving(pod, workload.roles[pod.role].ask, 0), -1)
            else:
                index.occupy(mode, pod, workload, -sign)


_LEFT = HELD + 1
_KEPT = HELD + 2
