"""What would start a waiting workload now: the smallest change of each kind."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from allmende.model.reason import Param


class Change(StrEnum):
    """The kinds of change a remedy can propose."""

    FEWER_PODS = "fewer_pods"  # asked, pods
    FEWER_GPUS = "fewer_gpus"  # asked, gpus (per pod)
    FEWER_CPUS = "fewer_cpus"  # asked, cpus (milli, per pod)
    OTHER_MODEL = "other_model"  # asked, model
    WIDER_LEVEL = "wider_level"  # asked, level ("" = anywhere)
    SHORTER_LIMIT = "shorter_limit"  # asked (microseconds, -1 = none), limit
    PREEMPTIBLE = "preemptible"  # project, guarantee: run above the guarantee, where work may be reclaimed


class Remedy(Struct, frozen=True):
    """One change, in figures. With it the workload is among the starts of a pass made on a fork at that moment."""

    change: Change
    params: dict[str, Param] = {}
