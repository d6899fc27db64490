"""What carries decisions out and sees what happens: a machine's processes, a cluster's pods, or a fake."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from allmende.model.cluster import Pod, PodId
from allmende.model.event import Event
from allmende.model.workload import Workload


class Remark(Struct, frozen=True, tag=True):
    """Something about a workload that people should read and no decision depends on ('exit code 3').

    `text` says it in English, for logs; `key` and `params`, where given, let `words.screen` say it in any language.
    """

    at: int
    workload: str
    text: str
    key: str = ""
    params: dict[str, str | int] = {}


class Backend(Protocol):
    """Starts and stops pods, and reports what became of them.

    Orders are idempotent by pod id (workload, attempt, role, rank), for they may be given again after a crash.
    None of them raises for what a pod does or fails to do: that is reported as an event.
    """

    def start(self, pods: Sequence[Pod], workload: Workload) -> None:
        """Start these pods of one attempt at their places; returns at once.

        A pod that was ever started is not started again. When all of them run, `Up` is reported once; one that
        cannot be started is reported as `PodEnded` (not ok) with a `Remark` that says why.
        """
        ...

    def stop(self, pods: Iterable[PodId], grace: int) -> None:
        """Ask these pods to end, and end them by force `grace` microseconds later; returns at once.

        Each is reported as `PodGone` once nothing of it is left, also one that had ended by itself or was never
        started. The first order's grace counts.
        """
        ...

    def observe(self, until: int | None) -> tuple[Event | Remark, ...]:
        """What happened since the last call, in order, each thing once.

        Waits until something happens or the clock reaches `until` (a moment in the past: does not wait; None:
        waits as long as it takes). `PodEnded` is a pod's own end, `PodGone` that of one told to stop, `PodLost`
        that of one which nobody told to and which did not end by itself.
        """
        ...

    def close(self) -> None:
        """End every pod and leave nothing behind; safe to call again."""
        ...
