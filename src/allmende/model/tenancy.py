"""Who shares the cluster: a tree of projects with guarantees, caps and weights."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct


class Project(Struct, frozen=True):
    """A project, or an area above projects.

    `guarantee` in GPU units: what it always gets back. `cap`: the most it may use (None = no cap).
    `weight` divides spare capacity among siblings, `priority` orders them for it. `*_by_model` bind only work
    on that GPU model. `running_per_user`, `units_per_user`, `memory` (MiB of GPU memory in use), `daily`
    (GPU-microseconds a local day, times `GPU`): None = no limit. `strict`: nothing overtakes on the same nodes.
    `hold`: nothing new starts. `past_use`: decayed use brought along, GPU-units x microseconds.
    """

    name: str
    parent: str = ""
    guarantee: int = 0
    cap: int | None = None
    weight: Fraction = Fraction(1)
    priority: int = 0
    guarantee_by_model: dict[str, int] = {}
    cap_by_model: dict[str, int] = {}
    running_per_user: int | None = None
    units_per_user: int | None = None
    memory: int | None = None
    daily: int | None = None
    strict: bool = False
    hold: bool = False
    past_use: int = 0
