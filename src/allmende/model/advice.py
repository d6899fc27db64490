"""What to say of settings: mistakes that are refused, and warnings about settings that are valid but surprising."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.quantity import MOST, Written, quantity, suffix
from allmende.model.span import DAY, seconds
from allmende.model.tenancy import Project
from allmende.model.units import amount, show_gpus

UNLIMITED = -1
"""A guarantee without a limit, as it is written; `resolved` turns it into a number before anything is added."""
HALF_LIFE = 7 * DAY
"""Half-life of past use, in microseconds, where fair order is asked for without one."""


class AdviceCode(StrEnum):
    """What valid settings are warned about."""

    GUARANTEE_ABOVE_MACHINE = "guarantee_above_machine"  # project, guarantee, capacity
    GUARANTEES_ABOVE_MACHINE = "guarantees_above_machine"  # guarantee, capacity
    CHILDREN_ABOVE_PARENT = "children_above_parent"  # project, children, guarantee
    GUARANTEE_ABOVE_CAP = "guarantee_above_cap"  # project, guarantee, cap
    USE_ABOVE_CAP = "use_above_cap"  # project, use, cap


_TEXT = {
    AdviceCode.GUARANTEE_ABOVE_MACHINE: "project {project} is guaranteed {guarantee} GPUs, the cluster has {capacity}; "
    "what is missing cannot be given back",
    AdviceCode.GUARANTEES_ABOVE_MACHINE: "the top projects are guaranteed {guarantee} GPUs together, the cluster has "
    "{capacity}; not all can be kept at once",
    AdviceCode.CHILDREN_ABOVE_PARENT: "the projects below {project} are guaranteed {children} GPUs together, {project} "
    "itself {guarantee}; not all can be kept at once",
    AdviceCode.GUARANTEE_ABOVE_CAP: "project {project} is guaranteed {guarantee} GPUs and may use {cap}; the rest of "
    "the guarantee has no effect",
    AdviceCode.USE_ABOVE_CAP: "project {project} uses {use} GPUs and may use {cap}; what runs stays, nothing new "
    "starts until its use is below",
}


class Advice(Struct, frozen=True):
    """One warning about settings, as code and params (GPU amounts in units); str() is a plain English line."""

    code: AdviceCode
    params: dict[str, str | int]

    def __str__(self) -> str:
        shown = {name: show_gpus(value) if isinstance(value, int) else value for name, value in self.params.items()}
        return _TEXT[self.code].format_map(shown)


def guarantee(value: Written, field: str = "guarantee") -> int:
    """Units of a guarantee: any amount of GPUs from 0, or -1 for UNLIMITED (case 124).

    Raises Mistake: NEGATIVE for any other number below 0, and amount's own.
    """
    do = "write GPUs such as 3 or 2.5, or -1 for no limit"
    exact = quantity(value, field, do) if not isinstance(value, str) or value.startswith("-") else None
    return UNLIMITED if exact == -1 else amount(value, field, do)


def half_life(value: Written | None, field: str = "half_life") -> int:
    """Microseconds of the half-life of past use; HALF_LIFE where none is given (case 191).

    Raises Mistake: ZERO or NEGATIVE, for use that is forgotten at once orders nothing, and seconds' own.
    """
    return HALF_LIFE if value is None else seconds(value, field, least=1)


def check_projects(projects: Sequence[Project], where: str = "projects") -> None:
    """Refuse settings that cannot be meant.

    Raises Mistake: DUPLICATE, UNKNOWN_NAME (of a parent), CYCLE, NEGATIVE, CONTRADICTION (an unlimited guarantee
    inside a limited parent).
    """
    named: dict[str, Project] = {}
    for project in projects:
        if project.name in named:
            field = f"{where}.{project.name}"
            raise Mistake(MistakeCode.DUPLICATE, project.name, field, "give each project a name of its own")
        named[project.name] = project
    for project in projects:
        _check_parent(project, named, f"{where}.{project.name}.parent")
    for project in projects:
        _check_numbers(project, named, f"{where}.{project.name}")


def _check_parent(project: Project, named: Mapping[str, Project], field: str) -> None:
    if project.parent and project.parent not in named:
        close = get_close_matches(project.parent, named, 1)
        do = f"did you mean {close[0]}?" if close else "declare the parent as a project of its own"
        raise Mistake(MistakeCode.UNKNOWN_NAME, project.parent, field, do)
    seen = [project.name]
    while seen[-1] in named and named[seen[-1]].parent:
        seen.append(named[seen[-1]].parent)
        if seen[-1] == project.name:
            raise Mistake(MistakeCode.CYCLE, " > ".join(seen), field, "let one of them have no parent")
        if seen[-1] in seen[:-1]:
            return  # a cycle above, told of its own members


def _check_numbers(project: Project, named: Mapping[str, Project], field: str) -> None:
    numbers = {"guarantee": project.guarantee, "cap": project.cap, "weight": project.weight}
    numbers |= {f"guarantee_by_model.{model}": units for model, units in project.guarantee_by_model.items()}
    numbers |= {f"cap_by_model.{model}": units for model, units in project.cap_by_model.items()}
    for name, value in numbers.items():
        if value is not None and value < 0 and not (name == "guarantee" and value == UNLIMITED):
            raise Mistake(MistakeCode.NEGATIVE, str(value), f"{field}.{name}", "write a number from 0")
    above = named.get(project.parent)
    if project.guarantee == UNLIMITED and above is not None and _limit(above) is not None:
        wrong = (
            f"(unlimited) contradicts its parent {above.name}, which is limited to {show_gpus(_limit(above) or 0)} GPUs"
        )
        do = f"give {project.name} a number, or {above.name} no limit"
        raise Mistake(MistakeCode.CONTRADICTION, UNLIMITED, f"{field}.guarantee", do, wrong)


def _limit(project: Project) -> int | None:
    """What a parent leaves to those below it; None where it states nothing."""
    if project.guarantee > 0:
        return project.guarantee
    return project.cap


def resolved(projects: Iterable[Project]) -> tuple[Project, ...]:
    """The projects with special values turned into numbers, as the engine takes them; check_projects comes first."""
    return tuple(
        replace(project, guarantee=MOST) if project.guarantee == UNLIMITED else project for project in projects
    )


def one_unit(written: Mapping[str, Mapping[str, str]], where: str = "projects") -> None:
    """Refuse guarantees of siblings that state one resource in different units: {project: {resource: quantity}}.

    Raises Mistake: UNIT, where one carries a unit and another does not (20096Mi beside 1; case 135).
    """
    seen: dict[str, tuple[str, str, str]] = {}
    for project, amounts in written.items():
        for resource, text in amounts.items():
            unit = suffix(text)
            if quantity(text) == 0:
                continue
            first, first_text, first_unit = seen.setdefault(resource, (project, text, unit))
            if bool(unit) != bool(first_unit):
                wrong = f"has another unit than {first_text} of its sibling {first}"
                do = f"state {resource} of {first} and {project} in one unit, such as {unit or first_unit}"
                raise Mistake(MistakeCode.UNIT, text, f"{where}.{project}.guarantee.{resource}", do, wrong)


def settings_advice(projects: Sequence[Project], capacity: int, use: Mapping[str, int]) -> tuple[Advice, ...]:
    """Warnings about valid settings. `capacity`: GPU units of the machine; `use`: units in use by project name."""
    tops = [project for project in projects if not project.parent and project.guarantee != UNLIMITED]
    found = []
    for project in projects:
        found += _own_advice(project, capacity, use.get(project.name, 0))
        below = sum(max(0, child.guarantee) for child in projects if child.parent == project.name)
        if 0 < project.guarantee < below:
            params: dict[str, str | int] = {"project": project.name, "children": below, "guarantee": project.guarantee}
            found.append(Advice(AdviceCode.CHILDREN_ABOVE_PARENT, params))
    together = sum(project.guarantee for project in tops)
    if together > capacity and len([top for top in tops if top.guarantee]) > 1:
        found.append(Advice(AdviceCode.GUARANTEES_ABOVE_MACHINE, {"guarantee": together, "capacity": capacity}))
    return tuple(found)


def _own_advice(project: Project, capacity: int, use: int) -> list[Advice]:
    """Warnings that one project's own numbers give cause to."""
    name, sure, cap = project.name, project.guarantee, project.cap
    rules: list[tuple[bool, AdviceCode, dict[str, str | int]]] = [
        (sure > capacity, AdviceCode.GUARANTEE_ABOVE_MACHINE, {"guarantee": sure, "capacity": capacity}),
        (cap is not None and sure > cap, AdviceCode.GUARANTEE_ABOVE_CAP, {"guarantee": sure, "cap": cap or 0}),
        (cap is not None and use > cap, AdviceCode.USE_ABOVE_CAP, {"use": use, "cap": cap or 0}),
    ]
    return [Advice(code, {"project": name, **params}) for applies, code, params in rules if applies]
