"""What happened in a played scene: starts, evictions, and who held what from when to when."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from allmende.metering.window import Use
from allmende.model.cluster import Pod, PodId
from allmende.model.decision import Evict, Grow, Start
from allmende.scene import view
from allmende.sim.world import Entry, Observer, World


class Begun(Struct, frozen=True):
    """Pods of a workload were assigned at a moment; `grown`: in addition to others."""

    at: int
    workload: str
    pods: tuple[Pod, ...]
    grown: bool = False


class Record(Observer):
    """Keeps what a state forgets. `uses`: every pod's stretch of time, by workload, closed or still open."""

    def __init__(self) -> None:
        self.begun: list[Begun] = []
        self.evicts: list[Evict] = []
        self.first_seen: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self.usage_at_start = 0
        self.warnings_at_setup: list[str] = []
        self.warnings_at_change: list[str] = []
        self._open: dict[PodId, Use] = {}
        self._closed: list[Use] = []

    def settled(self, world: World, entries: Sequence[Entry], until: int) -> None:
        """Take over what an instant brought."""
        self.note(entries)
        for name, outcome in world.state.outcomes.items():
            self.ended.setdefault(name, outcome.ended)
        self._meter(world)

    def note(self, entries: Sequence[Entry]) -> None:
        """Take over starts and evictions."""
        for entry in entries:
            match entry:
                case Start() | Grow():
                    self.begun.append(Begun(entry.at, entry.workload, entry.pods, isinstance(entry, Grow)))
                    self.first_seen.setdefault(entry.workload, entry.at)
                case Evict():
                    self.evicts.append(entry)

    def begin(self, world: World) -> None:
        """Take over what stands when the scene begins: its use counts from when it started."""
        self.usage_at_start = sum(view.usage_own(world.state).values())
        for standing in world.state.standings.values():
            for pod in standing.pods:
                self._open[pod.id] = Use(pod.workload, pod.units, standing.started or 0)

    def _meter(self, world: World) -> None:
        """Open and close stretches of use by comparing who takes room now with who did."""
        now = {pod.id: pod for pod in view.present_pods(world.state)}
        for pod_id in [known for known in self._open if known not in now]:
            use = self._open.pop(pod_id)
            self._closed.append(Use(use.name, use.units, use.start, world.now))
        for pod_id, pod in now.items():
            if pod_id not in self._open:
                self._open[pod_id] = Use(pod.workload, pod.units, world.now)

    @property
    def uses(self) -> tuple[Use, ...]:
        """All stretches of use, the ended ones first."""
        return (*self._closed, *self._open.values())

    def start_of(self, workload: str) -> int | None:
        """When a workload first started within the scene."""
        return self.first_seen.get(workload)

    def end_of(self, workload: str) -> int | None:
        """When a workload was over."""
        return self.ended.get(workload)
