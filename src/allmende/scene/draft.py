"""A scene while it is being read: what later parts of the file refer back to."""

from __future__ import annotations

from msgspec import Struct, field

from allmende.model.mistake import MistakeCode
from allmende.model.workload import Workload
from allmende.scene.cell import Cell


class Draft(Struct):
    """What has been read so far, for what refers back to it."""

    origin: int = 0
    levels: tuple[str, ...] = ()
    nodes: dict[str, dict[str, Cell]] = field(default_factory=dict)
    projects: dict[str, dict[str, Cell]] = field(default_factory=dict)
    workloads: dict[str, Workload] = field(default_factory=dict)
    places: dict[str, Cell] = field(default_factory=dict)
    bulk: set[str] = field(default_factory=set)
    gaps: list[str] = field(default_factory=list)

    def add(self, workload: Workload, cell: Cell) -> None:
        """Remember a workload. Raises Mistake: DUPLICATE."""
        if workload.id in self.workloads:
            do = f"give each workload a name of its own; the other is at {self.places[workload.id].place}"
            raise cell.mistake(MistakeCode.DUPLICATE, do, what=workload.id)
        self.workloads[workload.id] = workload
        self.places[workload.id] = cell
