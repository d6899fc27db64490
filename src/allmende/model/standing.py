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
    changes with a resize). `minimum`: the gang's minimum now. `attempt` counts starts. `pods`: what it holds now.
    `bound`: they were seen running. `grow_since`: when more pods were asked for (None = with the
    submit). `checkpoint`: moment up to which its work is safe. `survivors_since`: since when it runs short.
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
