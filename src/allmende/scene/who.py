"""Who and what a sentence speaks of: names of the scene, or 'a pod', 'any workload', 'a recreated pod'."""

from __future__ import annotations

import re
from collections.abc import Iterable

from allmende.model.event import NodeGone
from allmende.scene.moment import Moment
from allmende.scene.value import Scene, SetNode, SetProject

_SOME = re.compile(
    r"(?:an?|any|some|one|another|a second) (?:(?P<again>recreated|re-created|copied|new) )?"
    r"(?:pod|worker|job|workload|gang|copy)s?(?: of (?P<of>.+))?",
    re.IGNORECASE,
)
_POD_OF = re.compile(r"(?:(?:an?|any|some|one|the|all|both) )?(?:pods?|workers?|members?) of (?P<of>.+)", re.IGNORECASE)
_OWN = re.compile(r"(?P<of>.+?)'s (?:pods?|workers?|process(?:es)?|gang)", re.IGNORECASE)


class Who:
    """Workloads that are meant. `all`: every one of them at once; `generic`: no names were given."""

    __slots__ = ("again", "all", "generic", "names", "role")

    def __init__(self, names: Iterable[str] = (), *, every: bool = False, again: bool = False, role: str = "") -> None:
        self.names = tuple(names)
        self.all = every
        self.generic = not self.names
        self.again = again
        self.role = role

    @classmethod
    def anybody(cls) -> Who:
        """Any workload there is."""
        return cls()

    def among(self, moment: Moment) -> tuple[str, ...]:
        """The workloads that are meant, of those known at a moment."""
        if self.names:
            return self.names
        return tuple(name for name in moment.world.specs if not self.again or name.endswith("'"))


class Names:
    """The names of a scene, and what a sentence has spoken of so far. `main`: its first subject, for 'it'."""

    def __init__(self, scene: Scene, main: str = "") -> None:
        self.workloads = set(scene.workloads)
        self.nodes = {node.name for node in scene.nodes}
        self.nodes |= {step.node.name for step in scene.steps if isinstance(step, SetNode)}
        self.nodes |= {step.node for step in scene.steps if isinstance(step, NodeGone)}
        self.projects = {project.name for project in scene.projects}
        self.projects |= {step.project.name for step in scene.steps if isinstance(step, SetProject)}
        self.projects |= {workload.project for workload in scene.workloads.values()}
        self.roles = {role.name for workload in scene.workloads.values() for role in workload.roles}
        self.users = {workload.user for workload in scene.workloads.values() if workload.user}
        self.levels = scene.levels
        self.recreate = scene.recreate
        self.main = main

    def who(self, text: str | None) -> Who | None:
        """The workloads that some words name; None where they name none."""
        if not text:
            return None
        text = text.strip()
        if re.fullmatch(r"any(?:body|one|thing)|some(?:body|one|thing)", text, re.IGNORECASE):
            return Who.anybody()
        some = _SOME.fullmatch(text)
        if some is not None and some["of"] is None:
            return Who(again=bool(some["again"]))
        for pattern in (_SOME, _POD_OF, _OWN):
            found = pattern.fullmatch(text)
            if found is not None and found["of"]:
                return self.who(found["of"])
        exact = self._workload(text)
        if exact:
            return Who([exact])
        parts = re.split(r", and |, or |, | and | or ", re.sub(r"^(?:both|either|neither) ", "", text))
        names = [self._workload(part) for part in parts]
        if len(parts) < 2 or not all(names):
            return None
        return Who([name for name in names if name], every=" or " not in text)

    def _workload(self, text: str) -> str:
        plain = re.sub(r"^(?:the|workload|job|gang) ", "", text.strip())
        for name in (text, plain):
            if name in self.workloads or (name.rstrip("'") in self.workloads and self.recreate):
                return name
        return ""

    def node(self, text: str | None) -> str | None:
        """A node's name, '' where none is asked for; None where the words name none."""
        if not text:
            return ""
        plain = re.sub(r"^(?:the|node) ", "", text.strip())
        return plain if plain in self.nodes else None

    def project(self, text: str | None) -> str | None:
        """A project's name; None where the words name none."""
        plain = re.sub(r"^(?:the )?(?:queue |project )?", "", (text or "").strip())
        return plain if plain in self.projects else None
