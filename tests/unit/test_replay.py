"""Replays end to end: hand-made traces with known ends, a cut of each real one, and what the command prints."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest

from allmende.cli.replay import per_cent, quantile, replay
from allmende.engine.state import State
from allmende.model.cluster import Device, Node, Pod, Slice
from allmende.model.event import NodeSet
from allmende.model.mistake import Mistake
from allmende.model.request import Ask, Where
from allmende.model.standing import Phase, Standing
from allmende.model.units import GPU, SECOND
from allmende.model.workload import Role
from allmende.sim import openb as packing
from allmende.sim import philly as queueing
from allmende.sim import replay as replaying
from allmende.sim.traces import openb as openb_trace
from allmende.sim.traces import philly as philly_trace
from allmende.sim.traces.table import Job

SHARED = Path(os.environ.get("ALLMENDE_SHARED", "../shared")) / "data"
real = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no traces in {SHARED}: set ALLMENDE_SHARED")


def quiet(done: int, total: int) -> None:
    """Progress that nobody watches."""


def _pod(name: str, ask: Ask, *models: str) -> Job:
    return Job(name, "openb", "", 0, None, (Role("pod", 1, ask, Where(models=models)),))


def _job(name: str, project: str, submit: int, seconds: int, gpus: int) -> Job:
    return Job(name, project, "", submit * SECOND, seconds * SECOND, philly_trace.roles(gpus, queueing.PER_NODE))


def test_openb_counts_what_failed_and_why() -> None:
    nodes = [
        Node("a", (Device(0), Device(1)), "P100", cpu=10_000, ram=100),
        Node("b", (Device(0), Device(1)), "T4", cpu=10_000, ram=100),
    ]
    jobs = [
        _pod("p1", Ask(whole=1), "P100"),
        _pod("p2", Ask(whole=2), "T4"),
        _pod("p3", Ask(share=GPU // 4)),
        _pod("p4", Ask(cpu=9_000)),
        _pod("p5", Ask(whole=1), "T4"),  # T4 is full
        _pod("p6", Ask(whole=4)),  # no node has four
        _pod("p7", Ask(share=GPU // 2), "G2"),  # nobody has a G2
    ]
    found = packing.openb(nodes, jobs, quiet)
    assert found.unbalanced == []
    assert (found.capacity, found.allocated) == (4 * GPU, 3 * GPU + GPU // 4)
    assert (found.free_whole, found.free_partial, found.partial) == (0, GPU * 3 // 4, 1)
    assert [(size.name, size.arrived, sum(size.failed.values())) for size in found.sizes] == [
        ("CPU only", 1, 0),
        ("share of a GPU", 2, 1),
        ("1 GPU", 2, 1),
        ("2 GPUs", 1, 0),
        ("4 GPUs", 1, 1),
        (packing.CONSTRAINED, 4, 2),
    ]
    assert [size.failed_units for size in found.sizes] == [0, GPU // 2, GPU, 0, 4 * GPU, GPU + GPU // 2]
    assert "gpu_never" in found.sizes[4].failed


def test_philly_waits_and_ends_as_by_hand() -> None:
    jobs = [_job("j1", "vc", 0, 100, 8), _job("j2", "vc", 10, 50, 8), _job("j3", "vc", 20, 60, 12)]
    found = queueing.philly(jobs, 16, quiet)
    # j1 and j2 start at once; j3 needs both nodes (8 + 4) and starts when j1 ends.
    assert found.waits == [0, 0, 80 * SECOND]
    assert found.completions == [50 * SECOND, 100 * SECOND, 140 * SECOND]
    assert found.makespan == 160 * SECOND
    assert found.load == Fraction(8 * 100 + 8 * 50 + 12 * 60, 16 * 20)
    assert found.busy == Fraction(8 * 20 + 8 * 10, 16 * 20)
    every = found.everything
    assert (every.queued, every.held_queued) == (80 * SECOND, GPU * SECOND * (16 * 40 + 8 * 40))
    assert every.total == every.asked == GPU * SECOND * (800 + 400 + 720)
    assert (every.evictions, every.lost, found.never, found.unbalanced) == (0, 0, {}, [])


def test_philly_reclaims_a_guarantee_and_counts_what_is_lost() -> None:
    jobs = [
        _job("a1", "a", 0, 1000, 8),
        _job("a2", "a", 0, 1000, 8),
        _job("b1", "b", 10, 2000, 8),
    ]
    found = queueing.philly(jobs, 16, quiet)
    a, b = found.projects
    assert (a.guarantee, b.guarantee) == (8 * GPU, 8 * GPU)
    assert (a.evictions, b.evictions) == (1, 0)
    assert found.waits == [0, 0, 0]
    assert a.lost == 8 * GPU * 10 * SECOND
    assert found.everything.total == found.everything.asked + a.lost
    assert found.completions == [1000 * SECOND, 2000 * SECOND, 2000 * SECOND]


def test_philly_says_what_can_never_start() -> None:
    found = queueing.philly([_job("big", "vc", 0, 10, 24), _job("ok", "vc", 1, 10, 1)], 16, quiet)
    assert sum(found.never.values()) == 1
    assert len(found.completions) == 1


def test_speed_makes_submits_dense_and_nothing_else() -> None:
    (job,) = queueing.faster([_job("j", "vc", 70, 100, 1)], 7)
    assert (job.submit, job.duration) == (10 * SECOND, 100 * SECOND)
    (job,) = queueing.faster([_job("j", "vc", 27, 100, 1)], 2.7)
    assert job.submit == 10 * SECOND
    for speed in (0, -1, float("nan"), float("inf")):
        with pytest.raises(Mistake, match="is no speed"):
            queueing.faster([], speed)


def test_guarantees_are_whole_and_add_up() -> None:
    found = queueing.guarantees({"a": 700, "b": 299, "c": 1, "d": 0}, 1024)
    assert sum(found.values()) == 1024
    assert found == {"a": 703, "b": 301, "c": 10, "d": 10}
    assert sum(queueing.guarantees({"a": 0, "b": 0, "c": 0}, 8).values()) == 8


@pytest.mark.parametrize("gpus", [0, -8, 1023])
def test_gpus_make_whole_nodes(gpus: int) -> None:
    with pytest.raises(Mistake, match="whole nodes"):
        queueing.cluster(gpus)


def test_unbalanced_books_are_said() -> None:
    state = State()
    state.nodes["n"] = Node("n", (Device(0),))
    workload = replaying.workload_of(_job("j", "vc", 0, 1, 2))
    pod = Pod("j", 1, 0, 0, "n", (Slice(0, GPU), Slice(1, GPU // 2)))
    state.standings["j"] = Standing(workload, 0, (1,), 1, phase=Phase.RUNNING, attempt=1, started=0, pods=(pod,))
    assert replaying.unbalanced(state) == [
        f"j holds {GPU * 3 // 2} units and asks for {2 * GPU}",
        f"{GPU // 2} units are taken of GPU 1 of n",
    ]
    whole = msgspec.structs.replace(pod, slices=(Slice(0, GPU), Slice(0, GPU)))
    state.standings["j"] = Standing(workload, 0, (1,), 1, phase=Phase.RUNNING, attempt=1, started=0, pods=(whole,))
    assert replaying.unbalanced(state) == [f"{2 * GPU} units are taken of GPU 0 of n"]


def _left(nodes: Sequence[Node], state: State) -> dict[str, tuple[list[int], int, int]]:
    """What each node has left: units of each GPU, CPU and memory."""
    left = {node.name: ([GPU] * len(node.devices), node.cpu or 0, node.ram or 0) for node in nodes}
    for standing in state.standings.values():
        for pod in standing.pods:
            gpus, cpu, ram = left[pod.node]
            for part in pod.slices:
                gpus[part.device] -= part.units
            ask = standing.workload.roles[pod.role].ask
            left[pod.node] = (gpus, cpu - ask.cpu, ram - ask.ram)
    return left


@real
def test_a_cut_of_openb() -> None:
    nodes, _ = openb_trace.read_nodes(str(SHARED / "openb"))
    jobs, _ = openb_trace.read_pods(str(SHARED / "openb"), "gpuspec33")
    nodes, jobs = nodes[::30], jobs[:450]
    found = packing.openb(nodes, jobs, quiet)
    every = [size for size in found.sizes if size.name != packing.CONSTRAINED]
    assert found.unbalanced == []
    assert sum(size.arrived for size in every) == 450
    assert found.allocated + found.free_whole + found.free_partial == found.capacity
    assert found.allocated + sum(size.failed_units for size in every) == sum(job.units for job in jobs)
    assert sum(sum(size.failed.values()) for size in every) > 0
    assert found.allocated * 10 > found.capacity * 7


@real
def test_who_fails_in_openb_fits_nowhere() -> None:
    nodes, _ = openb_trace.read_nodes(str(SHARED / "openb"))
    jobs, _ = openb_trace.read_pods(str(SHARED / "openb"), "gpuspec33")
    nodes, jobs = nodes[::30], jobs[:450]
    state = replaying.run([NodeSet(0, node) for node in nodes], jobs, replaying.Watch(jobs, quiet))
    left = _left(nodes, state)
    failed = [job for job in jobs if not state.standings[job.id].pods]
    assert failed
    for job in failed:
        ask, models = job.roles[0].ask, job.roles[0].where.models
        for node in nodes:
            gpus, cpu, ram = left[node.name]
            room = sum(units >= (ask.share or GPU) for units in gpus) >= (1 if ask.share else ask.whole)
            fits = room and cpu >= ask.cpu and ram >= ask.ram and (not models or node.model in models)
            assert not fits, f"{job.id} waits, but would fit on {node.name}"


@real
def test_a_cut_of_philly() -> None:
    jobs = queueing.faster(philly_trace.read_jobs(str(SHARED / "philly"))[0][:600], 7)
    small = [job for job in jobs if job.units <= 64 * GPU]
    found = queueing.philly(small, 64, quiet)
    assert found.unbalanced == []
    assert (len(found.waits), len(found.completions), found.never) == (len(small), len(small), {})
    assert found.everything.total == found.everything.asked + found.everything.lost
    assert sum(one.total for one in found.projects) == found.everything.total
    assert found.makespan >= found.last_submit
    assert found.waits[-1] > 0


def _files(folder: Path, pods: Sequence[str]) -> str:
    (folder / "openb_node_list_gpu_node.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n")
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time\n"
    (folder / "openb_pod_list_default.csv").write_text(header + "\n".join(pods) + "\n")
    jobs = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
    (folder / "philly_jobs_82k.csv.gz").write_bytes(gzip.compress(jobs.encode()))
    return str(folder)


def test_the_openb_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _files(tmp_path, ["p0,1000,1024,1,1000,,0", "p1,1000,1024,1,460,,1", "p2,1000,1024,1,1000,,2"])
    out = io.StringIO()
    assert replay("openb", folder, list_name="default", speed=1, gpus=8, out=out) == 0
    text = out.getvalue()
    assert "openb, list default: 1 nodes, 2 GPUs, 3 pods" in text
    for row in (("arrived", "2.46", "123.00 %"), ("allocated", "1.46", "73.00 %"), ("1 GPU", "2", "1", "1")):
        assert any(all(cell in line for cell in row) for line in text.splitlines()), row
    assert "books: allocated = what the running ask for" in text
    assert "openb default: 100 %" in capsys.readouterr().err


def test_the_philly_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    assert replay("philly", _files(tmp_path, []), list_name="", speed=7, gpus=16, out=out) == 0
    text = out.getvalue()
    assert "philly x7: 2 nodes of 8 GPUs, 1 jobs" in text
    assert "makespan: 1 min 06 s" in text
    assert "11cb48" in text
    assert "philly x7: 100 %" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "speed", "gpus", "says"),
    [
        ("openb", 7, 8, "no rows below its header"),
        ("philly", 0, 8, "is no speed"),
        ("philly", 7, 12, "whole nodes of 8 GPUs"),
        ("helios", 7, 8, "write openb or philly"),
    ],
)
def test_bad_input_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, speed: float, gpus: int, says: str
) -> None:
    folder = _files(tmp_path, [])
    assert replay(kind, folder, list_name="default", speed=speed, gpus=gpus, out=io.StringIO()) == 2
    assert says in capsys.readouterr().err


def test_quantiles_and_per_cent() -> None:
    assert [quantile(list(range(1, 11)), q) for q in (50, 90, 99, 100)] == [5, 9, 10, 10]
    assert [quantile([7], q) for q in (1, 99)] == [7, 7]
    assert [per_cent(1, 3), per_cent(2, 3), per_cent(12_345, 10), per_cent(1, 0)] == [
        "33.33 %",
        "66.67 %",
        "123,450.00 %",
        "-",
    ]
