"""The naive meaning of a victim set: try every one.

**Units.** A running workload, none of whose pods is leaving already, gives nothing, or any part of its surplus
(each surplus pod a unit of its own), or all its pods (one unit). Nothing in between.

**Allowed.** In the claimant's own project: work of lower priority. In another project: work that borrows (`borrow`)
and lies above the guarantees, for a claimant that asks for a GPU. Let A be the lowest common ancestor of the two
projects (a root above all top-level
projects exists), and a project's path the projects from itself up to, but without, A. Then
- the claimant is inside the guarantee: on its path every project n has
  use(n) - what the victims free in n + what the claimant needs <= guarantee(n);
- no victim cuts into a guarantee: on its path every n is above its guarantee, and use(n) - what all victims together
  free in n >= guarantee(n). (So work without GPUs is safe in a project that uses no more than its guarantee.)
Use counts the pods that run and the places held. Where a project has guarantees by GPU model, they replace its plain
one: both tests are made with the use, need and guarantee of each model concerned - those the claimant's pods are
placed on, and those the victim's pods stand on.

**Enough.** With the victims and the pods already leaving gone, the claimant's whole minimum can be placed
(tests/reference/place.py), and every project from its own to the top stays within its caps, plain and by model.

**Best.** The smallest key, compared in this order; a unit counts once in each sum:
GPU units taken; workloads that lose all their pods; the units' priorities from the highest down (fewer of the highest
is better); units taken x time since the last checkpoint, else since the start; age (time since the start); names.

An empty set is the answer where the claimant needs nobody to go, None where no set will do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, combinations, product
from typing import NamedTuple

from allmende.model.cluster import Pod, PodId
from allmende.model.standing import Standing
from allmende.model.tenancy import Project
from tests.reference.place import Facts, Placement, place, rooms
from tests.reference.surplus import surplus


class Unit(NamedTuple):
    """What can be taken as one: a surplus pod, or a whole workload."""

    standing: Standing
    pods: tuple[Pod, ...]
    whole: bool


class Key(NamedTuple):
    """What a victim set costs; the smaller is the better."""

    units: int
    workloads: int
    priorities: tuple[int, ...]
    lost: int
    age: int
    names: tuple[str, ...]


Amounts = Counter[tuple[str, str]]
"""GPU units by (project, GPU model); every project counts what is below it too."""


def lineage(facts: Facts, project: str) -> list[str]:
    """The project and all above it, upwards."""
    found = [project]
    while facts.projects[found[-1]].parent:
        found.append(facts.projects[found[-1]].parent)
    return found


def path(facts: Facts, project: str, other: str) -> list[str]:
    """The project and those above it, up to but without the lowest common ancestor with the other."""
    above = lineage(facts, other)
    return [name for name in lineage(facts, project) if name not in above]


def amounts(facts: Facts, pods: Iterable[tuple[str, str, int]]) -> Amounts:
    """(project, model, units) of pods, counted in the project and in all above it."""
    total: Amounts = Counter()
    for project, model, units in pods:
        for name in lineage(facts, project):
            total[name, model] += units
    return total


def use(facts: Facts) -> Amounts:
    """What runs, and what is held for somebody, by project and model ("" where the node is gone)."""
    return amounts(
        facts,
        (
            (standing.workload.project, facts.nodes[pod.node].model if pod.node in facts.nodes else "", pod.units)
            for name, standing in facts.standings.items()
            for pod in (*standing.pods, *facts.holds.get(name, ()))
        ),
    )


def freed(facts: Facts, taken: Iterable[Unit]) -> Amounts:
    """What the units give back, by project and model."""
    return amounts(
        facts,
        ((u.standing.workload.project, facts.nodes[pod.node].model, pod.units) for u in taken for pod in u.pods),
    )


def of(total: Amounts, project: str, model: str | None = None) -> int:
    """The amount of a project on one model, or on all."""
    return sum(units for (name, on), units in total.items() if name == project and model in (None, on))


def choices(facts: Facts, standing: Standing) -> list[tuple[Unit, ...]]:
    """All that one workload may give: nothing, a part of its surplus, everything."""
    spare = [Unit(standing, (pod,), False) for pod in surplus(standing)]
    parts = chain.from_iterable(combinations(spare, count) for count in range(len(spare) + 1))
    return [*parts, (Unit(standing, standing.pods, True),)]


def candidates(facts: Facts, claimant: Standing) -> list[Standing]:
    """The workloads that may be victims at all, whatever the guarantees say."""
    ending = {name for name, _, _, _ in facts.leaving}
    return [
        other
        for name, other in sorted(facts.standings.items())
        if other.pods and name not in ending and name != claimant.workload.id and _may_take(claimant, other)
    ]


def _may_take(claimant: Standing, other: Standing) -> bool:
    if other.workload.project == claimant.workload.project:
        return other.workload.priority < claimant.workload.priority
    return other.workload.borrow and any(role.ask.on_gpu for role in claimant.workload.roles)


def key(taken: Iterable[Unit], now: int) -> Key:
    """What it costs to take these units."""
    units = lost = age = wholes = 0
    priorities, names = [], []
    for unit in taken:
        size = sum(pod.units for pod in unit.pods)
        started = unit.standing.started
        assert started is not None
        safe = started if unit.standing.checkpoint is None else unit.standing.checkpoint
        units += size
        wholes += unit.whole
        lost += size * (now - safe)
        age += now - started
        priorities.append(unit.standing.workload.priority)
        names.append(unit.standing.workload.id)
    return Key(units, wholes, tuple(sorted(priorities, reverse=True)), lost, age, tuple(sorted(names)))


def limits(project: Project, models: Iterable[str]) -> Iterator[tuple[str | None, int]]:
    """What is guaranteed: (model, units) for each model concerned, or (None, units) where models are all one."""
    if not project.guarantee_by_model:
        yield None, project.guarantee
    else:
        yield from ((model, project.guarantee_by_model.get(model, 0)) for model in sorted(models))


def spares_guarantees(facts: Facts, claimant: Standing, taken: tuple[Unit, ...], used: Amounts, gone: Amounts) -> bool:
    """Whether no victim of another project cuts into a guarantee on its path."""
    mine = claimant.workload.project
    for unit in taken:
        models = {facts.nodes[pod.node].model for pod in unit.pods}
        for name in path(facts, unit.standing.workload.project, mine):
            for model, guarantee in limits(facts.projects[name], models):
                before = of(used, name, model)
                if before <= guarantee or before - of(gone, name, model) < guarantee:
                    return False
    return True


def may_stand(
    facts: Facts, claimant: Standing, taken: tuple[Unit, ...], used: Amounts, gone: Amounts, placement: Placement
) -> bool:
    """Whether the claimant, so placed, is within all caps, and inside the guarantee if others' work is taken for it."""
    mine = claimant.workload.project
    need = amounts(facts, ((mine, pod.model, pod.units) for pod in placement))
    models = {pod.model for pod in placement}

    def then(name: str, model: str | None) -> int:
        return of(used, name, model) - of(gone, name, model) + of(need, name, model)

    for name in lineage(facts, mine):
        project = facts.projects[name]
        if project.cap is not None and of(need, name) and then(name, None) > project.cap:
            return False
        capped = ((model, cap) for model, cap in project.cap_by_model.items() if of(need, name, model))
        if any(then(name, model) > cap for model, cap in capped):
            return False
    others = {unit.standing.workload.project for unit in taken} - {mine}
    return all(
        then(name, model) <= guarantee
        for other in sorted(others)
        for name in path(facts, mine, other)
        for model, guarantee in limits(facts.projects[name], models)
    )


def works(facts: Facts, claimant: Standing, taken: tuple[Unit, ...] = (), *, leaving_are_gone: bool = True) -> bool:
    """Whether taking exactly these units is allowed and lets the claimant start."""
    used, gone = use(facts), freed(facts, taken)
    if not spares_guarantees(facts, claimant, taken, used, gone):
        return False
    pods = {pod.id for unit in taken for pod in unit.pods}
    left = rooms(facts, claimant.workload.id, pods, leaving_are_gone=leaving_are_gone)

    def good(placement: Placement) -> bool:
        return may_stand(facts, claimant, taken, used, gone, placement)

    return place(claimant, left, facts.levels, good) is not None


def victims(facts: Facts, claimant: str, now: int) -> tuple[Key, frozenset[PodId]] | None:
    """The cheapest set of pods whose leaving lets the claimant start, with its key; None where there is none."""
    standing = facts.standings[claimant]
    options = [choices(facts, other) for other in candidates(facts, standing)]
    sets = [tuple(chain.from_iterable(chosen)) for chosen in product(*options)]
    for taken in sorted(sets, key=lambda taken: key(taken, now)):
        if works(facts, standing, taken):
            return key(taken, now), frozenset(pod.id for unit in taken for pod in unit.pods)
    return None


def as_units(facts: Facts, pods: Iterable[PodId]) -> tuple[Unit, ...]:
    """The units that make up these pods; AssertionError where they are no units."""
    wanted = set(pods)
    found: list[Unit] = []
    for name in sorted({pod[0] for pod in wanted}):
        standing = facts.standings[name]
        mine = {pod for pod in wanted if pod[0] == name}
        if mine == {pod.id for pod in standing.pods}:
            found.append(Unit(standing, standing.pods, True))
            continue
        spare = {pod.id: pod for pod in surplus(standing)}
        assert mine <= set(spare), (
            f"{name}: {sorted(mine)} is neither all of it nor a part of its surplus {sorted(spare)}"
        )
        found += [Unit(standing, (spare[pod],), False) for pod in sorted(mine)]
    return tuple(found)
