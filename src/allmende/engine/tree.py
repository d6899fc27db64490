"""The tree of projects with what each uses now."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import lcm
from typing import Final

from allmende.model.tenancy import Project

ROOT: Final = Project(name="")
LAST: Final = 1 << 200  # key of a project of weight 0: behind every other for spare capacity


class Branch:
    """One project in the tree: its settings, and what it and everything below it uses (running and held).

    `held` is the part of `use` that is only kept; `past` is decayed use, which averages over `mean` microseconds.
    `path` goes from the branch itself up to the top level, without the root. `scale` turns use into use per weight,
    as an integer: least common multiple of the siblings' weights over the own weight. `takable` is a memory of the
    victim search, emptied whenever the running work changes, which `stamp` counts.
    """

    __slots__ = (
        "children",
        "depth",
        "held",
        "mean",
        "own",
        "parent",
        "past",
        "path",
        "priorities",
        "project",
        "scale",
        "sizes",
        "stamp",
        "takable",
        "units_user",
        "use",
        "use_memory",
        "use_model",
        "user_running",
        "workloads",
    )

    def __init__(self, project: Project, parent: Branch | None) -> None:
        self.project = project
        self.parent = parent
        self.children: list[Branch] = []
        above = parent.path if parent is not None and parent.parent is not None else ()
        self.path: tuple[Branch, ...] = (self, *above)
        self.depth = len(self.path)
        self.scale: int | None = 1
        self.use = 0
        self.held = 0
        self.past = 0
        self.mean = 1
        self.own = 0
        self.use_memory = 0
        self.use_model: dict[str, int] = {}
        self.user_running: dict[str, int] = {}
        self.units_user: dict[str, int] = {}
        self.workloads: dict[str, None] = {}
        self.priorities: dict[int, int] = {}
        self.stamp = 0
        self.sizes: list[int] = []
        self.takable: dict[tuple[int, int | None, bool], tuple[int, int]] = {}

    @property
    def name(self) -> str:
        """The project's name."""
        return self.project.name

    def against(self, model: str) -> tuple[int, int]:
        """(use, guarantee) that count for work on `model`: per model where the project states guarantees by model."""
        project = self.project
        if project.guarantee_by_model:
            return self.use_model.get(model, 0), project.guarantee_by_model.get(model, 0)
        return self.use, project.guarantee

    def key(self) -> tuple[bool, int, int, str]:
        """Order among siblings: inside the guarantee first, then priority, then use (with what was used lately) per
        weight, then name."""
        project = self.project
        guarantee = project.guarantee or sum(project.guarantee_by_model.values())
        lean = LAST if self.scale is None else (self.use * self.mean + self.past) * self.scale
        return (self.use >= guarantee, -project.priority, lean, project.name)

    def changed(self) -> None:
        """What it runs, or what of it may be a victim, has changed."""
        self.takable.clear()
        self.sizes = []
        self.stamp += 1

    def charge(self, units: int, model: str, memory: int, user: str) -> None:
        """Add use (negative: take it off) here and at every level above."""
        self.own += units
        if user:
            self.units_user[user] = self.units_user.get(user, 0) + units
        for branch in self.path:
            branch.use += units
            branch.use_memory += memory
            branch.use_model[model] = branch.use_model.get(model, 0) + units


class Tree:
    """Branches by name. A project that nobody declared is a top-level one without a guarantee."""

    __slots__ = ("branches", "by_model", "daily", "root")

    def __init__(self, projects: Iterable[Project] = ()) -> None:
        self.root = Branch(ROOT, None)
        self.branches: dict[str, Branch] = {}
        named = {project.name: project for project in projects}
        for name in sorted(named):
            self._add(named, name)
        self._weigh()

    def _add(self, named: dict[str, Project], name: str) -> Branch:
        if name in self.branches:
            return self.branches[name]
        project = named.get(name) or Project(name=name)
        parent = self._add(named, project.parent) if project.parent else self.root
        branch = Branch(project, parent)
        parent.children.append(branch)
        self.branches[name] = branch
        return branch

    def _weigh(self) -> None:
        self.by_model = any(b.project.guarantee_by_model or b.project.cap_by_model for b in self.branches.values())
        self.daily = any(branch.project.daily is not None for branch in self.branches.values())
        for branch in (self.root, *self.branches.values()):
            branch.children.sort(key=lambda child: child.name)
            weights = [child.project.weight for child in branch.children if child.project.weight > 0]
            common = lcm(*(w.numerator for w in weights)) if weights else 1
            for child in branch.children:
                weight = child.project.weight
                scaled = Fraction(common) / weight if weight > 0 else None
                child.scale = None if scaled is None else scaled.numerator // scaled.denominator

    def fork(self) -> Tree:
        """A copy of its own, uses included."""
        other = Tree(branch.project for branch in self.branches.values())
        other.by_model = self.by_model
        for name, branch in self.branches.items():
            copy = other.branches[name]
            copy.use, copy.own, copy.use_memory, copy.held = branch.use, branch.own, branch.use_memory, branch.held
            copy.use_model, copy.user_running = dict(branch.use_model), dict(branch.user_running)
            copy.units_user, copy.workloads = dict(branch.units_user), dict(branch.workloads)
            copy.priorities = dict(branch.priorities)
        return other

    def leaf(self, name: str) -> Branch:
        """The branch of a project, made at the top level when nobody declared it."""
        branch = self.branches.get(name)
        if branch is None:
            branch = Branch(Project(name=name), self.root)
            self.root.children.append(branch)
            self.branches[name] = branch
            self._weigh()
        return branch


def common_ancestor(one: Branch, other: Branch) -> tuple[int, int]:
    """How many steps of each path lie below the lowest common ancestor."""
    shared = 0
    for mine, theirs in zip(reversed(one.path), reversed(other.path), strict=False):
        if mine is not theirs:
            break
        shared += 1
    return len(one.path) - shared, len(other.path) - shared
