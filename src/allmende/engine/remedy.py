"""Remedies: for each kind of change the smallest that starts a waiting workload now, tried on a fork by a real pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from allmende.engine import life
from allmende.engine.apply import settle
from allmende.engine.mask import bits, order_key
from allmende.engine.plan import plan
from allmende.engine.state import State
from allmende.model.decision import Start
from allmende.model.remedy import Change, Remedy
from allmende.model.request import Ask
from allmende.model.standing import Phase
from allmende.model.workload import Role, Workload


def remedies(state: State, name: str, now: int) -> list[Remedy]:
    """What would start `name` now; empty where it runs already, starts anyway, or nothing of this kind would help."""
    settle(state)
    standing = state.standings.get(name)
    if standing is None or standing.phase is not Phase.QUEUED:
        return []
    trial = Trial(state.fork(), name, now)
    if trial.starts(standing.workload):
        return []
    return [remedy for attempt in _ATTEMPTS for remedy in attempt(trial, standing.workload)]


class Trial:
    """A fork on which changed requests take the workload's place in the queue, one after the other."""

    def __init__(self, fork: State, name: str, now: int) -> None:
        self.fork = fork
        self.name = name
        self.now = now

    def starts(self, changed: Workload) -> bool:
        """Whether the workload, so changed, is started by a pass made now."""
        before = self.fork.standings[self.name]
        wanted = tuple(role.pods for role in changed.roles)
        least = tuple(min(role.least, role.pods) for role in changed.roles)
        life.change(
            self.fork, before, replace(before, workload=changed, wanted=wanted, minimum=changed.gang_min, least=least)
        )
        decided = plan(self.fork, self.now)
        life.change(self.fork, self.fork.standings[self.name], before)
        return any(isinstance(d, Start) and d.workload == self.name for d in decided.decisions)

    def largest(self, most: int, change: Callable[[int], Workload]) -> int | None:
        """The largest value from 1 to `most` with which it starts, by halving; the answer itself was tried."""
        if most < 1 or not self.starts(change(1)):
            return None
        low, high = 1, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.starts(change(middle)):
                low = middle
            else:
                high = middle - 1
        return low


def _fewer_pods(trial: Trial, workload: Workload) -> Iterator[Remedy]:
    if len(workload.roles) != 1 or workload.gang_min < 2:
        return
    role = workload.roles[0]

    def change(pods: int) -> Workload:
        return replace(workload, roles=(replace(role, pods=pods, least=min(role.least, pods)),), gang_min=pods)

    pods = trial.largest(workload.gang_min - 1, change)
    if pods is not None:
        yield Remedy(Change.FEWER_PODS, {"asked": workload.gang_min, "pods": pods})


def _fewer_gpus(trial: Trial, workload: Workload) -> Iterator[Remedy]:
    asked = max((role.ask.whole for role in workload.roles), default=0)
    if asked < 2:
        return

    def change(gpus: int) -> Workload:
        return _with_asks(workload, lambda ask: replace(ask, whole=min(ask.whole, gpus)))

    gpus = trial.largest(asked - 1, change)
    if gpus is not None:
        yield Remedy(Change.FEWER_GPUS, {"asked": asked, "gpus": gpus})


def _fewer_cpus(trial: Trial, workload: Workload) -> Iterator[Remedy]:
    """In whole CPUs."""
    asked = max((role.ask.cpu for role in workload.roles), default=0)
    if asked <= 1000:
        return

    def change(cpus: int) -> Workload:
        return _with_asks(workload, lambda ask: replace(ask, cpu=min(ask.cpu, cpus * 1000)))

    cpus = trial.largest((asked - 1) // 1000, change)
    if cpus is not None:
        yield Remedy(Change.FEWER_CPUS, {"asked": asked, "cpus": cpus * 1000})


def _other_model(trial: Trial, workload: Workload) -> Iterator[Remedy]:
    wished = {model for role in workload.roles for model in role.where.models}
    if not wished:
        return
    there = {room.node.model for room in trial.fork.index.rooms.values() if room.node.model}
    for model in sorted(there - wished, key=order_key):
        if trial.starts(_with_roles(workload, partial(_on_model, model))):
            yield Remedy(Change.OTHER_MODEL, {"asked": "/".join(sorted(wished)), "model": model})


def _on_model(model: str, role: Role) -> Role:
    return replace(role, where=replace(role.where, models=(model,))) if role.where.models else role


def _wider_level(trial: Trial, workload: Workload) -> Iterator[Remedy]:
    """The next wider level that does, or none at all."""
    if not workload.same:
        return
    levels = trial.fork.levels
    above = levels[: levels.index(workload.same)] if workload.same in levels else levels
    for level in (*reversed([name for name in above if name != "node"]), ""):
        if trial.starts(replace(workload, same=level)):
            yield Remedy(Change.WIDER_LEVEL, {"asked": workload.same, "level": level})
            return


def _shorter_limit(trial: Trial, workload: Workload) -> Iterator[Remedy]:
    """The longest limit, in whole minutes, that ends before what stands in the way begins."""
    index = trial.fork.index
    edges = [
        w.start
        for pos in bits(index.masks.windows)
        for w in index.masks.rooms[pos].node.maintenance
        if w.start > trial.now
    ]
    edges += [end for end, _, _ in index.ends if end > trial.now] if trial.fork.policy.reserve_after is not None else []
    if not edges:
        return
    longest = max(edges) - trial.now
    if workload.limit is not None:
        longest = min(longest, workload.limit - 1)

    def change(minutes: int) -> Workload:
        return replace(workload, limit=minutes * MINUTE)

    minutes = trial.largest(longest // MINUTE, change)
    if minutes is not None:
        asked = -1 if workload.limit is None else workload.limit
        yield Remedy(Change.SHORTER_LIMIT, {"asked": asked, "limit": minutes * MINUTE})


def _preemptible(trial: Trial, workload: Workload) -> Iterator[Remedy]:
    if not workload.borrow and trial.starts(replace(workload, borrow=True)):
        branch = trial.fork.index.tree.leaf(workload.project)
        yield Remedy(Change.PREEMPTIBLE, {"project": branch.name, "guarantee": branch.project.guarantee})


def _with_roles(workload: Workload, change: Callable[[Role], Role]) -> Workload:
    return replace(workload, roles=tuple(change(role) for role in workload.roles))


def _with_asks(workload: Workload, change: Callable[[Ask], Ask]) -> Workload:
    return _with_roles(workload, lambda role: replace(role, ask=change(role.ask)))


MINUTE = 60_000_000

_ATTEMPTS = (_fewer_pods, _fewer_gpus, _fewer_cpus, _other_model, _wider_level, _shorter_limit, _preemptible)
"""From the change that costs least thought to the one that costs protection."""
