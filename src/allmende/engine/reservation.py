"""A reservation: room kept for a workload that has waited long, and who may use it until then."""

from __future__ import annotations

from allmende.engine.draft import Draft
from allmende.model.cluster import Pod
from allmende.model.workload import Workload


class Reservation:
    """Places kept in this pass (and used by nobody yet) for one workload from `at` on (None: nobody can say when, so
    nothing new goes there)."""

    def __init__(self, workload: Workload, at: int | None, pods: list[Pod]) -> None:
        self.workload = workload
        self.at = at
        self.pods = pods

    def allows(self, other: Workload, now: int) -> bool:
        """Whether `other`, started now, is sure to be gone in time."""
        return self.at is not None and other.limit is not None and now + other.limit <= self.at

    def lift(self, draft: Draft) -> None:
        """Take the places off, to try somebody who will be gone in time."""
        for pod in self.pods:
            draft.keep(pod, self.workload, -1)

    def put_back(self, draft: Draft) -> None:
        """Hold the places again."""
        for pod in self.pods:
            draft.keep(pod, self.workload, 1)
