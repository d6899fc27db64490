"""Every refusal, coded: why a workload is not running, in figures, and whether waiting helps."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

Param = str | int


class Waiting(StrEnum):
    """Whether waiting helps: yes, only when somebody changes something, or never as it was asked."""

    HELPS = "helps"
    NEEDS_CHANGE = "needs_change"
    NEVER = "never"


class Code(StrEnum):
    """What stands in the way. The text of each lives in the catalogues (allmende.words), in every language."""

    NOT_CONSIDERED = "not_considered"  # submitted since the last pass
    DEPENDENCY = "dependency"  # workload, when
    DEPENDENCY_NEVER = "dependency_never"  # workload, when
    ARRAY_THROTTLE = "array_throttle"  # array, throttle
    PROJECT_ON_HOLD = "project_on_hold"  # project
    USER_RUNNING = "user_running"  # user, project, running, limit
    USER_UNITS = "user_units"  # user, project, used, limit, asked (GPU units)
    CAP = "cap"  # project, used, cap, left, asked (GPU units), model
    CAP_NEVER = "cap_never"  # project, used, cap, left, asked, model
    MEMORY_CAP = "memory_cap"  # project, used, cap, asked (MiB)
    MEMORY_CAP_NEVER = "memory_cap_never"  # project, cap, asked (MiB)
    DAILY_LIMIT = "daily_limit"  # project, spent, limit (GPU-hours), until
    NO_BORROWING = "no_borrowing"  # project, used, guarantee, asked
    MAINTENANCE = "maintenance"  # node, start, end, limit_needed, limit (-1 = none)
    TAINT = "taint"  # taint, node, model
    MODEL = "model"  # model
    LABELS = "labels"  # labels
    NODES_CLOSED = "nodes_closed"  # nodes, node, why
    GPU_NEVER = "gpu_never"  # asked, most on one node
    TOTAL_NEVER = "total_never"  # pods, asked, total, places
    GPU_MEMORY_NEVER = "gpu_memory_never"  # asked, largest (MiB)
    GPU_MEMORY_UNKNOWN = "gpu_memory_unknown"  # node
    CPU_NEVER = "cpu_never"  # asked, most
    RAM_NEVER = "ram_never"  # asked, most
    ONE_NODE = "one_node"  # asked, most free on one node, free in all (whole GPUs), model
    GPUS = "gpus"  # asked, free (whole GPUs), model
    SHARE = "share"  # asked, most left on one GPU (units)
    GPU_MEMORY = "gpu_memory"  # asked, most (MiB)
    SLOTS = "slots"  # asked, free
    DISTINCT = "distinct"  # asked different GPUs, have
    CPU = "cpu"  # asked, most, node
    RAM = "ram"  # asked, most, node
    POD_SLOTS = "pod_slots"  # asked, free, node
    EXCLUSIVE = "exclusive"  # node, by
    GANG = "gang"  # needed pods, placeable pods, model
    DOMAIN = "domain"  # level, needed pods, best domain, placeable there
    SPREAD = "spread"  # level, needed, have
    EVICTING = "evicting"  # pods leaving, nodes
    LEAVING = "leaving"  # pods: its own pods of the last attempt are still ending
    AHEAD = "ahead"  # workload, ahead in a strict queue
    RESERVED = "reserved"  # workload
    EVICTIONS_OFF = "evictions_off"  # project, used, guarantee, asked
    BORROWING = "borrowing"  # project, used, guarantee, asked: above its guarantee, so only idle room will do
    NOTHING_TO_RECLAIM = (
        "nothing_to_reclaim"  # project, used, guarantee, asked: inside it, but nobody's surplus makes room
    )
    GROWTH_CAP = "growth_cap"  # missing pods, project, used, cap
    GROWTH_ROOM = "growth_room"  # missing pods
    ALL_MODELS = "all_models"  # models: every model was tried; parts say why each failed


class Reason(Struct, frozen=True):
    """A coded refusal. `binding` is the one constraint that stands in the way; `parts` one finding per model tried."""

    code: Code
    params: dict[str, Param] = {}
    waiting: Waiting = Waiting.HELPS
    binding: str = ""
    parts: tuple[Reason, ...] = ()
