"""The only place that builds concrete things: it joins the loop with a backend, a clock and a journal."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from allmende.backend.local.backend import LocalBackend
from allmende.backend.local.clock import RunClock
from allmende.control.journal import Journal, Line
from allmende.control.loop import Loop
from allmende.model.cluster import Node


@dataclass(frozen=True)
class LocalRun:
    """A loop on real processes of this machine, with what belongs to it; `close` leaves nothing behind."""

    loop: Loop
    backend: LocalBackend
    journal: Journal

    def close(self) -> None:
        """End every process and close the journal."""
        try:
            self.backend.close()
        finally:
            self.journal.close()


def local_run(nodes: Iterable[Node], logs: Path, log: Path | None, watch: Callable[[Line], None]) -> LocalRun:
    """A run on this machine with these nodes. `logs`: folder of the pods' output; `log`: the event log's file.

    Raises OSError where the event log cannot be written.
    """
    clock = RunClock()
    journal = Journal(log)
    backend = LocalBackend(nodes, clock, logs)
    return LocalRun(Loop(backend, clock, journal, watch), backend, journal)
