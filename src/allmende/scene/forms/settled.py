"""Settings of projects and of the policy: accepted, refused or warned about, by the product's own checks."""

from __future__ import annotations

import re
from collections.abc import Iterable

from allmende.model.advice import HALF_LIFE, check_projects, one_unit, settings_advice
from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.policy import Policy
from allmende.model.quantity import MOST, quantity
from allmende.model.span import SECOND
from allmende.model.tenancy import Project
from allmende.scene import settings, view
from allmende.scene.cell import Cell, fields
from allmende.scene.forms.behaviour import behaves
from allmende.scene.forms.then import Then, asked
from allmende.scene.layout import NODE, QUEUE, Writer
from allmende.scene.rule import Refused, rules


def projects(_top: Cell, given: dict[str, Cell], then: Then) -> None:
    """`queues` as settings: the verdict on them together, and on each of `also` alone."""
    mistake, warnings = _verdict(given["queues"].items(), given, then)
    text = str(mistake) if mistake else " ".join(warnings)
    verdict = then.take("verdict")
    if verdict is not None:
        then.outcome(verdict.text(), mistake, warnings, "the settings")
    then.matches(text, then.take("message"), "the settings")
    results = then.take("results")
    wanted = results.entries() if results else {}
    for item in given["also"].items() if "also" in given else ():
        name = item.entries()["name"].text()
        mistake_alone, told = _verdict([item], given, then)
        for key, cell in wanted.pop(name).entries().items() if name in wanted else ():
            if key == "verdict":
                then.outcome(cell.text(), mistake_alone, told, name)
            elif key == "message":
                then.matches(str(mistake_alone or " ".join(told)), cell, name)
            elif key != "note":
                then.gaps.append(f"expectation {key} of {name}")
    then.gaps += [f"the result of {name}" for name in wanted]
    numbers = then.take("numbers")
    for key, cell in numbers.entries().items() if numbers else ():
        if re.fullmatch(r"wrong .+ that must not be used", key):
            then.expect(
                not re.search(rf"\b{re.escape(cell.text())}\b", text), f"the wrong figure {cell.text()} is used: {text}"
            )
        else:
            then.gaps.append(f"measure: {key}")


def _verdict(items: Iterable[Cell], given: dict[str, Cell], then: Then) -> tuple[Mistake | None, list[str]]:
    """What the product says of some projects: its Mistake, or its warnings."""
    found, mistake = asked(lambda: _read(items, then))
    if mistake is not None or not isinstance(found, list):
        return mistake, []
    nodes = []
    for item in given["nodes"].items() if "nodes" in given else ():
        written = Cell(Writer(then.gaps, "node").turned(item, NODE)).entries()
        nodes.append(settings.node(written["name"].text(), written))
    advice = settings_advice(found, view.capacity(nodes) if nodes else MOST, {})
    return None, [str(each) for each in advice]


def _read(items: Iterable[Cell], then: Then) -> list[Project]:
    """Projects of the layout, checked as the product checks them."""
    found, written = [], {}
    for item in items:
        cells = Cell(Writer(then.gaps, "queue").turned(item, QUEUE), "queues").entries()
        name = cells["name"].text()
        if "guarantee" in cells and cells["guarantee"].is_mapping:
            written[name] = {key: cell.text() for key, cell in cells.pop("guarantee").entries().items()}
        found.append(settings.project(name, cells))
    for parent in dict.fromkeys(project.parent for project in found):
        one_unit({p.name: written[p.name] for p in found if p.parent == parent and p.name in written})
    check_projects(found)
    return found


def policies(_top: Cell, given: dict[str, Cell], then: Then) -> None:
    """`settings`, a list of policies: how each is taken, and how the accepted ones behave."""
    results = then.take("results")
    wanted = results.items() if results else []
    taken = [asked(lambda cell=item: _policy(cell)) for item in given["settings"].items()]  # type: ignore[misc]
    for place, (cell, (policy, mistake)) in enumerate(zip(wanted, taken, strict=False)):
        for key, value in cell.entries().items():
            if key == "verdict":
                then.outcome(value.text(), mistake, [], f"setting {place}")
            elif key == "message":
                then.matches(str(mistake), value, f"setting {place}")
            elif key == "reads_as" and isinstance(policy, Policy):
                _reads_as(place, value, policy, then)
            else:
                then.gaps.append(f"expectation {key} of setting {place}")
    behaviour = then.take("behaviour")
    if behaviour is not None and not behaves(behaviour, given["settings"].items(), then):
        then.gaps.append(f"sentence: {behaviour.entries()['given'].text()}")


def _policy(cell: Cell) -> Policy:
    """A policy from rules of the layout. Raises Mistake, UNKNOWN_FIELD for a rule that is not offered."""
    try:
        found = rules(cell)
    except Refused as refused:
        raise Mistake(
            MistakeCode.UNKNOWN_FIELD, refused.name, refused.where, "leave it out", "is not offered"
        ) from None
    return settings.policy(Cell(fields(found.policy, cell.node), cell.path))


def _reads_as(place: int, cell: Cell, policy: Policy, then: Then) -> None:
    for key, value in cell.entries().items():
        found = getattr(policy, key, None)
        if "default" in value.text():
            then.expect(found == HALF_LIFE, f"setting {place}: {key} is {found}, not the default")
        else:
            then.expect(
                found == quantity(value.text()) * SECOND, f"setting {place}: {key} is {found}, not {value.text()}"
            )
