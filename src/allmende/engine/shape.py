"""Shapes: requests that are alike are judged once, as a class."""

from __future__ import annotations

from allmende.model.request import Ask, Where
from allmende.model.standing import Standing
from allmende.model.units import GPU

Key = tuple[tuple[tuple[Ask, Where, int, int], ...], int, bool, str, str, str]
Size = tuple[str, int]
"""The kind and amount of GPU that one pod takes: what a glance at a node's free devices can refuse."""


def key_of(standing: Standing) -> Key:
    """All that decides where a waiting workload fits. Owner, priority, time limit and names are no part of it."""
    workload = standing.workload
    roles = tuple(
        (r.ask, r.where, n, least) for r, n, least in zip(workload.roles, standing.wanted, standing.least, strict=True)
    )
    return (roles, standing.minimum, workload.elastic, workload.same, workload.prefer_same, workload.spread)


def size_of(ask: Ask) -> Size:
    """The size class of one pod."""
    if ask.exclusive:
        return ("exclusive", ask.whole)
    if ask.whole:
        return ("whole", ask.whole)
    if ask.share:
        return ("share", ask.share)
    if ask.memory:
        return ("memory", ask.memory)
    if ask.slots:
        return ("slots", ask.slots)
    return ("cpu", 0)


class Shape:
    """An interned class of requests.

    `counts` are the pods of each role that a start must place (role minima first, then the gang's minimum, in
    the order of the roles); `wanted` those it may place. `size` is the largest role's. `single` holds the ask of
    a shape of one role. `level` is the topology level all pods must share.
    """

    __slots__ = (
        "counts",
        "elastic",
        "key",
        "least",
        "level",
        "minimum",
        "prefer",
        "roles",
        "single",
        "size",
        "spread",
        "wanted",
    )

    def __init__(self, key: Key) -> None:
        self.key = key
        roles, self.minimum, self.elastic, self.level, self.prefer, self.spread = key
        self.roles = tuple((ask, where) for ask, where, _, _ in roles)
        self.wanted = tuple(pods for _, _, pods, _ in roles)
        self.least = tuple(least for _, _, _, least in roles)
        self.counts = self._counts()
        self.single: Ask | None = self.roles[0][0] if len(roles) == 1 and not self.spread else None
        placed = [ask for (ask, _), n in zip(self.roles, self.counts, strict=True) if n]
        self.size = size_of(max(placed or [Ask()], key=weight))

    def _counts(self) -> tuple[int, ...]:
        counts = list(self.least)
        missing = self.minimum - sum(counts)
        for index, pods in enumerate(self.wanted):
            if missing <= 0:
                break
            more = min(missing, pods - counts[index])
            counts[index] += more
            missing -= more
        return tuple(counts)

    def units(self, slots_per_gpu: int, device_memory: int) -> int:
        """GPU units that the minimum takes, on devices of this memory cut in so many slots."""
        total = 0
        for (ask, _), pods in zip(self.roles, self.counts, strict=True):
            if pods:
                total += pods * role_units(ask, slots_per_gpu, device_memory)
        return total


def role_units(ask: Ask, slots_per_gpu: int = 1, device_memory: int = 0) -> int:
    """GPU units that one pod takes (a memory ask on devices of `device_memory` MiB)."""
    if ask.whole:
        return ask.whole * GPU
    if ask.share:
        return ask.share
    if ask.slots:
        return ask.slots * (GPU // max(1, slots_per_gpu))
    if ask.memory:
        return max(1, min(GPU, ask.memory * GPU // device_memory)) if device_memory else GPU
    return 0


def weight(ask: Ask) -> tuple[int, int, int]:
    """How hard a pod is to place, for placing the hardest first."""
    return (role_units(ask), ask.cpu, ask.ram)
