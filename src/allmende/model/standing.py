"""Where a workload stands: queued, running, what it holds, what it has behind it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from allmende.model.cluster import Pod
from allmende.model.workload import Workload


class Phase(StrEnum):
    """The part of its life a workload is in."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"


class Standing(Struct, frozen=True):
    """The facts about one workload that is not over.

    `submitted` never changes, whatever is evicted. `wanted`: pods wanted now, per role (falls as pods end well,
    changes with a resize). `minimum` and `least`: the gang's and each role's minimum now; they only fall. `attempt`
    counts starts and growths: the pods of one share it, so that no pod ever has the identity of one that left.
    `pods`: what it holds now. `bound`: they were seen running. `grow_since`: when more pods were asked for (None =
    with the submit). `checkpoint`: moment up to which its work is safe. `survivors_since`: since when it runs short.
    `gave_way_to`: for whom it was evicted last; never for the same one again.
    """

    workload: Workload
    submitted: int
    wanted: tuple[int, ...]
    minimum: int
    phase: Phase = Phase.QUEUED
    attempt: int = 0
    started: int | None = None
    pods: tuple[Pod, ...] = ()
    bound: bool = False
    grow_since: int | None = None
    checkpoint: int | None = None
    survivors_since: int | None = None
    evictions: int = 0
    first_started: int | None = None
    least: tuple[int, ...] = ()
    gave_way_to: str = ""

    def holds_together(self, pods: tuple[Pod, ...]) -> bool:
        """Whether these pods are enough for the gang: its minimum in all, and every role's."""
        if len(pods) < self.minimum:
            return False
        for role, least in enumerate(self.least):
            if least and sum(pod.role == role for pod in pods) < least:
                return False
        return True


class Outcome(Struct, frozen=True, gc=False):
    """What is remembered of a workload that is over."""

    workload: str
    project: str
    user: str
    units: int
    submitted: int
    started: int | None
    ended: int
    ok: bool
    cancelled: bool = False
    array: str = ""
