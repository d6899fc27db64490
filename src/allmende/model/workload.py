"""A workload: roles of pods that run together, with its owner, its wishes and its limits."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from allmende.model.request import Ask, Where


class Kind(StrEnum):
    """What the workload is for."""

    BATCH = "batch"
    DEBUG = "debug"
    SERVICE = "service"


class After(StrEnum):
    """When a dependency is met: the other has ended in any way, well, or badly (Slurm's words)."""

    ANY = "after"
    OK = "afterok"
    NOT_OK = "afternotok"


class Dependency(Struct, frozen=True, gc=False):
    """Start only when `workload` has ended as `when` says."""

    workload: str
    when: After = After.OK


class Role(Struct, frozen=True, gc=False):
    """`pods` equal pods, of which at least `least` must be placed for the gang to start."""

    name: str
    pods: int
    ask: Ask
    where: Where = Where()
    least: int = 0


class Workload(Struct, frozen=True, gc=False):
    """What somebody asked to run.

    `gang_min` pods are placed together or none is; pods above it come as there is room. With `elastic` those
    are a wish that never goes ahead of anybody's minimum. `same` and `spread` name levels of the topology: the
    one level that all pods share, the level each pod has to itself; `prefer_same` is a wish.
    Times in microseconds: `limit` is the promised longest run (None = none promised), `grace` what an
    eviction may take. `borrow` False: never run above the guarantee, hence never reclaimed.
    `array` and `throttle`: at most `throttle` workloads of one array run at once (0 = no throttle).
    """

    id: str
    project: str
    roles: tuple[Role, ...]
    gang_min: int
    user: str = ""
    kind: Kind = Kind.BATCH
    priority: int = 0
    elastic: bool = False
    same: str = ""
    prefer_same: str = ""
    spread: str = ""
    limit: int | None = None
    grace: int = 0
    borrow: bool = True
    interactive: bool = False
    array: str = ""
    throttle: int = 0
    after: tuple[Dependency, ...] = ()
    checkpoint_every: int | None = None
    command: tuple[str, ...] = ()

    @property
    def pods(self) -> int:
        """Pods wanted in all."""
        return sum(role.pods for role in self.roles)
