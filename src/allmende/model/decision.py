"""All that we order: one closed union. A decision is a fact once appended; replay folds it and never decides again."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from allmende.model.cluster import Pod, PodId


class Cause(StrEnum):
    """Why pods are taken or a workload is ended."""

    RECLAIM = "reclaim"  # work above a guarantee, for one within its own
    PRIORITY = "priority"  # lower priority in the same project
    FAIR_SHARE = "fair_share"  # a larger share gives to a smaller one
    NODE_LOST = "node_lost"
    GPU_LOST = "gpu_lost"
    GANG_BROKEN = "gang_broken"  # too few pods are left for the gang to work
    UNBOUND = "unbound"  # assigned, but its pods never came up
    TIME_LIMIT = "time_limit"
    SHRINK = "shrink"  # fewer pods are wanted than run


class Start(Struct, frozen=True, tag=True):
    """Start an attempt of a workload at these places."""

    at: int
    workload: str
    pods: tuple[Pod, ...]


class Grow(Struct, frozen=True, tag=True):
    """Add pods to what runs."""

    at: int
    workload: str
    pods: tuple[Pod, ...]


class Evict(Struct, frozen=True, tag=True):
    """Take these pods of a workload; it goes back to its place in the queue when too few are left."""

    at: int
    workload: str
    pods: tuple[PodId, ...]
    cause: Cause
    claimant: str = ""
    detail: str = ""


class Hold(Struct, frozen=True, tag=True):
    """Keep these places for a workload until what leaves them has left."""

    at: int
    workload: str
    pods: tuple[Pod, ...]


class Release(Struct, frozen=True, tag=True):
    """Give up the places kept for a workload."""

    at: int
    workload: str


class Stop(Struct, frozen=True, tag=True):
    """End a workload for good."""

    at: int
    workload: str
    cause: Cause


class Close(Struct, frozen=True, tag=True):
    """Send a node nothing new until somebody has looked."""

    at: int
    node: str
    why: str


Decision = Start | Grow | Evict | Hold | Release | Stop | Close
