"""All that can happen: one closed union. Every event carries `at`, microseconds of the cluster's clock."""

from __future__ import annotations

from msgspec import Struct

from allmende.model.cluster import Node, PodId
from allmende.model.policy import Policy
from allmende.model.tenancy import Project
from allmende.model.workload import Workload


class PolicySet(Struct, frozen=True, tag=True):
    """The knobs were set."""

    at: int
    policy: Policy


class LevelsSet(Struct, frozen=True, tag=True):
    """The topology's levels were named, from the widest (label keys of nodes; "node" is always the last)."""

    at: int
    levels: tuple[str, ...]


class ProjectSet(Struct, frozen=True, tag=True):
    """A project was created or changed."""

    at: int
    project: Project


class NodeSet(Struct, frozen=True, tag=True):
    """A node joined, or something about it changed."""

    at: int
    node: Node


class NodeGone(Struct, frozen=True, tag=True):
    """A node is gone for good, and every pod with it."""

    at: int
    node: str


class Submitted(Struct, frozen=True, tag=True):
    """A workload was submitted."""

    at: int
    workload: Workload


class Cancelled(Struct, frozen=True, tag=True):
    """Its owner removed it; its pods get their grace."""

    at: int
    workload: str


class Resized(Struct, frozen=True, tag=True):
    """Another number of pods is wanted of `role`."""

    at: int
    workload: str
    role: int
    pods: int


class Up(Struct, frozen=True, tag=True):
    """Every pod of the workload's present attempt was seen running."""

    at: int
    workload: str


class PodEnded(Struct, frozen=True, tag=True):
    """A pod came to its own end, well or badly."""

    at: int
    pod: PodId
    ok: bool


class PodGone(Struct, frozen=True, tag=True):
    """A pod that was to leave has left; its room is free."""

    at: int
    pod: PodId


class PodLost(Struct, frozen=True, tag=True):
    """A pod was taken by its node (drained, failed, refused at the bind); nobody decided it."""

    at: int
    pod: PodId
    why: str = ""


class Ended(Struct, frozen=True, tag=True):
    """The whole workload is over."""

    at: int
    workload: str
    ok: bool = True


class Checkpointed(Struct, frozen=True, tag=True):
    """A complete checkpoint of the workload exists, made at `made`."""

    at: int
    workload: str
    made: int


class Ticked(Struct, frozen=True, tag=True):
    """Time passed; nothing else."""

    at: int


Event = (
    PolicySet
    | LevelsSet
    | ProjectSet
    | NodeSet
    | NodeGone
    | Submitted
    | Cancelled
    | Resized
    | Up
    | PodEnded
    | PodGone
    | PodLost
    | Ended
    | Checkpointed
    | Ticked
)
