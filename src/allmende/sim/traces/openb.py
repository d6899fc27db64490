"""The openb trace (Alibaba, cluster-trace-gpu-v2023): 1,213 GPU nodes, and lists of pods that ask for GPUs and shares.

Pods only arrive here, in the order of their creation; that is how the published placement results use them.
"""

from __future__ import annotations

import re

from allmende.model.cluster import Device, Node
from allmende.model.mistake import Mistake, MistakeCode, quoted
from allmende.model.quantity import MIB, MOST
from allmende.model.request import Ask, Where
from allmende.model.units import GPU, SECOND
from allmende.model.workload import Role
from allmende.sim.traces.table import Job, Tally, find, listed, read_rows, whole

UPSTREAM = "the repository alibaba/clusterdata, folder cluster-trace-gpu-v2023/csv"
PROJECT = "openb"
"""The one project that all pods are of: the trace has no owners."""

_NODES = "openb_node_list_gpu_node"
_PODS = "openb_pod_list_"
_NODE_ROWS = 1213
_POD_ROWS = {
    **dict.fromkeys(("default", "gpushare20", "gpushare40", "gpushare60", "gpushare80", "gpushare100"), 8152),
    **dict.fromkeys(("gpuspec05", "gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33"), 8152),
    **{"cpu0": 7064, "cpu037": 7336, "cpu050": 7439, "cpu072": 7608, "cpu100": 7853, "cpu200": 8832, "cpu235": 9240},
    **{"cpu250": 9420, "cpu300": 10094, "multigpu20": 8324, "multigpu30": 8508, "multigpu40": 8746, "multigpu50": 9061},
}
_NEEDED = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_MAYBE = ("creation_time", "gpu_spec", "qos", "pod_phase", "deletion_time", "scheduled_time")
_MOST_GPUS = 1024  # of one node or pod; a larger figure is a slip
_LIST = re.compile(r"[A-Za-z0-9]{1,40}")


def read_nodes(folder: str) -> tuple[list[Node], Tally]:
    """The GPU nodes, in the file's order, with their CPUs, memory, GPUs and GPU model. Raises Mistake (see `table`)."""
    path = find(folder, (_NODES,), UPSTREAM)
    tally = Tally(str(path), _NODE_ROWS)
    nodes: dict[str, Node] = {}
    for where, fields in read_rows(path, ("sn", "cpu_milli", "memory_mib", "gpu", "model"), tally):
        try:
            node = _node(*fields)
            _new(node.name, nodes)
        except Mistake as mistake:
            tally.refuse(mistake.at(where))
        else:
            nodes[node.name] = node
    tally.kept = len(nodes)
    return list(nodes.values()), tally.close()


def read_pods(folder: str, list_name: str) -> tuple[list[Job], Tally]:
    """The pods of a list ('default', 'gpushare100', ...) in the order of creation, each a job of one pod without end.

    Lists without creation times keep the file's order, one pod a second. Raises Mistake (see `table`).
    """
    if not _LIST.fullmatch(list_name):
        raise Mistake(MistakeCode.UNKNOWN_NAME, list_name, "--list", "write a list's name such as default")
    try:
        path = find(folder, (_PODS + list_name,), UPSTREAM)
    except Mistake as mistake:
        names = listed(folder, _PODS)
        if not names:
            raise
        do = f"write one of {', '.join(names)}, or get the file from {UPSTREAM}"
        raise Mistake(mistake.code, mistake.what, "--list", do, mistake.wrong) from mistake
    tally = Tally(str(path), _POD_ROWS.get(list_name, 0))
    jobs: dict[str, Job] = {}
    timed: bool | None = None
    roles: dict[Role, Role] = {}  # equal requests are one object: 8,152 pods have about 150
    for where, (name, cpu, memory, gpus, milli, created, spec, *_) in read_rows(path, _NEEDED, tally, _MAYBE):
        timed = bool(created) if timed is None else timed
        try:
            role = _role(cpu, memory, gpus, milli, spec)
            submit = whole(created, "creation_time", MOST // SECOND) if timed else len(jobs)
            _new(name, jobs)
        except Mistake as mistake:
            tally.refuse(mistake.at(where))
        else:
            jobs[name] = Job(name, PROJECT, "", submit * SECOND, None, (roles.setdefault(role, role),))
    tally.kept = len(jobs)
    if not timed:
        tally.remarks.append("no creation times: the file's order, one pod a second")
    return sorted(jobs.values(), key=lambda job: job.submit), tally.close()


def _new(name: str, known: dict[str, Node] | dict[str, Job]) -> None:
    if not name:
        raise Mistake(MistakeCode.EMPTY, name, "name", "give it a name", "has no name")
    if name in known:
        raise Mistake(MistakeCode.DUPLICATE, name, "name", "leave one of the two rows out", "has a name used before")


def _node(name: str, cpu: str, memory: str, gpus: str, model: str) -> Node:
    devices = tuple(Device(index) for index in range(whole(gpus, "gpu", _MOST_GPUS)))
    return Node(name, devices, model, cpu=whole(cpu, "cpu_milli"), ram=whole(memory, "memory_mib", MOST // MIB) * MIB)


def _role(cpu: str, memory: str, gpus: str, milli: str, spec: str) -> Role:
    """What one pod asks for; a share only with exactly one GPU, and its size counts for nothing without a GPU."""
    count = whole(gpus, "num_gpu", _MOST_GPUS)
    each = whole(milli, "gpu_milli", 1000)
    share = count == 1 and 0 < each < 1000
    if count and not share and each != 1000:
        do = "a share needs num_gpu 1 and a gpu_milli of 1 to 999; whole GPUs have gpu_milli 1000"
        what = f"num_gpu {quoted(gpus)}, gpu_milli {quoted(milli)}"
        raise Mistake(
            MistakeCode.NOT_A_SHARE, what, "gpu_milli", do, "has GPUs that are neither whole nor a share of one"
        )
    ask = Ask(
        whole=0 if share else count,
        share=each * GPU // 1000 if share else 0,
        cpu=whole(cpu, "cpu_milli"),
        ram=whole(memory, "memory_mib", MOST // MIB) * MIB,
    )
    models = tuple(dict.fromkeys(part for part in spec.split("|") if part)) if count else ()
    return Role("pod", 1, ask, Where(models=models))
