"""Random small clusters, each made from its seed alone and only out of entries that can really happen.

`single(seed)` has exactly one pending workload, `several(seed)` two to four. The cluster is mostly full, the claimant
often inside its guarantee, others often above theirs, and ties of time, priority and size are common on purpose.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from random import Random

import msgspec

from allmende.model.cluster import Pod, PodId
from allmende.model.decision import Cause, Decision, Evict, Start
from allmende.model.event import (
    Cancelled,
    Checkpointed,
    Event,
    LevelsSet,
    NodeSet,
    PolicySet,
    ProjectSet,
    Resized,
    Submitted,
    Ticked,
    Up,
)
from allmende.model.policy import Policy
from allmende.model.request import Ask, Where
from allmende.model.tenancy import Project
from allmende.model.units import GPU, SECOND
from allmende.model.workload import Role, Workload
from tests.property.states_cluster import GIB, Cluster

Entry = Event | Decision

NOW = 10_000 * SECOND
MOMENTS = tuple(at * SECOND + odd for at, odd in ((100, 0), (1_000, 1), (4_000, 0), (7_000, 3), (9_000, 0)))
UNITS = 10  # victim units of one state at most, so that all sets can be tried
SETS = 1024  # and victim sets at most


@dataclass(frozen=True)
class Sample:
    """A state as the entries that lead to it, and what it was made for."""

    seed: int
    now: int
    entries: tuple[Entry, ...]
    pending: tuple[str, ...]
    later: tuple[Workload, ...] = ()  # what may be submitted afterwards


def single(seed: int) -> Sample:
    """A small state with exactly one pending workload."""
    rng = Random(f"single {seed}")
    return _Maker(rng, seed, Cluster.made(rng)).sample(1)


def several(seed: int) -> Sample:
    """A small state with two to four pending workloads."""
    rng = Random(f"several {seed}")
    return _Maker(rng, seed, Cluster.made(rng)).sample(rng.randint(2, 4))


def shuffled(sample: Sample, rng: Random) -> tuple[Entry, ...]:
    """The same entries, those of equal time and kind in another order; parents stay ahead of their children."""
    mixed: list[Entry] = []
    for (_, kind), group in groupby(sample.entries, key=lambda entry: (entry.at, type(entry))):
        run = list(group)
        if kind in (NodeSet, ProjectSet, Submitted):
            rng.shuffle(run)
        if kind is ProjectSet:
            parent = {entry.project.name: entry.project.parent for entry in run if isinstance(entry, ProjectSet)}
            run.sort(key=lambda entry: _depth(parent, entry.project.name) if isinstance(entry, ProjectSet) else 0)
        mixed += run
    return tuple(mixed)


def digest(entries: Iterable[Entry]) -> str:
    """A short text that is equal only for equal entries in equal order."""
    return hashlib.blake2b(msgspec.json.encode(list(entries), enc_hook=str), digest_size=12).hexdigest()


def _depth(parent: dict[str, str], name: str) -> int:
    return 1 + _depth(parent, parent[name]) if parent.get(name) else 0


@dataclass
class _Maker:
    rng: Random
    seed: int
    on: Cluster
    parents: dict[str, str] = field(default_factory=dict)
    homes: list[str] = field(default_factory=list)  # the projects that work is submitted to
    sets: int = 1  # victim sets that exist so far
    units: int = 0
    runs: list[tuple[Workload, int, tuple[Pod, ...]]] = field(default_factory=list)
    policy: Policy = Policy(close_on_gpu_loss=False)  # noqa: RUF009

    def sample(self, claimants: int) -> Sample:
        """The whole state: cluster, tree, running work, then who asks, then guarantees that make it interesting."""
        self.tree()
        pattern: Workload | None = None
        for number in range(self.rng.randint(8, 14) if self.on.fine else self.rng.randint(3, 12)):
            largest = 1 if self.on.fine and self.rng.random() < 0.8 else 8
            work = self.workload(f"w{number}", self.rng.choice(self.homes), largest)
            if pattern is None and self.rng.random() < 0.15:
                pattern = work
            if pattern is not None and self.rng.random() < 0.85:  # victims that differ in little but their times
                work = msgspec.structs.replace(
                    pattern, id=work.id, project=self.rng.choice((work.project, pattern.project))
                )
            self.run(work)
        if self.rng.random() < (0.5 if self.on.fine else 0.8):
            self.walls()
        asking = [self.claimant(f"r{number}", claimants == 1) for number in range(claimants)]
        if self.rng.random() < 0.5 and len(asking) > 1:  # ties in everything but the name
            asking[1] = msgspec.structs.replace(asking[0], id=asking[1].id)
        entries = self.entries(asking)
        later = tuple(self.claimant(f"x{number}", False) for number in range(4))
        return Sample(self.seed, NOW, entries, tuple(work.id for work in asking), later)

    def tree(self) -> None:
        rng = self.rng
        depth = rng.choice((1, 1, 2, 2, 3))
        if depth == 1:
            self.parents = dict.fromkeys(("p", "q", "s")[: rng.randint(2, 3)], "")
        elif depth == 2:
            self.parents = {"x": "", "y": "", "x-p": "x", "x-q": "x", "y-p": "y"}
            if rng.random() < 0.3:
                self.parents["z"] = ""
        else:
            self.parents = {"o": "", "o-x": "o", "o-y": "o", "o-x-p": "o-x", "o-x-q": "o-x", "o-y-p": "o-y", "u": ""}
        inner = set(self.parents.values())
        self.homes = [name for name in self.parents if name not in inner]
        if rng.random() < 0.05:
            self.homes += [name for name in self.parents if name in inner]

    # -- workloads -----------------------------------------------------------------------------------------------

    def ask(self, largest: int) -> Ask:
        """What one pod needs: a few whole GPUs, a share, or none at all."""
        rng = self.rng
        kind = rng.choices(("whole", "share", "cpu"), (8, 2, 0 if self.on.by_model else 1))[0]
        cpu = rng.choice((0, 1_000, 2_000, 4_000)) if self.on.scarce or kind == "cpu" else 0
        ram = rng.choice((0, 4, 8, 16)) * GIB if self.on.scarce else 0
        if kind == "whole":
            sizes = [size for size in (1, 1, 2, 2, 3, 4, 8) if size <= largest]
            return Ask(whole=rng.choice(sizes), cpu=cpu, ram=ram)
        if kind == "share":
            return Ask(share=GPU // rng.choice((2, 2, 3, 4)), cpu=cpu, ram=ram)
        return Ask(cpu=max(cpu, 1_000), ram=ram)

    def where(self) -> Where:
        rng = self.rng
        named = len(self.on.models) == 2 and (self.on.by_model or rng.random() < 0.5)
        return Where(
            models=(rng.choice(self.on.models),) if named else (),
            select=(("fast", "yes"),) if rng.random() < 0.04 else (),
            tolerates=("reserved",) if rng.random() < 0.3 else (),
        )

    def workload(self, name: str, project: str, most: int = 8) -> Workload:
        """Any shape of workload: one pod, a gang, a gang with surplus, two roles."""
        rng = self.rng
        largest = min(most, self.on.largest)
        shape = rng.choice(("pod", "pod", "pod", "gang", "gang", "surplus", "surplus", "roles"))
        ask, where = self.ask(largest if shape == "pod" else min(4, largest)), self.where()
        if shape == "roles":
            roles = self.roles(ask, where)
        else:
            pods = 1 if shape == "pod" else rng.randint(2, 4)
            roles = (Role("main", pods, ask, where),)
        total = sum(role.pods for role in roles)
        surplus = shape == "surplus" or (shape == "roles" and rng.random() < 0.5)
        return Workload(
            id=name,
            project=project,
            roles=roles,
            gang_min=self.minimum(roles, total) if surplus else total,
            user=rng.choice(("ann", "bob")),
            priority=rng.choice((0, 0, 0, 1, 1, 5, -1)),
            elastic=surplus and rng.random() < 0.6,
            borrow=rng.random() > 0.06,
            grace=rng.choice((0, 30 * SECOND)),
        )

    def roles(self, ask: Ask, where: Where) -> tuple[Role, ...]:
        rng = self.rng
        other = ask if rng.random() < 0.5 else self.ask(2)
        pods = (rng.randint(1, 2), rng.randint(1, 3))
        least = tuple(rng.randint(0, count) for count in pods)
        names = ("lead", "worker")
        return tuple(
            Role(name, count, each, where, low)
            for name, count, each, low in zip(names, pods, (ask, other), least, strict=True)
        )

    def minimum(self, roles: tuple[Role, ...], total: int) -> int:
        """A gang minimum that leaves a surplus; which pods make it up is mostly beyond doubt."""
        least = sum(role.least for role in roles)
        if len({role.ask for role in roles}) == 1 or self.rng.random() < 0.1:
            return self.rng.randint(max(1, least), max(1, least, total - 1))
        return least or total

    def claimant(self, name: str, whole: bool) -> Workload:
        """A pending workload: more often important or in one domain, mostly one that the empty cluster could run."""
        rng = self.rng
        home = rng.choice(self.homes)
        for _ in range(4):
            work = self.workload(name, home)
            if self.could_run(work) and (work.pods > 1 or work.roles[0].ask.whole > 1 or not self.on.fine):
                break
        same = rng.choice((*self.on.levels, "node")) if work.pods > 1 and rng.random() < 0.3 else ""
        priority = rng.choice((0, 0, 1, 2, 5, 9))
        gang = work.pods if whole else work.gang_min  # pods above the minimum make claims of their own
        return msgspec.structs.replace(work, borrow=True, same=same, priority=priority, gang_min=gang)

    def could_run(self, work: Workload) -> bool:
        """Roughly: every pod alone fits some node that is not walled off, and all of them fit in sum."""
        walls = {pods[0].node: pods[0].units for wall, _, pods in self.runs if not wall.borrow}
        where = work.roles[0].where
        left = [
            len(room.node.devices) * GPU - walls.get(name, 0)
            for name, room in self.on.rooms.items()
            if not where.models or room.node.model in where.models
        ]
        asks = [(role.ask.whole * GPU + role.ask.share, role.pods) for role in work.roles]
        return max(left, default=0) >= max(units for units, _ in asks) and sum(left) >= sum(
            u * count for u, count in asks
        )

    # -- what runs -----------------------------------------------------------------------------------------------

    def run(self, work: Workload) -> bool:
        """Place and start the workload at random, whole, if there is room and the state stays small."""
        spare = work.pods - max(work.gang_min, sum(role.least for role in work.roles))
        if self.units + spare + 1 > UNITS or self.sets * (2**spare + 1) > SETS:
            return False
        pods = self.on.put_all(work.id, work.roles)
        if pods is None:
            return False
        self.units += spare + 1
        self.sets *= 2**spare + 1
        self.runs.append((work, self.rng.choice(MOMENTS), pods))
        return True

    def walls(self) -> None:
        """Fill free GPUs with work that nobody may take, so that room is scarce."""
        for room in self.on.rooms.values():
            free = sum(left == GPU for left in room.devices)
            size = free if self.rng.random() < 0.7 else self.rng.randint(0, free)
            if not size:
                continue
            where = Where(models=(room.node.model,) if room.node.model else (), tolerates=("reserved",))
            role = Role("main", 1, Ask(whole=size), where)
            name = f"wall-{room.node.name}"
            wall = Workload(name, self.rng.choice(self.homes), (role,), 1, priority=1_000, borrow=False)
            pod = self.on.put_on(room, Pod(name, 1, 0, 0, ""), role)
            if pod is not None:
                self.runs.append((wall, self.rng.choice(MOMENTS), (pod,)))

    # -- who is owed what ----------------------------------------------------------------------------------------

    def used(self, project: str, model: str | None = None) -> int:
        """GPU units that run in the project and below it."""
        inside = {name for name in self.parents if name == project or project in self.above(name)}
        return sum(
            pod.units
            for work, _, pods in self.runs
            for pod in pods
            if work.project in inside and model in (None, self.on.rooms[pod.node].node.model)
        )

    def above(self, project: str) -> list[str]:
        found = []
        while project := self.parents[project]:
            found.append(project)
        return found

    def projects(self, claimant: Workload) -> list[Project]:
        """The tree with guarantees around what runs, parents first, mostly in favour of the claimant's path."""
        rng = self.rng
        owed = {claimant.project, *self.above(claimant.project)} if rng.random() < 0.9 else set()
        asks = [(role.ask.whole * GPU + role.ask.share) * role.pods for role in claimant.roles]
        need = sum(asks)
        found: dict[str, Project] = {}
        for name in sorted(self.parents, key=lambda name: (-len(self.above(name)), name)):
            children = [project for project in found.values() if project.parent == name]
            favoured = name in owed and rng.random() < 0.9
            plain, by_model = 0, {}
            if self.on.by_model and rng.random() < 0.75:
                for model in self.on.models:
                    below = sum(child.guarantee_by_model.get(model, 0) for child in children)
                    by_model[model] = self.guarantee(self.used(name, model), need, below, favoured)
            else:
                below = sum(child.guarantee for child in children)
                plain = self.guarantee(self.used(name), need, below, favoured)
            found[name] = Project(
                name,
                parent=self.parents[name],
                guarantee=plain,
                guarantee_by_model=by_model,
                cap=max(plain, self.used(name) + GPU * rng.randint(-1, 4), 0) if rng.random() < 0.12 else None,
                weight=rng.choice((Fraction(1), Fraction(1), Fraction(2), Fraction(1, 2), Fraction(0))),
            )
        return sorted(found.values(), key=lambda project: (len(self.above(project.name)), project.name))

    def guarantee(self, used: int, need: int, below: int, favoured: bool) -> int:
        rng = self.rng
        if favoured:
            return max(used + need - rng.choice((0, 0, 0, GPU, GPU // 2)), 0) + rng.choice((0, 0, GPU))
        if below and rng.random() < 0.4:
            return below
        return rng.choice((0, 0, 0, 0, used // 2, used // (2 * GPU) * GPU, used // (3 * GPU) * GPU, used, used + GPU))

    # -- the entries ---------------------------------------------------------------------------------------------

    def entries(self, asking: Sequence[Workload]) -> tuple[Entry, ...]:
        """All of it as entries in the order of time."""
        rng = self.rng
        found: list[tuple[int, int, Entry]] = [(0, 0, PolicySet(0, self.policy))]
        if self.on.levels:
            found.append((0, 0, LevelsSet(0, self.on.levels)))
        found += [(0, 1, ProjectSet(0, project)) for project in self.projects(rng.choice(asking))]
        found += [(0, 2, NodeSet(0, room.node)) for room in self.on.rooms.values()]
        for work, at, pods in self.runs:
            submitted = rng.choice((at, at, 0, at // 2))
            found.append((submitted, 3, Submitted(submitted, work)))
            found.append((at, 4, Start(at, work.id, pods)))
            found.append((at, 5, Up(at, work.id)))
            if rng.random() < 0.35:
                seen = NOW - 10 * SECOND
                found.append((seen, 6, Checkpointed(seen, work.id, rng.choice((at, (at + seen) // 2, seen)))))
        found += [(at, order, entry) for at, order, entry in self.departures()]
        asked = rng.choice((NOW - 60 * SECOND, NOW - SECOND, 50 * SECOND))
        for work in asking:
            at = asked if rng.random() < 0.7 else NOW - 30 * SECOND
            found.append((at, 3, Submitted(at, work)))
        found.append((NOW, 9, Ticked(NOW)))
        return tuple(entry for _, _, entry in sorted(found, key=lambda item: item[:2]))

    def departures(self) -> list[tuple[int, int, Entry]]:
        """Sometimes somebody is leaving already: a cancelled workload, or a surplus pod that is no longer wanted."""
        rng = self.rng
        at = NOW - 5 * SECOND
        found: list[tuple[int, int, Entry]] = []
        for work, _, pods in self.runs:
            last = len(work.roles) - 1
            fewer = work.roles[last].pods - 1
            if rng.random() < 0.06:
                found.append((at, 7, Cancelled(at, work.id)))
            elif work.pods > work.gang_min and fewer >= max(1, work.roles[last].least) and rng.random() < 0.1:
                taken: PodId = pods[-1].id
                found.append((at, 7, Resized(at, work.id, last, fewer)))
                found.append((at, 8, Evict(at, work.id, (taken,), Cause.SHRINK)))
        return found
