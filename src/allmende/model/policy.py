"""The named knobs of a cluster: one frozen value, no modes."""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum

from msgspec import Struct

from allmende.model.units import SECOND


class Preset(StrEnum):
    """Which meaning of protection is in force (docs/architecture.md, "One policy, two presets")."""

    QUOTA = "quota"


class Policy(Struct, frozen=True, gc=False):
    """Every knob with its default; times in microseconds.

    `evictions` False: nothing is ever taken back. `reserve_after`: a workload that has waited so long gets a
    reservation (None = never). `not_ready_after`: silence of a node that ends its pods. `keep_survivors`: how
    long a gang that lost a pod keeps the others while a replacement is sought (0 = requeue it whole).
    `bind_within`: how long an assignment may stay without its pods running before it is void.
    `fair_share_eviction`: a request may take borrowed work of a queue that stays above the asker's share.
    `borrowers_evict`: a borrower may take lower-priority borrowed work of other queues.
    `half_life`: decay of the use that orders spare capacity (None = only what runs now orders it).
    `utc_offset`: the cluster's local time, for daily limits; `clock_changes`: (moment, offset from then on), rising,
    where a zone changes its clocks. `reservations`: at most so many at once.
    `search_steps`: bound of one victim search, in counted steps, never in time.
    """

    preset: Preset = Preset.QUOTA
    evictions: bool = True
    reserve_after: int | None = None
    reservations: int = 8
    not_ready_after: int = 300 * SECOND
    keep_survivors: int = 0
    bind_within: int = 120 * SECOND
    close_on_gpu_loss: bool = True
    fair_share_eviction: bool = False
    borrowers_evict: bool = False
    half_life: int | None = None
    utc_offset: int = 0
    clock_changes: tuple[tuple[int, int], ...] = ()
    search_steps: int = 2000

    def offset(self, at: int) -> int:
        """Local time minus UTC at a moment, in microseconds."""
        changes = bisect_right(self.clock_changes, at, key=lambda change: change[0])
        return self.clock_changes[changes - 1][1] if changes else self.utc_offset
