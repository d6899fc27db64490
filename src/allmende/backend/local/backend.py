"""The local backend: the port's orders carried out on real processes of this machine."""

import contextlib
import os
import secrets
import selectors
import signal
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from allmende.backend.local.process import Process, end_strays, others, strays, why
from allmende.backend.local.world import World, environment, number_devices
from allmende.model.cluster import Node, Pod, PodId
from allmende.model.event import Event, PodEnded, PodGone, Up
from allmende.model.names import internal
from allmende.model.span import SECOND
from allmende.model.workload import Workload
from allmende.ports.backend import Remark
from allmende.ports.clock import Clock
from allmende.words import screen

CLOSING = 5 * SECOND
"""Longest grace that pods get when the whole run ends."""
UNKILLABLE = 5.0
"""Seconds that the last kill waits for processes that the kernel does not let go of."""
LONGEST_SLEEP = 86_400.0
"""Seconds after which a sleep begins anew; the system counts the milliseconds of one in 31 bits, 24 days."""
_SHELL = {126: "exit_forbidden", 127: "exit_not_found"}  # what these exit codes of sh mean


class _Running:
    """One pod that was started and is not over: its processes, and what is known of their end."""

    def __init__(self, pod: Pod, process: Process) -> None:
        self.pod = pod
        self.process = process
        self.watched: set[int] = set()  # descriptors of processes that still live
        self.deadline: int | None = None  # when force is used; None: nobody told it to stop
        self.forced = False


class LocalBackend:
    """Implements `allmende.ports.backend.Backend`.

    `logs`: folder that gets one log file per pod. `nodes`: this machine, as declared or found.
    """

    def __init__(self, nodes: Iterable[Node], clock: Clock, logs: Path) -> None:
        self._clock = clock
        self._logs = logs
        self._token = secrets.token_hex(8)
        self._ordinals = number_devices(nodes)
        self._selector = selectors.DefaultSelector()
        self._running: dict[PodId, _Running] = {}
        self._started: set[PodId] = set()
        self._worlds: dict[tuple[str, int], World] = {}
        self._news: list[Event | Remark] = []

    def log(self, pod: PodId) -> Path:
        """Where a pod's output goes."""
        workload, attempt, role, rank = pod
        return self._logs / internal(workload) / f"attempt-{attempt}.pod-{role}.{rank}.log"

    @property
    def pids(self) -> dict[PodId, int]:
        """The leading process of each pod that is not over."""
        return {pod: running.process.pid for pod, running in self._running.items()}

    @property
    def remains(self) -> int:
        """How many processes of this run live, wherever they went."""
        held = strays(f"{self._token}/")
        for descriptor in held:
            os.close(descriptor)
        return len(held)

    # -- orders -------------------------------------------------------------------------------------------------

    def start(self, pods: Sequence[Pod], workload: Workload) -> None:
        """Start these pods (see the port)."""
        new = [pod for pod in pods if pod.id not in self._started]
        if not new:
            return
        world = self._worlds.setdefault((workload.id, new[0].attempt), World())
        world.join(new)
        spawned = [self._spawn(pod, workload, world) for pod in new]
        if all(spawned):
            self._news.append(Up(self._clock.now(), workload.id))

    def _spawn(self, pod: Pod, workload: Workload, world: World) -> bool:
        self._started.add(pod.id)
        log = self.log(pod.id)
        mark = "/".join((self._token, internal(pod.workload), *map(str, pod.id[1:]), ""))
        try:
            if not workload.command:
                raise OSError("it has no command")
            log.parent.mkdir(parents=True, exist_ok=True)
            process = Process.spawn(workload.command, environment(pod, workload, world, self._ordinals), log, mark)
        except OSError as error:
            program = workload.command[0] if workload.command else ""
            self._remark(pod, "unstartable", program=repr(program), why=why(error))
            self._news.append(PodEnded(self._clock.now(), pod.id, ok=False))
            return False
        running = _Running(pod, process)
        self._running[pod.id] = running
        self._watch(running, process.exited)
        return True

    def stop(self, pods: Iterable[PodId], grace: int) -> None:
        """Stop these pods (see the port)."""
        now = self._clock.now()
        for pod in pods:
            running = self._running.get(pod)
            if running is None:
                self._news.append(PodGone(now, pod))
            elif running.deadline is None:
                running.deadline = now + grace
                if grace > 0:
                    running.process.ask()
                else:
                    self._force(running)

    # -- what happens -------------------------------------------------------------------------------------------

    def observe(self, until: int | None) -> tuple[Event | Remark, ...]:
        """What happened (see the port)."""
        while not self._news:
            now = self._clock.now()
            limit = self._next_deadline(until)
            late = limit is not None and limit <= now
            self._wait(0 if late else None if limit is None else min((limit - now) / SECOND, LONGEST_SLEEP))
            self._force_overdue()
            if until is not None and self._clock.now() >= until:
                break
        news, self._news = self._news, []
        return tuple(news)

    def _next_deadline(self, until: int | None) -> int | None:
        deadlines = [r.deadline for r in self._running.values() if r.deadline is not None and not r.forced]
        return min([*deadlines, *([] if until is None else [until])], default=None)

    def _wait(self, seconds: float | None) -> None:
        """Wait for the exit of watched processes, and settle the pods that have none left."""
        touched: dict[PodId, _Running] = {}
        for key, _ in self._selector.select(seconds):
            running: _Running = key.data
            self._unwatch(running, key.fd)
            touched[running.pod.id] = running
        quiet = [running for running in touched.values() if not running.watched]
        if quiet:
            self._settle(quiet)

    def _settle(self, quiet: list[_Running]) -> None:
        """All that were known of these pods have exited: they are over, unless others of their processes live on.

        What a pod leaves behind when it ends by itself is ended by force, for its GPUs go to somebody else; a pod
        that was told to stop keeps its grace for all of its processes.
        """
        found = others([running.process for running in quiet])
        for running in quiet:
            left = found[running.process.pid]
            for descriptor in left:
                self._watch(running, descriptor)
            if not left:
                self._over(running)
            elif running.deadline is None or running.forced:
                self._force(running)

    def _force_overdue(self) -> None:
        now = self._clock.now()
        for running in [r for r in self._running.values() if r.deadline is not None and not r.forced]:
            if running.deadline is not None and running.deadline <= now:
                self._force(running)

    def _force(self, running: _Running) -> None:
        running.forced = True
        for descriptor in running.process.kill():
            self._watch(running, descriptor)

    def _over(self, running: _Running) -> None:
        pod = running.pod
        code = running.process.end()
        del self._running[pod.id]
        if not any(other.workload == pod.workload and other.attempt == pod.attempt for other in self._pods()):
            self._worlds.pop((pod.workload, pod.attempt), None)
        told = running.deadline is not None
        if told and running.forced:
            self._remark(pod, "forced")
        elif code and not told:
            key, shown = _code(code)
            self._remark(pod, key, code=shown, log=str(self.log(pod.id)))
        now = self._clock.now()
        self._news.append(PodGone(now, pod.id) if told else PodEnded(now, pod.id, ok=code == 0))

    def _pods(self) -> Iterator[Pod]:
        return (running.pod for running in self._running.values())

    def _remark(self, pod: Pod, key: str, **params: str | int) -> None:
        params.update(pod=f"{pod.role}.{pod.rank}", attempt=pod.attempt)
        self._news.append(Remark(self._clock.now(), pod.workload, screen(key, "en", **params), key, params))

    def _watch(self, running: _Running, descriptor: int) -> None:
        running.watched.add(descriptor)
        self._selector.register(descriptor, selectors.EVENT_READ, running)

    def _unwatch(self, running: _Running, descriptor: int) -> None:
        self._selector.unregister(descriptor)
        os.close(descriptor)
        running.watched.discard(descriptor)

    # -- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End every pod: asked first, by force after CLOSING at the latest, at once when interrupted again."""
        try:
            self.stop(list(self._running), CLOSING)
            give_up = self._clock.now() + CLOSING + SECOND
            while self._running and self._clock.now() < give_up:
                self._news.clear()
                self.observe(give_up)
        finally:
            with _undisturbed():
                self._kill_all()

    def _kill_all(self) -> None:
        for running in self._running.values():
            self._force(running)
        give_up = self._clock.now() + int(UNKILLABLE * SECOND)
        while self._running and self._clock.now() < give_up:
            self._wait((give_up - self._clock.now()) / SECOND)
        end_strays(f"{self._token}/")
        for running in self._running.values():
            for descriptor in list(running.watched):
                self._unwatch(running, descriptor)
        self._running.clear()


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """No signal may interrupt the last kill."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _code(code: int) -> tuple[str, str | int]:
    """The key of the words for an exit code, and how it is shown."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return "exit_signal", signal.Signals(-code).name
        return "exit_signal", -code
    return _SHELL.get(code, "exit_code"), code
