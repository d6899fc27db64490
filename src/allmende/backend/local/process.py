"""One pod as a group of real processes: start, signal, and know when nothing of it is left.

The first process leads a session of its own, so one signal reaches all that it started, and a terminal's Ctrl-C reaches
none of them. It stays unreaped until the others have gone: until then the kernel gives its number to nobody else.
Processes that left the session (daemons) are found by a mark in their environment.
"""

import contextlib
import os
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
        self._mark = f"{MARK}={mark}"

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
        return cls(leader, mark)

    @property
    def pid(self) -> int:
        """The process (and group, and session) number of the leader."""
        return self._leader.pid

    def leader(self) -> int:
        """A descriptor that becomes readable when the leader has exited; the caller closes it."""
        return os.pidfd_open(self.pid)

    def ask(self) -> None:
        """Ask the group to end (SIGTERM); a stopped one is woken to hear it."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)

    def kill(self) -> list[int]:
        """End all of it by force; a descriptor for each that was still there, readable when it has exited."""
        self._signal(signal.SIGKILL)
        found = self.others()
        for descriptor in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return found

    def others(self) -> list[int]:
        """A descriptor for each living process of the pod but the leader; the caller closes them."""
        return [
            held for pid in _numbers() if pid != self.pid and (held := _hold(pid, self.pid, self._mark)) is not None
        ]

    def end(self) -> int:
        """The leader's exit code (negative: the signal that ended it); waits for it, and gives its number back."""
        return self._leader.wait()

    def _signal(self, number: int) -> None:
        if self._leader.returncode is None:  # not reaped, so the number is still its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


def strays(mark: str) -> list[int]:
    """A descriptor for each living process whose mark begins so: what an interrupted start may have left."""
    own = os.getpid()
    return [held for pid in _numbers() if pid != own and (held := _hold(pid, -1, f"{MARK}={mark}")) is not None]


def why(error: Exception) -> str:
    """What the system says went wrong, without its error number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _numbers() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _hold(pid: int, session: int, mark: str) -> int | None:
    """A descriptor of the process if it is of the session or carries the mark; asked twice, for numbers are reused."""
    if not _belongs(pid, session, mark):
        return None
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    if _belongs(pid, session, mark):
        return descriptor
    os.close(descriptor)
    return None


def _belongs(pid: int, session: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, _, _, its_session = file.read().rpartition(b")")[2].split()[:4]
        if state in (b"Z", b"X"):
            return False
        if int(its_session) == session:
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(variable.startswith(mark.encode()) for variable in file.read().split(b"\0"))
    except (OSError, ValueError):  # gone meanwhile, or somebody else's
        return False
