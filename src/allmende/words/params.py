"""Which figures and names reasons and remedies carry, each of a kind that says how a language writes it."""

from enum import StrEnum

from allmende.model.reason import Code
from allmende.model.remedy import Change


class Kind(StrEnum):
    """What a parameter of a reason or a remedy is, with its unit."""

    NAME = "name"  # of a workload, project, node, level, ...: shown as it is
    COUNT = "count"  # a bare number
    UNITS = "units"  # GPU units
    GPUS = "gpus"  # a number of whole GPUs
    PODS = "pods"
    NODES = "nodes"
    SLOTS = "slots"  # of shared GPUs
    POD_SLOTS = "pod_slots"
    MIB = "mib"  # GPU memory
    CPUS = "cpus"  # milli-CPUs
    BYTES = "bytes"
    GPU_HOURS = "gpu_hours"  # GPU units x microseconds
    SPAN = "span"  # microseconds; the seconds are said too
    CLOCK = "clock"  # a moment in microseconds, of the world's own clock or, where it is large, of Unix time
    WHEN = "when"  # how a dependency must end
    STATE = "state"  # of a node, or why it is closed


COMMON = {"model": Kind.NAME}
"""What any reason may carry besides its own: the GPU model, or models, that it was found for."""

PARAMS: dict[Code, dict[str, Kind]] = {
    Code.NOT_CONSIDERED: {},
    Code.DEPENDENCY: {"workload": Kind.NAME, "when": Kind.WHEN},
    Code.DEPENDENCY_NEVER: {"workload": Kind.NAME, "when": Kind.WHEN},
    Code.ARRAY_THROTTLE: {"array": Kind.NAME, "throttle": Kind.COUNT},
    Code.PROJECT_ON_HOLD: {"project": Kind.NAME},
    Code.USER_RUNNING: {"user": Kind.NAME, "project": Kind.NAME, "running": Kind.COUNT, "limit": Kind.COUNT},
    Code.USER_UNITS: {
        "user": Kind.NAME,
        "project": Kind.NAME,
        "used": Kind.UNITS,
        "limit": Kind.UNITS,
        "asked": Kind.UNITS,
    },
    Code.CAP: {
        "project": Kind.NAME,
        "used": Kind.UNITS,
        "cap": Kind.UNITS,
        "left": Kind.UNITS,
        "asked": Kind.UNITS,
        "model": Kind.NAME,
    },
    Code.CAP_NEVER: {
        "project": Kind.NAME,
        "used": Kind.UNITS,
        "cap": Kind.UNITS,
        "left": Kind.UNITS,
        "asked": Kind.UNITS,
        "model": Kind.NAME,
    },
    Code.MEMORY_CAP: {"project": Kind.NAME, "used": Kind.MIB, "cap": Kind.MIB, "asked": Kind.MIB},
    Code.MEMORY_CAP_NEVER: {"project": Kind.NAME, "cap": Kind.MIB, "asked": Kind.MIB},
    Code.DAILY_LIMIT: {
        "project": Kind.NAME,
        "spent": Kind.GPU_HOURS,
        "limit": Kind.GPU_HOURS,
        "until": Kind.CLOCK,
    },
    Code.NO_BORROWING: {
        "project": Kind.NAME,
        "used": Kind.UNITS,
        "guarantee": Kind.UNITS,
        "asked": Kind.UNITS,
    },
    Code.MAINTENANCE: {
        "node": Kind.NAME,
        "start": Kind.CLOCK,
        "end": Kind.CLOCK,
        "limit_needed": Kind.SPAN,
        "limit": Kind.SPAN,
    },
    Code.TAINT: {"taint": Kind.NAME, "node": Kind.NAME},
    Code.MODEL: {"model": Kind.NAME},
    Code.LABELS: {"labels": Kind.NAME},
    Code.NODES_CLOSED: {"nodes": Kind.NODES, "node": Kind.NAME, "why": Kind.STATE},
    Code.GPU_NEVER: {"asked": Kind.GPUS, "most": Kind.GPUS},
    Code.TOTAL_NEVER: {"pods": Kind.PODS, "asked": Kind.GPUS, "total": Kind.GPUS, "places": Kind.COUNT},
    Code.GPU_MEMORY_NEVER: {"asked": Kind.MIB, "largest": Kind.MIB},
    Code.GPU_MEMORY_UNKNOWN: {"node": Kind.NAME},
    Code.CPU_NEVER: {"asked": Kind.CPUS, "most": Kind.CPUS},
    Code.RAM_NEVER: {"asked": Kind.BYTES, "most": Kind.BYTES},
    Code.ONE_NODE: {"asked": Kind.GPUS, "most": Kind.GPUS, "free": Kind.GPUS},
    Code.GPUS: {"asked": Kind.GPUS, "free": Kind.GPUS},
    Code.SHARE: {"asked": Kind.UNITS, "most": Kind.UNITS},
    Code.GPU_MEMORY: {"asked": Kind.MIB, "most": Kind.MIB},
    Code.SLOTS: {"asked": Kind.SLOTS, "free": Kind.SLOTS},
    Code.DISTINCT: {"asked": Kind.GPUS, "have": Kind.GPUS},
    Code.CPU: {"asked": Kind.CPUS, "most": Kind.CPUS, "node": Kind.NAME},
    Code.RAM: {"asked": Kind.BYTES, "most": Kind.BYTES, "node": Kind.NAME},
    Code.POD_SLOTS: {"asked": Kind.POD_SLOTS, "free": Kind.POD_SLOTS, "node": Kind.NAME},
    Code.EXCLUSIVE: {"node": Kind.NAME, "by": Kind.NAME},
    Code.GANG: {"needed": Kind.PODS, "placeable": Kind.PODS},
    Code.DOMAIN: {"level": Kind.NAME, "needed": Kind.PODS, "domain": Kind.NAME, "placeable": Kind.PODS},
    Code.SPREAD: {"level": Kind.NAME, "needed": Kind.COUNT, "have": Kind.COUNT},
    Code.EVICTING: {"pods": Kind.PODS, "nodes": Kind.NAME},
    Code.LEAVING: {"pods": Kind.PODS},
    Code.AHEAD: {"workload": Kind.NAME},
    Code.RESERVED: {"workload": Kind.NAME},
    Code.EVICTIONS_OFF: {
        "project": Kind.NAME,
        "used": Kind.UNITS,
        "guarantee": Kind.UNITS,
        "asked": Kind.UNITS,
    },
    Code.BORROWING: {
        "project": Kind.NAME,
        "used": Kind.UNITS,
        "guarantee": Kind.UNITS,
        "asked": Kind.UNITS,
    },
    Code.NOTHING_TO_RECLAIM: {
        "project": Kind.NAME,
        "used": Kind.UNITS,
        "guarantee": Kind.UNITS,
        "asked": Kind.UNITS,
    },
    Code.GROWTH_CAP: {"missing": Kind.PODS, "project": Kind.NAME, "used": Kind.UNITS, "cap": Kind.UNITS},
    Code.GROWTH_ROOM: {"missing": Kind.PODS},
    Code.ALL_MODELS: {"models": Kind.NAME},
}

REMEDY_PARAMS: dict[Change, dict[str, Kind]] = {
    Change.FEWER_PODS: {"asked": Kind.COUNT, "pods": Kind.PODS},
    Change.FEWER_GPUS: {"asked": Kind.COUNT, "gpus": Kind.GPUS},
    Change.FEWER_CPUS: {"asked": Kind.CPUS, "cpus": Kind.CPUS},
    Change.OTHER_MODEL: {"asked": Kind.NAME, "model": Kind.NAME},
    Change.WIDER_LEVEL: {"asked": Kind.NAME, "level": Kind.NAME},
    Change.SHORTER_LIMIT: {"asked": Kind.SPAN, "limit": Kind.SPAN},
    Change.PREEMPTIBLE: {"project": Kind.NAME, "guarantee": Kind.UNITS},
}
