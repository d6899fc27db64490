"""Figures of projects: use, room up to the cap, borrowed, lent, shares."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.scene import view
from allmende.scene.book import demand
from allmende.scene.measures.played import Build, Measure, Played, plain
from allmende.scene.value import Scene


def _of_project(test: Callable[[Played, str], int]) -> Callable[[Scene, str | None], Measure | None]:
    """A measure in GPUs of the project that a name ends with, or of the only one."""

    def build(scene: Scene, name: str | None) -> Measure | None:
        known = {project.name for project in scene.projects} | {w.project for w in scene.workloads.values()}
        project = name or (next(iter(known)) if len(known) == 1 else "")
        return (lambda played: Fraction(test(played, project), GPU)) if project in known else None

    return build


def _settings(played: Played, name: str) -> Project:
    return played.state.projects.get(name) or Project(name)


def _used(played: Played, name: str) -> int:
    return view.usage(played.state)[name]


def _headroom(played: Played, name: str) -> int:
    cap = _settings(played, name).cap
    return view.idle(played.state) if cap is None else max(0, cap - _used(played, name))


def _lent(played: Played, name: str) -> int:
    """What a project is guaranteed and others use, as far as they are above their own guarantees."""
    unused = max(0, _settings(played, name).guarantee - _used(played, name))
    above = sum(
        max(0, _used(played, project.name) - project.guarantee)
        for project in played.state.projects.values()
        if project.name != name and not project.parent
    )
    return min(unused, above)


def _left(played: Played, name: str) -> int:
    return max(0, _settings(played, name).guarantee - _used(played, name))


def _above_limit(played: Played, name: str) -> int:
    cap = _settings(played, name).cap
    return 0 if cap is None else max(0, _used(played, name) - cap)


def _borrowed(played: Played, name: str) -> int:
    """Use above the guarantee, as far as others lend what they are guaranteed and do not use."""
    above = max(0, _used(played, name) - _settings(played, name).guarantee)
    mine = view.ancestry(played.state, name)
    lent = sum(
        max(0, project.guarantee - _used(played, project.name))
        for project in played.state.projects.values()
        if project.name not in mine and name not in view.ancestry(played.state, project.name)
    )
    return min(above, lent)


def _share(played: Played, name: str) -> int:
    """What a project may expect: its guarantee, and its part by weight of what its level leaves over."""
    project = _settings(played, name)
    if project.parent:
        whole = _share(played, project.parent)
    else:
        whole = _capacity(played)
    known = {w.project for w in played.scene.workloads.values()}
    level = [each for each in played.state.projects.values() if each.parent == project.parent]
    level += [Project(each) for each in sorted(known - set(played.state.projects)) if not project.parent]
    spare = max(0, whole - sum(each.guarantee for each in level))
    weights = sum((each.weight for each in level), Fraction(0))
    share = project.guarantee + (int(spare * project.weight / weights) if weights else 0)
    return share if project.cap is None else min(share, project.cap)


def _capacity(played: Played) -> int:
    return view.capacity(view.usable(played.state))


TABLE: list[tuple[str, Build]] = [
    (r"headroom(?:_(.+))?", _of_project(_headroom)),
    (r"(?:used|usage)(?:_(.+))?", _of_project(_used)),
    (r"borrowed(?:_(.+))?", _of_project(_borrowed)),
    (r"lent(?:_(.+))?", _of_project(_lent)),
    (r"(?:guarantee_left|left_of_guarantee)(?:_(.+))?", _of_project(_left)),
    (r"demand(?:_(.+))?", _of_project(lambda played, name: demand(played.state, name))),
    (r"above_limit(?:_(.+))?", _of_project(_above_limit)),
    (r"share(?:_(.+))?", _of_project(_share)),
    (r"capacity_for_shares", plain(lambda played: Fraction(_capacity(played), GPU))),
]
