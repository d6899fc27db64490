"""`allmende run` as a person uses it: real processes, the exit code, the event log, bad input, Ctrl-C."""

import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from allmende.cli.main import LANGUAGES as COMMAND_LANGUAGES
from allmende.control.journal import differences, read, replay
from allmende.engine.apply import apply
from allmende.engine.state import State
from allmende.model.decision import Cause, Evict, Start
from allmende.model.mistake import Mistake
from allmende.ports.backend import Remark
from allmende.words import LANGUAGES

HEADER = '{"type":"Header","format":"allmende-journal","version":%d}\n'
ALLMENDE = (sys.executable, "-m", "allmende.cli.main")
ROOT = Path(__file__).parents[2]
PATIENCE = 60  # seconds that a run of a fraction of one may take on a busy machine


def allmende(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ALLMENDE, *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def write(folder: Path, text: str) -> Path:
    path = folder / "jobs.yaml"
    path.write_text(textwrap.dedent(text))
    return path


def living(text: str) -> list[str]:
    """Command lines of processes that hold the text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if text in line:
                found.append(line)
    return found


JOBS = """
projects: [{name: a, guarantee: 2}, {name: b}]
jobs:
  - {name: borrower, project: b, gpus: 2, grace: 5s, command: [python3, steps.py]}
  - {name: owner, project: a, gpus: 1, pods: 2, at: 0.5, command: 'echo rank $RANK of $WORLD_SIZE'}
  - {name: giant, project: a, gpus: 9, command: 'true'}
  - {name: after, project: a, gpus: 0, after: owner, command: ['true']}
"""
STEPS = """
import os, time
print("attempt", os.environ["ALLMENDE_ATTEMPT"], flush=True)
while os.environ["ALLMENDE_ATTEMPT"] == "1":
    time.sleep(1)
"""


def test_a_run_with_a_gang_a_preemption_and_an_impossible_request(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(STEPS)
    write(tmp_path, JOBS)
    words = ("run", "jobs.yaml", "--virtual-gpus", "2xT4", "--log", "log.jsonl", "--output", "out")
    done = allmende(*words, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert re.search(r"giant waits\. .*9 GPUs.*never", done.stdout)
    assert re.search(r"borrower loses 1 pod: a project takes its guarantee back \(for owner\)", done.stdout)
    assert (tmp_path / "out/borrower/attempt-2.pod-0.0.log").read_text() == "attempt 2\n"
    ranks = [(tmp_path / f"out/owner/attempt-1.pod-0.{rank}.log").read_text() for rank in (0, 1)]
    assert ranks == ["rank 0 of 2\n", "rank 1 of 2\n"]
    lines = list(read(tmp_path / "log.jsonl"))
    assert [line.workload for line in lines if isinstance(line, Start)] == ["borrower", "owner", "after", "borrower"]
    evicted = [line for line in lines if isinstance(line, Evict)]
    assert [(line.workload, line.cause, line.claimant) for line in evicted] == [("borrower", Cause.RECLAIM, "owner")]
    state = replay(tmp_path / "log.jsonl")
    assert {name: outcome.ok for name, outcome in state.outcomes.items()} == {
        "borrower": True,
        "owner": True,
        "after": True,
    }
    assert set(state.standings) == {"giant"}
    again = State()
    for line in lines:
        if not isinstance(line, Remark):
            apply(again, line)
    assert differences(state, again) == ()
    times = [line.at for line in lines]
    assert times == sorted(times)


def test_a_job_that_fails_makes_the_exit_code_1_and_what_waits_for_it_never_starts(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        jobs:
          - {name: bad, gpus: 1, command: [/no/such/program]}
          - {name: heir, gpus: 1, after: bad, command: 'true'}
          - {name: mourner, gpus: 1, after: {job: bad, when: afternotok}, command: 'true'}
          - {name: late, gpus: 1, limit: 1s, grace: 0, command: sleep 47.11}
        """,
    )
    done = allmende("run", "jobs.yaml", "--virtual-gpus", "2xT4", "--log", "log.jsonl", folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "cannot start '/no/such/program': No such file or directory" in done.stdout
    assert re.search(r"late is stopped: its time limit is reached", done.stdout)
    assert re.search(r"heir .*can never start", done.stdout)
    assert "Traceback" not in done.stdout + done.stderr
    assert any(isinstance(line, Remark) and "/no/such/program" in line.text for line in read(tmp_path / "log.jsonl"))
    state = replay(tmp_path / "log.jsonl")
    assert {name: outcome.ok for name, outcome in state.outcomes.items()} == {
        "bad": False,
        "mourner": True,
        "late": False,
    }
    assert living("sleep 47.11") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_leaves_nothing_and_says_so_in_one_line(tmp_path: Path, number: signal.Signals) -> None:
    mark = f"sleep {6000 + number}.25"
    write(tmp_path, f"jobs: [{{name: long, gpus: 1, pods: 2, command: '{mark} & echo up; wait'}}]")
    command = [*ALLMENDE, "run", "jobs.yaml", "--virtual-gpus", "2xT4", "--output", "out"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        limit = time.monotonic() + PATIENCE
        logs = [tmp_path / f"out/long/attempt-1.pod-0.{rank}.log" for rank in (0, 1)]
        while not all(log.exists() and log.read_text() for log in logs):
            assert time.monotonic() < limit
            assert run.poll() is None
            os.sched_yield()
        run.send_signal(number)
        shown, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130
    assert shown.endswith("output of the jobs: out\n")
    assert errors == "interrupted: all processes were ended\n"
    assert living(mark) == []


def test_too_few_descriptors_fail_the_job_and_leave_nothing(tmp_path: Path) -> None:
    write(tmp_path, "jobs: [{name: wide, gpus: 0, pods: 60, grace: 0, command: [sleep, '6100.25']}]")
    run = [*ALLMENDE, "run", "jobs.yaml", "--virtual-gpus", "2xT4", "--output", "out"]
    command = ["/bin/sh", "-c", 'ulimit -n 40; exec "$@"', "sh", *run]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1, done.stderr
    assert "Too many open files" in done.stdout
    assert "Traceback" not in done.stderr
    assert living("sleep 6100.25") == []


def test_korean(tmp_path: Path) -> None:
    write(tmp_path, "jobs: [{name: a, gpus: 1, command: 'true'}, {name: giant, gpus: 9, command: 'true'}]")
    done = allmende("run", "jobs.yaml", "--virtual-gpus", "2xT4", "--language", "ko", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "결코 시작할 수 없습니다" in done.stdout
    assert "a: 정상으로 끝났습니다" in done.stdout
    assert "waits" not in done.stdout
    assert "GPU 9개 대신 GPU 2개만 요청하면 지금 시작할 수 있습니다." in done.stdout


def test_the_summary_says_what_would_start_those_that_wait(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        jobs:
          - {name: giant, gpus: 9, command: 'true'}
          - {name: gang, gpus: 1, pods: 3, command: 'true'}
          - {name: other, gpus: 1, models: A100, command: 'true'}
          - {name: bad, gpus: 1, command: 'exit 3'}
          - {name: heir, gpus: 1, after: bad, command: 'true'}
          - {name: fine, gpus: 1, command: 'true'}
        """,
    )
    done = allmende("run", "jobs.yaml", "--virtual-gpus", "2xT4", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    below = done.stdout.partition("└")[2].splitlines()[1:]
    assert [line.split()[0].rstrip(":") for line in below] == ["giant", "gang", "other", "bad", "heir", "output"]
    assert below[0].endswith("can never start. With 2 GPUs for each pod instead of 9 it could start now.")
    assert below[1].endswith("With 2 pods instead of 3 it could start now.")
    assert below[2].endswith("On GPUs of model T4 instead of A100 it could start now.")
    assert re.search(r"bad: pod 0\.0 of attempt 1 ended with exit code 3; see .*attempt-1\.pod-0\.0\.log$", below[3])
    assert below[4].endswith("it can never start.")


def test_a_failure_is_told_in_korean_too(tmp_path: Path) -> None:
    write(tmp_path, "jobs: [{name: a, gpus: 0, command: nowhere-to-be-found}]")
    done = allmende("run", "jobs.yaml", "--virtual-gpus", "2xT4", "--language", "ko", folder=tmp_path)
    assert done.returncode == 1
    assert "a: 파드 0.0(시도 1)의 종료 코드는 127입니다(찾을 수 없는 명령)." in done.stdout
    assert "exit code" not in done.stdout


def test_a_limit_longer_than_the_system_sleeps(tmp_path: Path) -> None:
    write(tmp_path, "jobs: [{name: a, gpus: 1, limit: 60d, command: 'true'}]")
    done = allmende("run", "jobs.yaml", "--virtual-gpus", "2xT4", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_a_terminal_without_the_letters_gets_something_else_in_their_place(tmp_path: Path) -> None:
    write(tmp_path, "jobs: [{name: a, gpus: 1, command: 'true'}]")
    command = [*ALLMENDE, "run", "jobs.yaml", "--virtual-gpus", "2xT4", "--language", "ko"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert b"a: ?" in done.stdout


@pytest.mark.parametrize(
    "words", [("--help",), ("run", "jobs.yaml", "--virtual-gpus", "2xT4"), ("sim", "run", "s.yaml")]
)
@pytest.mark.parametrize("redirection", ["> /dev/full", ">&-"])
def test_an_output_that_takes_nothing(tmp_path: Path, words: tuple[str, ...], redirection: str) -> None:
    write(tmp_path, "jobs: [{name: a, gpus: 1, command: 'true'}]")
    (tmp_path / "s.yaml").write_text("version: 1\n")
    command = ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", *ALLMENDE, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "Traceback" not in done.stderr
    if redirection == ">&-":
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert (done.returncode, done.stderr) == (
            2,
            "the output: No space left on device; choose another place\n",
        )


def test_a_log_never_takes_the_place_of_something_else(tmp_path: Path) -> None:
    write(tmp_path, "jobs: [{name: a, gpus: 1, command: 'true'}]")
    (tmp_path / "notes").write_text("mine\n")
    run = ("run", "jobs.yaml", "--virtual-gpus", "2xT4", "--log")
    for log, says in (
        ("jobs.yaml", "--log: 'jobs.yaml' is the file of the jobs; name another file"),
        ("./jobs.yaml", "is the file of the jobs"),
        ("notes", "--log: 'notes' is there already, and is no event log"),
        (".", "--log: '.' is a folder; name a file, such as events.jsonl"),
        ("", "it is empty"),
    ):
        done = allmende(*run, log, folder=tmp_path)
        assert done.returncode == 2
        assert says in done.stderr
    assert (tmp_path / "notes").read_text() == "mine\n"
    assert (tmp_path / "jobs.yaml").read_text().startswith("jobs:")
    for _ in range(2):  # an older log gives way
        assert allmende(*run, "log.jsonl", folder=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        ("jobs: [{name: a, gpus: -1, command: x}]", (), "jobs.yaml:1:24: jobs[0].gpus: '-1' is negative"),
        ("jobs: [{name: a, gpu: 1, command: x}]", (), "did you mean gpus?"),
        ("jobs: [{name: a, gpus: 1, command: x}]", ("--virtual-gpus", "many"), "--virtual-gpus: 'many' cannot be read"),
        (
            "jobs: [{name: a, gpus: 1, command: x}]",
            ("--log", "/no/such/folder/log"),
            "/no/such/folder/log: No such file",
        ),
        ("jobs: [{name: a, gpus: 1, command: x}]", ("--output", "jobs.yaml"), "jobs.yaml"),
        ("jobs: [{name: a, gpus: 1, command: x}]", ("--log", "/dev/full"), "/dev/full: No space left on device"),
        (None, (), "jobs.yaml"),
    ],
)
def test_bad_input_is_told_and_ends_with_2(tmp_path: Path, text: str | None, words: tuple[str, ...], says: str) -> None:
    if text is not None:
        write(tmp_path, text)
    given = words if "--virtual-gpus" in words else ("--virtual-gpus", "2xT4", *words)
    done = allmende("run", "jobs.yaml", *given, folder=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_the_example_file_runs(tmp_path: Path) -> None:
    done = allmende("run", str(ROOT / "examples/jobs.yaml"), "--virtual-gpus", "2xT4", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}\n",
        HEADER % 99,
        HEADER % 1 + '{"type":"Odd"}\n',
        HEADER % 1 + '{"type":"Ticked","at":0}\n{"type":"Tick\n',
    ],
)
def test_a_file_that_is_no_event_log_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    with pytest.raises(Mistake) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"{path}:{max(1, text.count(chr(10)))}")


def test_help_is_quick_because_it_imports_little() -> None:
    script = "import sys; import allmende.cli.main; print(*(m for m in sys.modules if m.startswith('allmende')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["allmende", "allmende.cli", "allmende.cli.main"]
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*ALLMENDE, "--help"], capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) <= 0.3  # of a processor: what the wall clock shows on an idle machine


def test_the_commands_offer_the_languages_there_are() -> None:
    assert COMMAND_LANGUAGES == LANGUAGES
