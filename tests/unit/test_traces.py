"""Trace readers: what a good file reads as, what every kind of broken file is answered, and the real files."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from allmende.model.mistake import Mistake, MistakeCode, Mistakes
from allmende.model.quantity import MIB
from allmende.model.request import Ask
from allmende.model.units import GPU, SECOND
from allmende.sim.traces import openb, philly

SHARED = Path(os.environ.get("ALLMENDE_SHARED", "../shared")) / "data"

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,8,G2\n"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,1000,,LS,Running,30,100,30
p1,6000,12288,1,460,T4|P100|T4,LS,Running,10,100,10
p2,500,1024,0,0,T4,BE,Pending,10,100,
p3,8000,65536,8,1000,G2,LS,Running,20,100,20
"""
JOBS = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-08 23:59:59,2951.5,12,35418.0,6214e9
2017-10-09 07:01:55,10,16,160,11cb48

"""


def _openb(folder: Path, nodes: str = NODES, pods: str = PODS) -> str:
    (folder / "openb_node_list_gpu_node.csv").write_text(nodes)
    (folder / "openb_pod_list_default.csv").write_text(pods)
    return str(folder)


def _philly(folder: Path, jobs: str = JOBS) -> str:
    (folder / "philly_jobs_82k.csv.gz").write_bytes(gzip.compress(jobs.encode()))
    return str(folder)


def test_openb_nodes(tmp_path: Path) -> None:
    nodes, tally = openb.read_nodes(_openb(tmp_path))
    assert [(n.name, n.model, len(n.devices), n.cpu, n.ram) for n in nodes] == [
        ("n0", "P100", 2, 64000, 262144 * MIB),
        ("n1", "G2", 8, 96000, 393216 * MIB),
    ]
    assert (tally.rows, tally.kept) == (2, 2)
    assert "the published file has 1,213 rows: is this one whole?" in "\n".join(tally.lines())


def test_openb_pods_come_in_order_of_creation(tmp_path: Path) -> None:
    jobs, _ = openb.read_pods(_openb(tmp_path), "default")
    assert [(job.id, job.submit, job.duration) for job in jobs] == [
        ("p1", 10 * SECOND, None),
        ("p2", 10 * SECOND, None),
        ("p3", 20 * SECOND, None),
        ("p0", 30 * SECOND, None),
    ]
    assert [job.units * 1000 // GPU for job in jobs] == [460, 0, 8000, 1000]
    share, cpu_only, eight, one = (job.roles[0] for job in jobs)
    assert share.ask == Ask(share=460 * GPU // 1000, cpu=6000, ram=12288 * MIB)
    assert share.where.models == ("T4", "P100")
    assert cpu_only.where.models == ()  # without a GPU its model binds nothing
    assert (eight.ask.whole, one.ask.whole) == (8, 1)


def test_openb_without_creation_times_keeps_the_order(tmp_path: Path) -> None:
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nb,1,1,1,1000\na,1,1,1,1000\n"
    jobs, tally = openb.read_pods(_openb(tmp_path, pods=pods), "default")
    assert [(job.id, job.submit) for job in jobs] == [("b", 0), ("a", SECOND)]
    assert tally.remarks == ["no creation times: the file's order, one pod a second"]


def test_philly_jobs(tmp_path: Path) -> None:
    jobs, tally = philly.read_jobs(_philly(tmp_path))
    first, second, third = jobs
    assert [(job.id, job.project, job.pods) for job in jobs] == [
        ("job-000003", "6214e9", 2),
        ("job-000002", "11cb48", 1),
        ("job-000004", "11cb48", 2),
    ]
    assert (first.submit, second.submit) == (0, (7 * 3600 + 116) * SECOND)
    assert (first.duration, second.duration, third.duration) == (2_951_500_000, 66 * SECOND, 10 * SECOND)
    assert [(role.pods, role.ask.whole) for role in first.roles] == [(1, 8), (1, 4)]
    assert [(role.pods, role.ask.whole) for role in third.roles] == [(2, 8)]
    assert [job.units // GPU for job in jobs] == [12, 1, 16]
    assert tally.blank == 1


def test_philly_splits_by_the_size_of_a_node(tmp_path: Path) -> None:
    jobs, _ = philly.read_jobs(_philly(tmp_path), per_node=4)
    assert [(role.pods, role.ask.whole) for role in jobs[0].roles] == [(3, 4)]


def test_upstream_name_and_unknown_columns(tmp_path: Path) -> None:
    text = "timestamp,duration,num_gpus,cluster,status\n2017-10-09 07:01:55,1,1,vc,Pass\n"
    (tmp_path / "philly.csv").write_text(text)
    jobs, tally = philly.read_jobs(str(tmp_path))
    assert len(jobs) == 1
    assert "unknown columns, not used: status" in tally.remarks


@pytest.mark.parametrize(
    ("name", "content", "code", "says"),
    [
        ("philly.csv", b"", MistakeCode.EMPTY, "has nothing in it"),
        ("philly.csv.gz", b"", MistakeCode.EMPTY, "has nothing in it"),
        ("philly.csv.gz", JOBS.encode(), MistakeCode.UNREADABLE, "is no gzip file, though its name says so"),
        ("philly.csv.gz", gzip.compress(JOBS.encode() * 999)[:-90], MistakeCode.UNREADABLE, "the file is cut"),
        ("philly.csv.gz", gzip.compress(JOBS.encode())[:-6] + b"\0" * 6, MistakeCode.UNREADABLE, "cannot be read"),
        ("philly.csv", b"version https://git-lfs.github.com/spec/v1\n", MistakeCode.UNREADABLE, "Git-LFS pointer"),
        ("philly.csv", b"\xff\xfe\x00" + JOBS.encode(), MistakeCode.UNREADABLE, "is not UTF-8"),
        ("philly.csv", b'timestamp,"duration', MistakeCode.UNREADABLE, "is no CSV"),
        ("philly.csv", b"timestamp,duration,num_gpus,cluster\n", MistakeCode.EMPTY, "no rows below its header"),
        ("philly.csv", b"timestamp,duration,cluster\n1,2,3\n", MistakeCode.MISSING, "has no column num_gpus"),
        ("philly.csv", JOBS.replace("gpu_time", "cluster").encode(), MistakeCode.DUPLICATE, "has cluster twice"),
        ("philly.csv", JOBS.encode()[:-30], MistakeCode.UNREADABLE, "is the last row and has 1 fields"),
        ("philly.csv", JOBS.replace("66.0,1", "soon,1").encode(), MistakeCode.UNREADABLE, "no number of seconds"),
        ("philly.csv", JOBS.replace(",16,160", ",1e3,160").encode(), MistakeCode.NOT_WHOLE, "num_gpus is no number"),
        ("philly.csv", JOBS.replace(",16,160", ",0,160").encode(), MistakeCode.ZERO, "in num_gpus is zero"),
        ("philly.csv", JOBS.replace(",16,160", ",999999999,1").encode(), MistakeCode.TOO_LARGE, "is too large"),
        ("philly.csv", JOBS.replace("2017-10-08", "2017-13-08").encode(), MistakeCode.UNREADABLE, "is no moment"),
        ("philly.csv", JOBS.replace("66.0,1,66.0,", "66.0,1,").encode(), MistakeCode.UNREADABLE, "has 4 fields"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, content: bytes, code: MistakeCode, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Mistake) as caught:
        philly.read_jobs(str(tmp_path))
    assert caught.value.code is code
    assert says in str(caught.value)
    assert name in str(caught.value)


def test_a_bad_row_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "philly.csv").write_text(JOBS.replace(",16,160", ",many,160"))
    with pytest.raises(Mistakes, match=r"philly\.csv:4: num_gpus: 'many' in num_gpus is no number; write a whole"):
        philly.read_jobs(str(tmp_path))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("p0,1,1,2,500,,,,1,,", "neither whole nor a share of one"),
        ("p0,1,1,1,0,,,,1,,", "neither whole nor a share of one"),
        ("p0,1,1,1,1001,,,,1,,", "gpu_milli is too large"),
        (",1,1,1,1000,,,,1,,", "has no name"),
        ("p0,1,1,1,1000,,,,1,,\np0,1,1,1,1000,,,,1,,", "has a name used before"),
        ("p0,1,1,1,1000,,,,1,,\np1,1,1,1,1000,,,,,,", "in creation_time is no number"),
        ("p0,-1,1,1,1000,,,,1,,", "in cpu_milli is no number"),
    ],
)
def test_broken_pods(tmp_path: Path, row: str, says: str) -> None:
    header = PODS.partition("\n")[0]
    folder = _openb(tmp_path, pods=f"{header}\n{row}\n")
    with pytest.raises(Mistakes, match=says):
        openb.read_pods(folder, "default")


def test_few_bad_rows_are_skipped_and_reported(tmp_path: Path) -> None:
    header, first, *_ = JOBS.splitlines()
    rows = [header, *[first] * 1999, first.replace("66.0,1", "66.0,one"), first.replace("66.0,1,", "66.0,")]
    (tmp_path / "philly.csv").write_text("\n".join([*rows, first]) + "\n")
    jobs, tally = philly.read_jobs(str(tmp_path))
    assert (len(jobs), tally.rows, tally.kept) == (2000, 2002, 2000)
    place = tmp_path / "philly.csv"
    assert [line for line in tally.lines() if line.startswith("  skipped")] == [
        f"  skipped 1: has 4 fields where the header has 5 (first: {place}:2002)",
        f"  skipped 1: in num_gpus is no number (first: {place}:2001: num_gpus)",
    ]


def test_many_bad_rows_refuse_the_file(tmp_path: Path) -> None:
    header, first, *_ = JOBS.splitlines()
    rows = [header, *[first] * 1999, *[first.replace("66.0,1", "66.0,one")] * 7, first]
    (tmp_path / "philly.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(Mistakes) as caught:
        philly.read_jobs(str(tmp_path))
    assert len(caught.value.found) == 6
    assert "7 of 2007 rows" in str(caught.value)


def test_a_last_line_without_its_end_is_remarked(tmp_path: Path) -> None:
    (tmp_path / "philly.csv").write_text(JOBS.rstrip())
    _, tally = philly.read_jobs(str(tmp_path))
    assert "line 4 has no line end: is the file whole?" in tally.remarks


def test_missing_files_name_themselves_and_their_source(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"has no file philly_jobs_82k\.csv or .*petuum/adaptdl"):
        philly.read_jobs(str(tmp_path))
    with pytest.raises(
        Mistake, match=r"is no folder; it should hold openb_node_list_gpu_node\.csv.*alibaba/clusterdata"
    ):
        openb.read_nodes(str(tmp_path / "nowhere"))
    with pytest.raises(Mistake, match=r"has no file openb_pod_list_default\.csv.*alibaba/clusterdata"):
        openb.read_pods(str(tmp_path), "default")
    folder = _openb(tmp_path)
    with pytest.raises(Mistake, match="write one of default, or get the file from"):
        openb.read_pods(folder, "defualt")
    with pytest.raises(Mistake, match="write a list's name"):
        openb.read_pods(folder, "../secret")


real = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no traces in {SHARED}: set ALLMENDE_SHARED")


@real
def test_the_real_openb() -> None:
    nodes, of_nodes = openb.read_nodes(str(SHARED / "openb"))
    jobs, of_pods = openb.read_pods(str(SHARED / "openb"), "default")
    assert (len(nodes), sum(len(node.devices) for node in nodes)) == (1213, 6212)
    assert len(jobs) == 8152
    assert sum(job.units for job in jobs) * 10 == 60_868 * GPU
    for tally in (of_nodes, of_pods):
        assert not tally.skipped
        assert len(tally.lines()) == 1


@real
def test_the_real_philly() -> None:
    jobs, tally = philly.read_jobs(str(SHARED / "philly"))
    assert (len(jobs), tally.kept, tally.skipped) == (82_247, 82_247, {})
    assert len({job.project for job in jobs}) == 15
    assert sum(job.units // GPU * (job.duration or 0) for job in jobs) // (3600 * SECOND) == 978_078
    assert max(job.units for job in jobs) == 128 * GPU
