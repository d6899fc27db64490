"""The control loop against a fake world: appended before acted on, pods told to leave once, time never back."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from allmende.control import loop as loop_module
from allmende.control.journal import Journal, Line, differences, read, replay
from allmende.control.loop import Loop, Restless
from allmende.engine.apply import apply
from allmende.engine.plan import Plan
from allmende.engine.state import State
from allmende.model.cluster import Device, Node, Pod, PodId
from allmende.model.decision import Evict, Release, Start
from allmende.model.event import Cancelled, Event, NodeSet, PodEnded, PodGone, ProjectSet, Submitted, Ticked, Up
from allmende.model.request import Ask
from allmende.model.span import SECOND
from allmende.model.standing import Phase
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.model.workload import Role, Workload
from allmende.ports.backend import Backend, Remark
from allmende.ports.clock import Clock


class FakeClock:
    """Stands still until it is set."""

    time = 0

    def now(self) -> int:
        return self.time


class FakeBackend:
    """Pods come up at once, run for a given time and leave after their grace; the clock jumps to what comes next."""

    def __init__(self, clock: FakeClock, runs: dict[str, int]) -> None:
        self.clock = clock
        self.runs = runs
        self.orders: list[tuple[str, tuple[PodId, ...], int]] = []
        self.log: Path | None = None
        self.logged: list[int] = []  # lines that were on disk when an order came
        self.due: list[tuple[int, Event | Remark]] = []

    def start(self, pods: Sequence[Pod], workload: Workload) -> None:
        self._order("start", [pod.id for pod in pods], 0)
        now = self.clock.now()
        self.due.append((now, Up(now, workload.id)))
        for pod in pods:
            end = now + self.runs[workload.id]
            self.due.append((end, PodEnded(end, pod.id, ok=True)))

    def stop(self, pods: Iterable[PodId], grace: int) -> None:
        told = tuple(pods)
        self._order("stop", told, grace)
        self.due = [item for item in self.due if not (isinstance(item[1], PodEnded) and item[1].pod in told)]
        end = self.clock.now() + grace
        self.due += [(end, PodGone(end, pod)) for pod in told]

    def _order(self, what: str, pods: Iterable[PodId], grace: int) -> None:
        self.orders.append((what, tuple(pods), grace))
        if self.log is not None:
            self.logged.append(len(self.log.read_text().splitlines()))

    def observe(self, until: int | None) -> tuple[Event | Remark, ...]:
        next_at = min((at for at, _ in self.due), default=None)
        moments = [moment for moment in (next_at, until) if moment is not None]
        assert moments, "the loop waits for ever"
        self.clock.time = max(self.clock.time, min(moments))
        happened = [item for item in self.due if item[0] <= self.clock.time]
        self.due = [item for item in self.due if item[0] > self.clock.time]
        return tuple(event for _, event in happened)

    def close(self) -> None:
        pass


def job(name: str, gpus: int, project: str = "p", grace: int = 0, pods: int = 1) -> Workload:
    return Workload(name, project, (Role("w", pods, Ask(whole=gpus)),), pods, grace=grace)


NODE = Node("n", tuple(Device(index) for index in range(4)), "T4")


class Bench:
    """A loop on the fake world."""

    def __init__(self, runs: dict[str, int], log: Path | None = None) -> None:
        self.clock = FakeClock()
        self.backend = FakeBackend(self.clock, runs)
        self.backend.log = log
        self.journal = Journal(log)
        self.seen: list[Line] = []
        port: Backend = self.backend
        time: Clock = self.clock
        self.loop = Loop(port, time, self.journal, self.seen.append)

    def run(self, *events: Event) -> State:
        for event in events:
            self.loop.tell(event)
        self.loop.run(lambda: bool(self.loop.coming or self.loop.state.standings or self.loop.state.leaving))
        self.journal.close()
        return self.loop.state


def test_everything_is_appended_and_handed_over_before_it_is_acted_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    bench = Bench({"borrower": 100 * SECOND, "owner": 10 * SECOND}, log)
    state = bench.run(
        NodeSet(0, NODE),
        ProjectSet(0, Project("p", guarantee=4 * GPU)),
        ProjectSet(0, Project("q")),
        Submitted(0, job("borrower", 4, "q", grace=3 * SECOND)),
        Submitted(5 * SECOND, job("owner", 4)),
    )
    first, second = ("borrower", 1, 0, 0), ("borrower", 2, 0, 0)
    assert bench.backend.orders == [
        ("start", (first,), 0),
        ("stop", (first,), 3 * SECOND),
        ("start", (("owner", 1, 0, 0),), 0),
        ("start", (second,), 0),
    ]
    lines = list(read(log))
    orders = [index + 2 for index, line in enumerate(lines) if isinstance(line, Start | Evict)]  # the header is line 1
    assert all(on_disk >= line for on_disk, line in zip(bench.backend.logged, orders, strict=True))
    assert state.outcomes["owner"].ended == 18 * SECOND
    assert state.outcomes["borrower"].ended == 118 * SECOND
    assert differences(state, replay(log)) == ()
    assert bench.journal.entries == [line for line in lines if not isinstance(line, Remark)] == bench.seen


def test_pods_of_a_cancelled_job_get_its_grace_once() -> None:
    bench = Bench({"a": 100 * SECOND})
    events = (NodeSet(0, NODE), Submitted(0, job("a", 1, grace=SECOND, pods=2)), Cancelled(4 * SECOND, "a"))
    state = bench.run(*events, Ticked(4 * SECOND + 1), Ticked(4 * SECOND + 2))
    pods = (("a", 1, 0, 0), ("a", 1, 0, 1))
    assert bench.backend.orders == [("start", pods, 0), ("stop", pods, SECOND)]
    assert state.now == 5 * SECOND


def test_time_never_runs_back_in_the_journal() -> None:
    bench = Bench({"a": SECOND})
    bench.backend.due.append((SECOND // 2, Remark(0, "a", "seen late")))
    bench.run(NodeSet(0, NODE), Submitted(0, job("a", 1)), Ticked(SECOND // 4))
    assert [line.at for line in bench.seen if isinstance(line, Remark)] == [SECOND // 4]
    moments = [line.at for line in bench.seen]
    assert moments == sorted(moments)


def test_a_wish_to_be_woken_in_the_past_does_not_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "plan", lambda state, now: Plan((), 0))
    bench = Bench({})
    turns: list[int] = []
    bench.loop.run(lambda: turns.append(bench.clock.time) or len(turns) < 5)  # type: ignore[func-returns-value]
    assert turns == [0, 1000, 2000, 3000, 4000]


def test_an_engine_that_never_rests_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "plan", lambda state, now: Plan((Release(now, "a"),), None))
    bench = Bench({})
    with pytest.raises(Restless, match="Release"):
        bench.loop.decide()


def test_replaying_a_prefix_stands_where_the_run_stood() -> None:
    bench = Bench({"a": 10 * SECOND, "b": 10 * SECOND})
    bench.run(NodeSet(0, NODE), Submitted(0, job("a", 4)), Submitted(0, job("b", 4)))
    middle = next(i for i, line in enumerate(bench.journal.entries) if isinstance(line, PodEnded))
    state = State()
    for entry in bench.journal.entries[:middle]:
        apply(state, entry)
    assert [state.standings[name].phase for name in ("a", "b")] == [Phase.RUNNING, Phase.QUEUED]
