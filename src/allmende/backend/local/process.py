"""One pod as a group of real processes: start, signal, and know when nothing of it is left.

The first process leads a session of its own, so one signal reaches all that it started, and a terminal's Ctrl-C reaches
none of them. It stays unreaped until the others have gone: until then the kernel gives its number to nobody else.
Processes that left the session (daemons) are found by a mark in their environment.
"""

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

MARK = "ALLMENDE_POD"
"""The variable by which a pod's processes are known wherever they went."""


class Process:
    """A pod's processes. Made by `spawn`; every method is harmless after the end."""

    def __init__(self, leader: subprocess.Popen[bytes], mark: str) -> None:
        self._leader = leader
        self.mark = mark
        self.exited = os.pidfd_open(leader.pid)
        """A descriptor that becomes readable when the first process has exited; the caller closes it."""

    @classmethod
    def spawn(cls, command: Sequence[str], extra: Mapping[str, str], log: Path, mark: str) -> "Process":
        """Start the command with its output appended to `log` and nothing on its input.

        Raises OSError where it cannot be started (not found, not executable, ...); the log then says so.
        """
        with log.open("ab") as out:
            try:
                leader = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **extra, MARK: mark},
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                out.write(f"allmende: cannot start {command[0]!r}: {why(error)}\n".encode())
                raise error if isinstance(error, OSError) else OSError(str(error)) from error
            try:
                return cls(leader, mark)
            except OSError as error:  # no descriptor is left to watch it with
                os.killpg(leader.pid, signal.SIGKILL)
                leader.wait()
                out.write(f"allmende: cannot watch {command[0]!r}: {why(error)}\n".encode())
                raise

    @property
    def pid(self) -> int:
        """The process (and group, and session) number of the leader."""
        return self._leader.pid

    def ask(self) -> None:
        """Ask the group to end (SIGTERM); a stopped one is woken to hear it."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)

    def kill(self) -> list[int]:
        """End all of it by force; a descriptor for each that was still there, readable when it has exited."""
        self._signal(signal.SIGKILL)
        found = others([self])[self.pid]
        for descriptor in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return found

    def end(self) -> int:
        """The leader's exit code (negative: the signal that ended it); waits for it, and gives its number back."""
        return self._leader.wait()

    def _signal(self, number: int) -> None:
        if self._leader.returncode is None:  # not reaped, so the number is still its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


def others(processes: Sequence[Process]) -> dict[int, list[int]]:
    """For each of these, by its pid, a descriptor for every living process but the leader; the caller closes them.

    One look through the machine's processes serves them all, for pods of a gang end together.
    """
    sessions = {process.pid: process.pid for process in processes}
    marks = {process.mark.encode(): process.pid for process in processes}
    found: dict[int, list[int]] = {pid: [] for pid in sessions}
    for pid in _numbers():
        if pid in sessions:
            continue
        owner = _owner(pid, sessions, marks)
        if owner is not None and (held := _hold(pid)) is not None:
            if _owner(pid, sessions, marks) == owner:  # asked twice, for numbers are reused
                found[owner].append(held)
            else:
                os.close(held)
    return found


def _owner(pid: int, sessions: Mapping[int, int], marks: Mapping[bytes, int]) -> int | None:
    session = _session(pid)
    if session is None or session in sessions:
        return session
    return marks.get(_mark(pid))


def strays(prefix: str) -> list[int]:
    """A descriptor for each living process whose mark begins so; the caller closes them."""
    found = []
    for pid in _numbers():
        if pid != os.getpid() and _mark(pid).startswith(prefix.encode()) and (held := _hold(pid)) is not None:
            if _mark(pid).startswith(prefix.encode()):  # asked twice, as above
                found.append(held)
            else:
                os.close(held)
    return found


def end_strays(prefix: str) -> None:
    """End by force every process whose mark begins so: what an interrupted start may have left."""
    for _ in range(10):  # again, for one may have started another meanwhile
        found = strays(prefix)
        for descriptor in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        for descriptor in found:
            select.select([descriptor], [], [], 1.0)
            os.close(descriptor)
        if not found:
            break


def why(error: Exception) -> str:
    """What the system says went wrong, without its error number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _numbers() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _hold(pid: int) -> int | None:
    """A descriptor of a process; None where it is gone or no descriptor is left."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _session(pid: int) -> int | None:
    """The session of a living process; None where it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, _, _, session = file.read().rpartition(b")")[2].split()[:4]
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") else int(session)


def _mark(pid: int) -> bytes:
    """The mark in a process's environment; empty where it has none, has ended, or is somebody else's."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return b""
    name = f"{MARK}=".encode()
    return next((variable.removeprefix(name) for variable in variables if variable.startswith(name)), b"")
