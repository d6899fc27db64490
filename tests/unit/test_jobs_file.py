"""The file of `allmende run`: what a good one means, and what every bad one is told."""

import textwrap
from pathlib import Path

import pytest

from allmende.cli.jobs_file import GRACE, MOST_MISTAKES, read_jobs
from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.request import Ask
from allmende.model.span import MINUTE, SECOND
from allmende.model.units import GPU
from allmende.model.workload import After, Dependency

GOOD = """
projects:
  - {name: area, guarantee: 6}
  - {name: nlp, parent: area, guarantee: 4, max: 6, weight: 2.5, priority: 3}
jobs:
  - name: prepare
    project: nlp
    command: [python, prepare.py]
    gpus: 0
  - name: train
    project: nlp
    user: ada
    command: python train.py --epochs 3
    gpus: 2
    pods: {min: 2, max: 4}
    models: [H100, A100]
    priority: -5
    limit: 10m
    grace: 5
    at: 1.5
    after: prepare
  - {name: part, project: area, command: "true", gpus: 1/7, after: [{job: train, when: afternotok}, prepare]}
  - {name: memory, project: area, command: "true", gpu_memory: 16384}
"""


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "jobs.yaml"
    path.write_text(textwrap.dedent(text))
    return str(path)


def test_a_good_file(tmp_path: Path) -> None:
    file = read_jobs(write(tmp_path, GOOD))
    area, nlp = file.projects
    assert (area.name, area.guarantee, area.cap) == ("area", 6 * GPU, None)
    assert (nlp.parent, nlp.guarantee, nlp.cap, str(nlp.weight), nlp.priority) == ("area", 4 * GPU, 6 * GPU, "5/2", 3)
    (_, prepare), (at, train), (_, part), (_, memory) = file.jobs
    assert prepare.command == ("python", "prepare.py")
    assert prepare.roles[0].ask == Ask()
    assert prepare.grace == GRACE
    assert at == 3 * SECOND // 2
    assert train.command == ("/bin/sh", "-c", "python train.py --epochs 3")
    assert (train.gang_min, train.pods, train.elastic) == (2, 4, True)
    assert train.roles[0].where.models == ("H100", "A100")
    assert (train.priority, train.limit, train.grace, train.user) == (-5, 10 * MINUTE, 5 * SECOND, "ada")
    assert train.after == (Dependency("prepare"),)
    assert part.roles[0].ask == Ask(share=GPU // 7)
    assert part.after == (Dependency("train", After.NOT_OK), Dependency("prepare"))
    assert memory.roles[0].ask == Ask(memory=16_384)


JOB = "{name: a, command: x, gpus: 1}"


@pytest.mark.parametrize(
    ("text", "code", "place", "says"),
    [
        ("", MistakeCode.EMPTY, "", "write a list of jobs"),
        ("null", MistakeCode.EMPTY, "", "write a list of jobs"),
        ("version: 1\nevents: []", MistakeCode.WRONG_KIND, "1:1", "allmende sim run"),
        ("jobs:", MistakeCode.EMPTY, "1:6", "write a list"),
        ("base: {}\njobs: []", MistakeCode.UNKNOWN_FIELD, "1:1", "use one of projects, jobs"),
        ("jobs:\n\t- a", MistakeCode.UNREADABLE, "2:1", "indent with spaces"),
        ("jobs: []\n---\njobs: []", MistakeCode.UNREADABLE, "2:1", "expected a single document"),
        ("jobs: [{name: a, command: x, gpus: 1, limit: 1000000d}]", MistakeCode.ABSURD, "1:46", "a year"),
        ("jobs: [{name: a, command: x, gpus: 1, grace: 25h}]", MistakeCode.ABSURD, "1:46", "a day"),
        (f"projects: [{{name: p, guarantee: 1e9}}]\njobs: [{JOB}]", MistakeCode.ABSURD, "1:33", "at most 1000000 GPUs"),
        (f"projects: [{{name: p, max: 1e9}}]\njobs: [{JOB}]", MistakeCode.ABSURD, "1:27", "at most 1000000 GPUs"),
        (f"projects: [{{name: p, weight: 1e-9}}]\njobs: [{JOB}]", MistakeCode.ABSURD, "1:30", "six decimals"),
        (f"projects: [{{name: p, priority: 1e10}}]\njobs: [{JOB}]", MistakeCode.ABSURD, "1:32", "between"),
        ("jobs: [", MistakeCode.UNREADABLE, "1:8", ""),
        ("[a]", MistakeCode.WRONG_KIND, "1:1", "has no fields"),
        ("projects: []", MistakeCode.MISSING, "1:1", "jobs"),
        ("jobs: []", MistakeCode.EMPTY, "1:7", "at least one job"),
        ("jobs: {}", MistakeCode.WRONG_KIND, "1:7", "no list"),
        ("job: []\njobs: []", MistakeCode.UNKNOWN_FIELD, "1:1", "did you mean jobs?"),
        ("jobs: [{command: x, gpus: 1}]", MistakeCode.MISSING, "1:8", "has no name"),
        ("jobs: [{name: a, gpus: 1}]", MistakeCode.MISSING, "1:8", "command"),
        ("jobs: [{name: a, command: x}]", MistakeCode.MISSING, "1:8", "gpus"),
        ("jobs: [{name: a, command: x, gpu: 1}]", MistakeCode.UNKNOWN_FIELD, "1:30", "did you mean gpus?"),
        ("jobs: [{name: a, command: x, gpus: -1}]", MistakeCode.NEGATIVE, "1:36", "whole number of GPUs"),
        ("jobs: [{name: a, command: x, gpus: 1.5}]", MistakeCode.NOT_A_SHARE, "1:36", "1 or 2 whole GPUs"),
        ("jobs: [{name: a, command: x, gpus: 1e99}]", MistakeCode.ABSURD, "1:36", ""),
        ("jobs: [{name: a, command: x, gpus: many}]", MistakeCode.UNREADABLE, "1:36", ""),
        ("jobs: [{name: a, command: x, gpus: 1, pods: 0}]", MistakeCode.ZERO, "1:45", "from 1"),
        ("jobs: [{name: a, command: x, gpus: 1, pods: -2}]", MistakeCode.NEGATIVE, "1:45", ""),
        ("jobs: [{name: a, command: x, gpus: 1, pods: 9999999}]", MistakeCode.ABSURD, "1:45", "at most 4096"),
        (
            "jobs: [{name: a, command: x, gpus: 1, pods: {min: 3, max: 2}}]",
            MistakeCode.CONTRADICTION,
            "1:59",
            "least 3",
        ),
        ("jobs: [{name: a, command: x, gpus: 1, gpu_memory: 5}]", MistakeCode.CONTRADICTION, "1:51", "keep"),
        ("jobs: [{name: a, command: x, gpu_memory: 16Gi}]", MistakeCode.UNIT, "1:42", "write 16384"),
        ("jobs: [{name: a, command: x, gpus: 1, limit: 0}]", MistakeCode.ZERO, "1:46", ""),
        ("jobs: [{name: a, command: x, gpus: 1, limit: '3:00'}]", MistakeCode.AMBIGUOUS, "1:46", "3h00m"),
        ("jobs: [{name: a, command: x, gpus: 1, grace: -1}]", MistakeCode.NEGATIVE, "1:46", ""),
        ("jobs: [{name: a, command: x, gpus: 1, at: 31d}]", MistakeCode.ABSURD, "1:43", "30 days"),
        ("jobs: [{name: a, command: x, gpus: 1, priority: 1e12}]", MistakeCode.ABSURD, "1:49", ""),
        ("jobs: [{name: a, command: '  ', gpus: 1}]", MistakeCode.EMPTY, "1:27", "python train.py"),
        ("jobs: [{name: a, command: [], gpus: 1}]", MistakeCode.EMPTY, "1:27", ""),
        ("jobs: [{name: '', command: x, gpus: 1}]", MistakeCode.EMPTY, "1:15", ""),
        ('jobs: [{name: "a\\tb", command: x, gpus: 1}]', MistakeCode.CONTROL, "1:15", ""),
        (f"jobs:\n  - {JOB}\n  - {JOB}", MistakeCode.DUPLICATE, "3:12", "jobs.yaml:2:5"),
        ("jobs: [{name: a, name: b, command: x, gpus: 1}]", MistakeCode.DUPLICATE, "1:18", "keep one"),
        ("jobs: [{name: a, command: x, gpus: 1, after: b}]", MistakeCode.UNKNOWN_NAME, "1:46", ""),
        (
            "jobs: [{name: train, command: x, gpus: 1}, {name: b, command: x, gpus: 1, after: [trian]}]",
            MistakeCode.UNKNOWN_NAME,
            "1:83",
            "did you mean train?",
        ),
        (
            "jobs: [{name: a, command: x, gpus: 1, after: {job: a, when: afterwards}}]",
            MistakeCode.UNKNOWN_NAME,
            "1:61",
            "did you mean after",
        ),
        ("jobs: [{name: a, command: x, gpus: 1, after: a}]", MistakeCode.CYCLE, "1:46", "a > a"),
        (
            "jobs:\n"
            "  - {name: z, command: x, gpus: 1, after: a}\n"
            "  - {name: a, command: x, gpus: 1, after: b}\n"
            "  - {name: b, command: x, gpus: 1, after: [c]}\n"
            "  - {name: c, command: x, gpus: 1, after: a}\n",
            MistakeCode.CYCLE,
            "5:43",
            "a > b > c > a",
        ),
        (f"projects: [{{name: p, guarantee: -2}}]\njobs: [{JOB}]", MistakeCode.NEGATIVE, "1:33", ""),
        (f"projects: [{{name: p, max: -1}}]\njobs: [{JOB}]", MistakeCode.NEGATIVE, "1:27", ""),
        (f"projects: [{{name: p, weight: -1}}]\njobs: [{JOB}]", MistakeCode.NEGATIVE, "1:30", ""),
        (f"projects: [{{name: p, weigth: 1}}]\njobs: [{JOB}]", MistakeCode.UNKNOWN_FIELD, "1:22", "mean weight?"),
        (f"projects: [{{name: p}}, {{name: p}}]\njobs: [{JOB}]", MistakeCode.DUPLICATE, "1:30", "jobs.yaml:1:12"),
        (f"projects: [{{name: p, parent: q}}]\njobs: [{JOB}]", MistakeCode.UNKNOWN_NAME, "1:30", ""),
        (
            f"projects: [{{name: p, parent: q}}, {{name: q, parent: p}}]\njobs: [{JOB}]",
            MistakeCode.CYCLE,
            "1:30",
            "p > q > p",
        ),
        (f"projects: [{{name: p}}]\njobs: [{JOB}]", MistakeCode.MISSING, "2:8", "has no project"),
        (
            "projects: [{name: vision}]\njobs: [{name: a, command: x, gpus: 1, project: vison}]",
            MistakeCode.UNKNOWN_NAME,
            "2:48",
            "did you mean vision?",
        ),
    ],
)
def test_mistakes_say_what_where_and_what_to_do(
    tmp_path: Path, text: str, code: MistakeCode, place: str, says: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(Mistake) as caught:
        read_jobs(path)
    first = caught.value.each()[0]
    assert first.code is code, first
    assert str(first).startswith(f"{path}:{place}"), first
    assert says in str(first)
    assert "; " in str(first)  # what is wrong; what to do


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = f"jobs:\n  - {{name: a, command: x, gpus: -1}}\n  - {{name: b, comand: x, gpus: 1}}\n  - {JOB}\n  - {JOB}"
    with pytest.raises(Mistake) as caught:
        read_jobs(write(tmp_path, text))
    assert [each.code for each in caught.value.each()] == [
        MistakeCode.DUPLICATE,
        MistakeCode.DUPLICATE,
        MistakeCode.NEGATIVE,
        MistakeCode.UNKNOWN_FIELD,
    ]


def test_all_mistakes_of_one_job_are_told_at_once(tmp_path: Path) -> None:
    text = """
    projects: [{name: p, guarantee: -2, max: x}]
    jobs: [{name: a, gpsu: 1, fantasy: 2, command: '', limit: 0, grace: -1, pods: 0, at: -3, after: b, project: q}]
    proj: 1
    """
    with pytest.raises(Mistake) as caught:
        read_jobs(write(tmp_path, text))
    told = str(caught.value)
    for what in ("guarantee: '-2'", "max: 'x'", "'gpsu'", "'fantasy'", "command: ''", "limit: '0'", "grace: '-1'"):
        assert what in told
    for what in ("pods: '0'", "at: '-3'", "after: 'b'", "project: 'q'", "'proj' is not a known field"):
        assert what in told
    assert "has no gpus" not in told  # it was misspelt, and that is told
    assert len(told.splitlines()) == 12


def test_no_more_mistakes_are_told_than_anybody_reads(tmp_path: Path) -> None:
    jobs = "".join(f"  - {{name: j{n}, command: x, gpus: 0, after: nobody}}\n" for n in range(1500))
    with pytest.raises(Mistake) as caught:
        read_jobs(write(tmp_path, f"jobs:\n{jobs}"))
    assert len(caught.value.each()) == MOST_MISTAKES
    assert "j11 or 1488 others" in str(caught.value)


def test_a_tree_of_absurd_depth_is_refused(tmp_path: Path) -> None:
    tree = "".join(f"  - {{name: p{n}, parent: p{n - 1}}}\n" for n in range(1, 1000))
    with pytest.raises(Mistake, match="at most 64 levels") as caught:
        read_jobs(write(tmp_path, f"projects:\n  - {{name: p0}}\n{tree}jobs: [{JOB}]"))
    assert caught.value.code is MistakeCode.ABSURD


@pytest.mark.parametrize("text", ["[" * 5000, "a: &a [*a, *a]\njobs: *a", "jobs: &x [*x]"])
def test_hostile_yaml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Mistake):
        read_jobs(write(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="No such file") as caught:
        read_jobs(str(tmp_path / "none.yaml"))
    assert caught.value.code is MistakeCode.MISSING


def test_what_is_no_file_of_text(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="is a folder; name a file in it"):
        read_jobs(str(tmp_path))
    with pytest.raises(Mistake, match="write a file's name"):
        read_jobs("")
    with pytest.raises(Mistake, match="keep it below"):
        read_jobs("/dev/zero")


def test_a_job_is_submitted_no_earlier_than_those_it_waits_for(tmp_path: Path) -> None:
    text = """
    jobs:
      - {name: last, command: x, gpus: 0, after: [middle, first], at: 1}
      - {name: middle, command: x, gpus: 0, after: first}
      - {name: first, command: x, gpus: 0, at: 5}
    """
    file = read_jobs(write(tmp_path, text))
    assert [(job.id, at) for at, job in file.jobs] == [
        ("last", 5 * SECOND),
        ("middle", 5 * SECOND),
        ("first", 5 * SECOND),
    ]


def test_a_long_chain_of_jobs_is_no_cycle(tmp_path: Path) -> None:
    chain = [f"  - {{name: j{n}, command: x, gpus: 0, after: [j{n - 1}]}}" for n in range(1, 1500)]
    file = read_jobs(write(tmp_path, "\n".join(["jobs:", "  - {name: j0, command: x, gpus: 0}", *reversed(chain)])))
    assert len(file.jobs) == 1500
