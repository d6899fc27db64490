"""Who waits for whom, who belongs to whom: circles in it, and trees that are absurdly deep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.tenancy import Project

DEEPEST = 64
"""Levels of a tree of projects; each is asked about in every decision."""


def circle(above: Mapping[str, Sequence[str]]) -> list[str]:
    """The first circle found, its first name again at the end; empty where there is none."""
    done: set[str] = set()
    for start in above:
        path: dict[str, None] = {}
        rest = [] if start in done else [(start, iter(above[start]))]
        while rest:
            name, others = rest[-1]
            path[name] = None
            following = next(others, None)
            if following is None:
                done.add(name)
                rest.pop()
                del path[name]
            elif following in path:
                names = [*path, following]
                return names[names.index(following) :]
            elif following not in done and following in above:
                rest.append((following, iter(above[following])))
    return []


def check_depth(projects: Iterable[Project]) -> None:
    """Raises Mistake ABSURD for a tree of more than DEEPEST levels; one with a circle is left to other checks."""
    parents = {project.name: project.parent for project in projects}
    if circle({name: [parent] for name, parent in parents.items()}):
        return
    levels: dict[str, int] = {"": 0}
    for name in parents:
        path = [name]
        while path[-1] not in levels:
            path.append(parents.get(path[-1], ""))
        for each in reversed(path[:-1]):
            levels[each] = levels[parents.get(each, "")] + 1
            if levels[each] > DEEPEST:
                do = f"use at most {DEEPEST} levels of projects"
                raise Mistake(MistakeCode.ABSURD, each, f"projects.{each}.parent", do, "lies too deep in the tree")
