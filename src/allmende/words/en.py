"""The English catalogue."""

from allmende.model.decision import Cause
from allmende.model.reason import Code, Param, Waiting
from allmende.model.remedy import Change
from allmende.model.span import DAY, HOUR, MINUTE, SECOND
from allmende.model.units import GPU, show_gpus
from allmende.words.catalogue import Catalogue
from allmende.words.figure import clock, cpus, gpu_hours, memory, span
from allmende.words.params import Kind

_WORDS = {
    Kind.WHEN: {"after": "in any way", "afterok": "well", "afternotok": "badly"},
    Kind.STATE: {"not_ready": "not ready"},
}
_TIME = {DAY: " d", HOUR: " h", MINUTE: " min", SECOND: " s"}
_NOUN = {
    Kind.PODS: "pod",
    Kind.NODES: "node",
    Kind.SLOTS: "shared slot",
    Kind.POD_SLOTS: "pod slot",
    Kind.GPUS: "GPU",
}


def figure(kind: Kind, value: Param) -> str:
    """A param as English writes it."""
    if kind in _NOUN:
        return f"{value} {_NOUN[kind]}{'' if str(value) == '1' else 's'}"
    if isinstance(value, str):
        return _WORDS.get(kind, {}).get(value, value)
    match kind:
        case Kind.UNITS:
            return f"{show_gpus(value)} GPU{'s' if value > GPU or value == 0 else ''}"
        case Kind.GPU_HOURS:
            hours = gpu_hours(value)
            return f"{hours} GPU-hour{'' if hours == '1' else 's'}"
        case Kind.MIB:
            return f"{value} MiB"
        case Kind.CPUS:
            return f"{cpus(value)} CPU{'' if value == 1000 else 's'}"
        case Kind.BYTES:
            return memory(value)
        case Kind.SPAN:
            return f"{value // SECOND} s ({span(value, _TIME)})"
        case Kind.CLOCK:
            return clock(value)
        case _:
            return str(value)


_REASONS = {
    Code.NOT_CONSIDERED: "It was submitted since the last pass and is not yet considered.",
    Code.DEPENDENCY: "It starts after {workload} has ended {when}.",
    Code.DEPENDENCY_NEVER: "It was to start after {workload} had ended {when}, but {workload} ended otherwise.",
    Code.ARRAY_THROTTLE: "Array {array} runs as many at once as its throttle allows: {throttle}.",
    Code.PROJECT_ON_HOLD: "Project {project} is on hold, so nothing new of it starts.",
    Code.USER_RUNNING: "{user} runs {running} in project {project}, where the limit for each user is {limit} at once.",
    Code.USER_UNITS: (
        "It asks for {asked}; {user} uses {used} in project {project}, where the limit for each user is {limit}."
    ),
    Code.CAP: (
        "It asks for {asked} together; project {project} uses {used} of its limit of {cap}, which leaves {left}."
    ),
    Code.CAP_NEVER: "It asks for {asked} together, more than the limit of {cap} of project {project}.",
    Code.MEMORY_CAP: "It asks for {asked} of GPU memory; project {project} uses {used} of its limit of {cap}.",
    Code.MEMORY_CAP_NEVER: "It asks for {asked} of GPU memory, more than the limit of {cap} of project {project}.",
    Code.DAILY_LIMIT: "Project {project} has spent {spent} of its daily limit of {limit}; a new day begins at {until}.",
    Code.NO_BORROWING: (
        "It asks for {asked} and does not borrow; project {project} uses {used} of its guarantee of {guarantee}."
    ),
    Code.MAINTENANCE: "Nothing may run on node {node} during its maintenance from {start} until {end}.",
    Code.TAINT: "It does not tolerate the taint {taint} of nodes that could take it, such as {node}.",
    Code.MODEL: "No node has GPUs of model {model}.",
    Code.LABELS: "No node carries the labels that it asks for ({labels}).",
    Code.NODES_CLOSED: "There is no node that could take it.",
    Code.GPU_NEVER: "A pod asks for {asked} on one node, and the largest node has {most}.",
    Code.TOTAL_NEVER: (
        "It asks for {asked} together ({pods}), and all nodes that it may use have {total},"
        " with places for {places} such pods."
    ),
    Code.GPU_MEMORY_NEVER: "A pod asks for {asked} of GPU memory, and the largest GPU has {largest}.",
    Code.GPU_MEMORY_UNKNOWN: (
        "The GPU memory of node {node} is unknown (not reported), so no request by memory can be placed there."
    ),
    Code.CPU_NEVER: "A pod asks for {asked} on one node, and the largest node has {most}.",
    Code.RAM_NEVER: "A pod asks for {asked} of memory on one node, and the largest node has {most}.",
    Code.ONE_NODE: "A pod asks for {asked} on one node; at most {most} on one node and {free} in all are free.",
    Code.GPUS: "A pod asks for {asked}, and what is left for it comes to {free}.",
    Code.SHARE: "A pod asks for {asked}, and the most that is left on one GPU is {most}.",
    Code.GPU_MEMORY: "A pod asks for {asked} of GPU memory, and the most that is left on one GPU is {most}.",
    Code.SLOTS: "A pod asks for {asked} and can get {free}.",
    Code.DISTINCT: "A pod asks for slots on {asked}, all different, and slots are free on {have}.",
    Code.CPU: "A pod asks for {asked}, and the most that is free beside the GPUs it needs is {most}, on node {node}.",
    Code.RAM: "A pod asks for {asked} of memory, and the most that is free on a node is {most}, on node {node}.",
    Code.POD_SLOTS: "A pod needs {asked}, and nodes that could take it have {free} left.",
    Code.EXCLUSIVE: "Exclusive use of node {node} stands in the way.",
    Code.GANG: "Its {needed} are placed together or not at all, and there is room for {placeable}.",
    Code.DOMAIN: (
        "Its {needed} must be together in one {level}; the one with the most room, {domain}, can take {placeable}."
    ),
    Code.SPREAD: "Each of its pods needs its own {level}: {needed} are needed, and {have} have room.",
    Code.EVICTING: "It is waiting for evicted pods to leave the room that is kept for it ({pods}, nodes: {nodes}).",
    Code.LEAVING: "Pods of its own last attempt are still ending ({pods}).",
    Code.AHEAD: "{workload} is ahead of it in a strict queue and waits for the same nodes.",
    Code.RESERVED: "The room that it could use is reserved for {workload}, which comes first.",
    Code.EVICTIONS_OFF: (
        "Evictions are switched off, so nothing is taken back for it: it asks for {asked},"
        " and project {project} uses {used} of its guarantee of {guarantee}."
    ),
    Code.BORROWING: (
        "Project {project} uses {used} and would be above its guarantee of {guarantee} with it,"
        " so no running work is evicted for it."
    ),
    Code.NOTHING_TO_RECLAIM: (
        "Project {project} uses {used} of its guarantee of {guarantee},"
        " but evicting what others hold above theirs would not make room for it."
    ),
    Code.GROWTH_CAP: "It runs and wants {missing} more; project {project} uses {used} of its limit of {cap}.",
    Code.GROWTH_ROOM: "It runs and wants {missing} more, for which there is no room yet.",
    Code.ALL_MODELS: "None of the GPU models that it may use can take it now.",
}

_GIVEN = {
    (Code.CAP, ("model",)): (
        "It asks for {asked} of model {model} together; project {project} uses {used} of its {model} limit of {cap},"
        " which leaves {left}."
    ),
    (Code.CAP_NEVER, ("model",)): (
        "It asks for {asked} of model {model} together, more than the {model} limit of {cap} of project {project}."
    ),
    (Code.MAINTENANCE, ("limit", "limit_needed")): (
        "Its time limit of {limit} reaches into the maintenance of node {node}, which begins at {start};"
        " with a limit of at most {limit_needed} it can start now."
    ),
    (Code.MAINTENANCE, ("limit_needed",)): (
        "It has no time limit, and maintenance of node {node} begins at {start};"
        " with a limit of at most {limit_needed} it can start now."
    ),
    (Code.NODES_CLOSED, ("node", "why")): (
        "The nodes that could take it accept nothing new ({nodes}, such as {node}: {why})."
    ),
    (Code.NODES_CLOSED, ("node",)): "The nodes that could take it accept nothing new ({nodes}, such as {node}).",
    (Code.EXCLUSIVE, ("by",)): "Exclusive use of node {node} stands in the way: {by} runs there.",
    (Code.POD_SLOTS, ("node",)): (
        "A pod needs {asked}, and nodes that could take it, such as {node}, have {free} left."
    ),
}

_WAITING = {
    Waiting.HELPS: "Waiting helps: it starts by itself.",
    Waiting.NEEDS_CHANGE: "It waits until somebody changes this or the request.",
    Waiting.NEVER: "Waiting will not help: as it was asked, it can never start.",
}

_REMEDIES = {
    Change.FEWER_PODS: "With {pods} instead of {asked} it could start now.",
    Change.FEWER_GPUS: "With {gpus} for each pod instead of {asked} it could start now.",
    Change.FEWER_CPUS: "With {cpus} for each pod instead of {asked} it could start now.",
    Change.OTHER_MODEL: "On GPUs of model {model} instead of {asked} it could start now.",
    Change.WIDER_LEVEL: "Spread anywhere, not within one {asked}, it could start now.",
    Change.SHORTER_LIMIT: "With a time limit of at most {limit} it could start now.",
    Change.PREEMPTIBLE: (
        "As preemptible work, above the guarantee of {guarantee} of project {project}, it could start now."
    ),
}

_REMEDIES_GIVEN: dict[tuple[Change, tuple[str, ...]], str] = {
    (Change.WIDER_LEVEL, ("level",)): "Spread within one {level}, not one {asked}, it could start now.",
    (Change.SHORTER_LIMIT, ("asked",)): "With a time limit of at most {limit} instead of {asked} it could start now.",
}

_CAUSES = {
    Cause.RECLAIM: "a project takes its guarantee back",
    Cause.PRIORITY: "work of higher priority in the same project needs the room",
    Cause.FAIR_SHARE: "a project below its fair share needs the room",
    Cause.NODE_LOST: "its node is lost",
    Cause.GPU_LOST: "its GPU is lost",
    Cause.GANG_BROKEN: "too few of its pods are left for the gang to work",
    Cause.UNBOUND: "its pods never came up",
    Cause.TIME_LIMIT: "its time limit is reached",
    Cause.SHRINK: "fewer pods are wanted than run",
}

_DECISIONS = {
    "start": "{workload} starts on {places}",
    "grow": "{workload} grows by {pods} on {places}",
    "evict": "{workload} loses {pods}: {cause}",
    "hold": "{workload} gets room kept on {places}",
    "release": "{workload} gives up the room kept for it",
    "stop": "{workload} is stopped: {cause}",
    "close": "node {node} is closed to new work: {why}",
    "place": "{node} (GPU {gpus})",
}

_EVENTS = {
    "submitted": "{workload} is submitted: {pods}, {gpus} in all",
    "up": "{workload} is running",
    "cancelled": "{workload} is cancelled by its owner",
    "resized": "{workload} is resized: {pods} wanted",
    "pod_ok": "{pod} has ended well",
    "pod_failed": "{pod} has failed",
    "pod_gone": "{pod} has left",
    "pod_lost": "{pod} is lost: {why}",
    "ended_ok": "{workload} has ended well",
    "ended_failed": "{workload} has failed",
    "checkpointed": "{workload} has a complete checkpoint of {made}",
    "node": "node {node} has {gpus} of model {model}",
    "node_plain": "node {node} has {gpus}",
    "node_state": "node {node} is {state}",
    "node_gone": "node {node} is gone",
    "project": "project {project} is set: guarantee {guarantee}",
}

_SCREEN = {
    "job": "job",
    "project": "project",
    "gpus": "GPUs",
    "state": "state",
    "since": "since",
    "told": "what happens",
    "waited": "waited",
    "ran": "ran",
    "evicted": "evicted",
    "end": "end",
    "later": "comes later",
    "queued": "queued, place {position}",
    "running": "runs",
    "ending": "ends",
    "ended_ok": "ended well",
    "ended_failed": "failed",
    "never": "can never start",
    "waits": "still waits",
    "waiting": "{workload} waits. {reason}",
    "growing": "{workload} could grow. {reason}",
    "nodes": "virtual GPUs: {nodes}",
    "summary": "what became of the jobs",
    "logs": "output of the jobs: {folder}",
    "log": "event log: {file}",
    "stuck": "nothing runs and nothing can change any more; the run ends with jobs that still wait",
    "interrupted": "interrupted: all processes were ended",
    "simulated": "simulated",
    "real_jobs": "twelve real jobs on {gpus}: {file}",
    "exit_code": "pod {pod} of attempt {attempt} ended with exit code {code}; see {log}",
    "exit_forbidden": (
        "pod {pod} of attempt {attempt} ended with exit code {code} (the command is not executable); see {log}"
    ),
    "exit_not_found": (
        "pod {pod} of attempt {attempt} ended with exit code {code} (the command was not found); see {log}"
    ),
    "exit_signal": "pod {pod} of attempt {attempt} ended with signal {code}; see {log}",
    "unstartable": "pod {pod} of attempt {attempt} cannot start {program}: {why}",
    "forced": "pod {pod} of attempt {attempt} was ended by force when its grace was over",
}

CATALOGUE = Catalogue(
    reasons=_REASONS,
    given=_GIVEN,
    waiting=_WAITING,
    growing="Waiting helps: the rest comes by itself.",
    on_model="{model}: {sentence}",
    remedies=_REMEDIES,
    remedies_given=_REMEDIES_GIVEN,
    causes=_CAUSES,
    claimed="{text} (for {claimant})",
    decisions=_DECISIONS,
    events=_EVENTS,
    screen=_SCREEN,
    figure=figure,
)
