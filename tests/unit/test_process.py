"""The local backend on real processes: started with their world, ended whole, never left behind."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from allmende.backend.local.backend import LocalBackend
from allmende.backend.local.clock import RunClock
from allmende.backend.local.devices import virtual_nodes
from allmende.model.cluster import Pod, PodId, Slice
from allmende.model.event import Event, PodEnded, PodGone, Up
from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.request import Ask
from allmende.model.span import SECOND
from allmende.model.units import GPU
from allmende.model.workload import Role, Workload
from allmende.ports.backend import Backend, Remark

SLEEP = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")
DEAF = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
)
PATIENCE = 30 * SECOND  # longest wait for something that comes at once on a healthy machine


class Machine:
    """A backend with ways to wait for what a test looks at."""

    def __init__(self, backend: LocalBackend, clock: RunClock) -> None:
        self.backend = backend
        self.clock = clock
        self.seen: list[Event | Remark] = []

    def until(self, happened: Callable[[list[Event | Remark]], bool]) -> list[Event | Remark]:
        """Observe until all that was seen satisfies the condition."""
        limit = self.clock.now() + PATIENCE
        while not happened(self.seen):
            assert self.clock.now() < limit, self.seen
            self.seen += self.backend.observe(min(limit, self.clock.now() + SECOND // 20))
        return self.seen

    def until_said(self, pod: PodId, text: str) -> str:
        """Wait until a pod's log holds the text."""
        log = self.backend.log(pod)
        self.until(lambda _: log.exists() and text in log.read_text())
        return log.read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    clock = RunClock()
    backend = LocalBackend(virtual_nodes("4xA100-40GB+2xT4"), clock, tmp_path / "logs")
    yield Machine(backend, clock)
    backend.close()


def workload(*command: str, pods: int = 1, name: str = "job") -> Workload:
    return Workload(name, "p", (Role("worker", pods, Ask(whole=1)),), pods, command=command)


def pod(rank: int = 0, *devices: int, name: str = "job", attempt: int = 1, node: str = "local-1") -> Pod:
    return Pod(name, attempt, 0, rank, node, tuple(Slice(device, GPU) for device in devices))


def session(pid: int) -> int | None:
    """The session of a living process; None where it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            state, _, _, number = file.read().rpartition(")")[2].split()[:4]
    except OSError:
        return None
    return None if state in "ZX" else int(number)


def alive(pid: int) -> bool:
    return session(pid) is not None


def test_the_port_is_implemented(machine: Machine) -> None:
    backend: Backend = machine.backend
    assert backend.observe(0) == ()


def test_each_pod_of_a_gang_knows_its_rank_its_peers_and_its_gpus(machine: Machine) -> None:
    names = [f"ALLMENDE_{name}" for name in ("JOB", "ATTEMPT", "ROLE", "RANK")]
    names += ["RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"]
    script = f"import os; print(*(os.environ[n] for n in {names}), 'gpus', os.environ['CUDA_VISIBLE_DEVICES'])"
    script += "; print('port', os.environ['MASTER_PORT'])"
    gang = (pod(0, 0, 2), pod(1, 3), pod(2, 1, node="local-2"), pod(3))
    machine.backend.start(gang, workload(sys.executable, "-c", script, pods=4))
    seen = machine.until(lambda seen: sum(isinstance(x, PodEnded) for x in seen) == 4)
    assert sum(isinstance(x, Up) for x in seen) == 1
    assert all(x.ok for x in seen if isinstance(x, PodEnded))
    said = [machine.backend.log(p.id).read_text().splitlines() for p in gang]
    assert [lines[0] for lines in said] == [
        "job 1 worker 0 0 4 0 127.0.0.1 gpus 0,2",
        "job 1 worker 1 1 4 1 127.0.0.1 gpus 3",
        "job 1 worker 2 2 4 0 127.0.0.1 gpus 5",  # the second device of the second node
        "job 1 worker 3 3 4 2 127.0.0.1 gpus ",
    ]
    assert len({lines[1] for lines in said}) == 1
    assert machine.backend.pids == {}


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("/nowhere/train",), "cannot start '/nowhere/train': No such file or directory"),
        (("/etc/passwd",), "cannot start '/etc/passwd': Permission denied"),
        (("a\0b",), "embedded null byte"),
        ((), "it has no command"),
        (("/bin/sh", "-c", "no-such-command-anywhere"), "exit code 127 (the command was not found)"),
        (("/bin/sh", "-c", "exit 3"), "ended with exit code 3"),
        (("/bin/sh", "-c", "kill -9 $$"), "ended with signal SIGKILL"),
    ],
)
def test_a_pod_that_fails_ends_not_ok_with_a_clear_line(machine: Machine, command: tuple[str, ...], says: str) -> None:
    machine.backend.start((pod(),), workload(*command))
    seen = machine.until(lambda seen: any(isinstance(x, PodEnded) for x in seen))
    assert [x.ok for x in seen if isinstance(x, PodEnded)] == [False]
    assert any(isinstance(x, Remark) and says in x.text and x.workload == "job" for x in seen)
    if command and says.startswith("cannot"):
        assert says in machine.backend.log(pod().id).read_text()
        assert not any(isinstance(x, Up) for x in seen)


def test_orders_are_idempotent_by_pod(machine: Machine) -> None:
    job = workload(*SLEEP)
    machine.backend.start((pod(),), job)
    machine.until_said(pod().id, "up")
    pids = dict(machine.backend.pids)
    machine.backend.start((pod(),), job)
    assert machine.backend.pids == pids
    machine.backend.stop([pod().id], 10 * SECOND)
    machine.backend.stop([pod().id], 0)  # the first order's grace counts
    machine.until(lambda seen: any(isinstance(x, PodGone) for x in seen))
    assert not any(isinstance(x, Remark) for x in machine.seen)
    machine.backend.start((pod(),), job)
    assert machine.backend.pids == {}
    machine.backend.stop([pod().id, pod(7).id], 0)
    gone = [x.pod for x in machine.until(lambda seen: len(seen) >= 4) if isinstance(x, PodGone)]
    assert gone == [pod().id, pod().id, pod(7).id]


def test_a_deaf_pod_is_ended_by_force_after_its_grace(machine: Machine) -> None:
    machine.backend.start((pod(),), workload(*DEAF))
    machine.until_said(pod().id, "up")
    told = machine.clock.now()
    machine.backend.stop([pod().id], SECOND // 5)
    seen = machine.until(lambda seen: any(isinstance(x, PodGone) for x in seen))
    assert machine.clock.now() - told >= SECOND // 5
    assert any(isinstance(x, Remark) and "by force" in x.text for x in seen)


FAMILY = """
import os, signal, subprocess, sys, time
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
groups = [{}, {"process_group": 0}, {"start_new_session": True}]
for kind in groups:
    child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, **kind)
    child.stdout.readline()
    print("child", child.pid, flush=True)
print("all", flush=True)
"""


@pytest.mark.parametrize("ends", ["by itself", "told"])
def test_nothing_of_a_pod_outlives_it(machine: Machine, ends: str) -> None:
    script = FAMILY + ("" if ends == "by itself" else "time.sleep(600)")
    machine.backend.start((pod(),), workload(sys.executable, "-c", script))
    text = machine.until_said(pod().id, "all")
    children = [int(line.split()[1]) for line in text.splitlines() if line.startswith("child")]
    assert len(children) == 3
    if ends == "told":
        assert all(map(alive, children))
        machine.backend.stop([pod().id], SECOND // 5)
    seen = machine.until(lambda seen: any(isinstance(x, PodGone | PodEnded) for x in seen))
    assert not any(map(alive, children))
    assert [type(x) for x in seen if not isinstance(x, Remark)] == [Up, PodEnded if ends == "by itself" else PodGone]


def test_the_others_of_a_pod_keep_the_grace_when_its_first_process_goes_at_once(
    machine: Machine, tmp_path: Path
) -> None:
    saved = tmp_path / "saved"
    child = f"trap 'sleep 0.2; touch {saved}; exit' TERM; echo up; while :; do sleep 0.02; done"
    machine.backend.start((pod(),), workload("/bin/sh", "-c", f'trap "exit 1" TERM; sh -c "{child}" & wait'))
    machine.until_said(pod().id, "up")
    machine.backend.stop([pod().id], 20 * SECOND)
    machine.until(lambda seen: any(isinstance(x, PodGone) for x in seen))
    assert saved.exists()
    assert machine.clock.now() < 20 * SECOND


def test_close_ends_all_and_can_be_called_again(machine: Machine) -> None:
    machine.backend.start((pod(0), pod(1)), workload(*SLEEP, pods=2))
    machine.until_said(pod(1).id, "up")
    pids = list(machine.backend.pids.values())
    machine.backend.close()
    assert not any(map(alive, pids))
    machine.backend.close()


PARENT = """
import signal, sys
from pathlib import Path
from allmende.backend.local.backend import LocalBackend
from allmende.backend.local.clock import RunClock
from allmende.backend.local.devices import virtual_nodes
from allmende.model.cluster import Pod
from allmende.model.request import Ask
from allmende.model.workload import Role, Workload

def leave(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, leave)
backend = LocalBackend(virtual_nodes("1xT4"), RunClock(), Path(sys.argv[1]))
job = Workload("job", "p", (Role("w", 1, Ask()),), 1, command=("/bin/sh", "-c", "echo up; sleep 600 & wait"))
try:
    backend.start((Pod("job", 1, 0, 0, "local"),), job)
    print(*backend.pids.values(), flush=True)
    if sys.argv[2] == "error":
        raise RuntimeError("on purpose")
    while True:
        backend.observe(None)
except (KeyboardInterrupt, RuntimeError):
    pass
finally:
    backend.close()
"""


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "error"])
def test_nothing_is_left_when_the_parent_is_interrupted(tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        if how != "error":
            assert alive(pid)
            parent.send_signal(getattr(signal, how))
        assert parent.wait(timeout=30) == 0
    assert not alive(pid)
    assert not [int(name) for name in os.listdir("/proc") if name.isdigit() and session(int(name)) == pid]


def test_declared_devices() -> None:
    (node,) = virtual_nodes("8xH100")
    assert (node.name, node.model, len(node.devices), node.devices[7].memory) == ("local", "H100", 8, 81_559)
    first, second = virtual_nodes("4xA100-40GB + 2xT4")
    assert (first.name, first.model, first.devices[0].memory) == ("local-1", "A100-40GB", 40_960)
    assert (second.name, second.devices[1].memory, second.devices[1].uuid) == ("local-2", 15_360, "virtual-5")
    assert virtual_nodes("1xUNHEARD-OF")[0].devices[0].memory == 0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", MistakeCode.EMPTY),
        ("8", MistakeCode.UNREADABLE),
        ("H100", MistakeCode.UNREADABLE),
        ("8xH100+", MistakeCode.EMPTY),
        ("-1xH100", MistakeCode.UNREADABLE),
        ("0xH100", MistakeCode.ZERO),
        ("4097xT4", MistakeCode.ABSURD),
        ("99999999999999999999xT4", MistakeCode.UNREADABLE),
    ],
)
def test_declarations_that_are_refused(text: str, code: MistakeCode) -> None:
    with pytest.raises(Mistake) as caught:
        virtual_nodes(text)
    assert caught.value.code is code
    assert "8xH100" in str(caught.value) or "at most" in str(caught.value)
