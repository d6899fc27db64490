"""What one pod asks for, and where it may stand."""

from __future__ import annotations

from msgspec import Struct

from allmende.model.units import GPU


class Ask(Struct, frozen=True, gc=False):
    """What one pod needs of its node. At most one of `whole`, `share`, `memory`, `slots` is above zero.

    Units: `whole` GPUs; `share` in units of one GPU (`GPU` units each); `memory` in MiB of one GPU;
    `slots` of shared GPUs (on `slots` different GPUs when `distinct`); `cpu` in milli-CPUs; `ram` in bytes.
    `exclusive` takes the node to itself.
    """

    whole: int = 0
    share: int = 0
    memory: int = 0
    slots: int = 0
    distinct: bool = False
    cpu: int = 0
    ram: int = 0
    exclusive: bool = False

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU, or a part of one, is needed at all."""
        return self.whole > 0 or self.share > 0 or self.memory > 0 or self.slots > 0


class Where(Struct, frozen=True, gc=False):
    """Which nodes will do: any of `models` (all when empty), every label of `select`, taints in `tolerates`."""

    models: tuple[str, ...] = ()
    select: tuple[tuple[str, str], ...] = ()
    tolerates: tuple[str, ...] = ()


def units_asked(ask: Ask, slots_per_gpu: int = 1, device_memory: int = 0) -> int:
    """GPU units that `ask` takes: exact for whole GPUs, shares and slots; by memory, the part of the device, rounded
    down."""
    if ask.whole:
        return ask.whole * GPU
    if ask.share:
        return ask.share
    if ask.slots:
        return ask.slots * (GPU // slots_per_gpu)
    if ask.memory and device_memory:
        return max(1, min(GPU, ask.memory * GPU // device_memory))
    return 0
