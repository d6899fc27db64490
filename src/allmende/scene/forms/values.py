"""Values of a field, and annotations of pods, read by the product's parsers."""

import re
from collections.abc import Callable
from fractions import Fraction

import yaml

from allmende.model.annotations import GpuWish, gpu_request
from allmende.model.quantity import cpus, memory, mib, quantity, whole
from allmende.model.span import slurm_time
from allmende.model.units import GPU, share
from allmende.scene import view
from allmende.scene.cases import CaseReader
from allmende.scene.cell import Cell, fields, listed, scalar
from allmende.scene.forms.then import Then, asked
from allmende.scene.measure import Played
from allmende.scene.run import play

Parse = Callable[[str, str], object]


def _parser(field: str, largest: int | None) -> Parse | None:
    """The product's parser for a field, by what its name says."""
    name = field.casefold()
    if "mib" in name:
        return lambda text, where: mib(text, where, largest)
    if "gpu" in name and re.search(r"share|fraction", name):
        return lambda text, where: Fraction(share(text, where), GPU)
    if "gpu" in name and "mem" not in name:
        return whole
    if "cpu" in name:
        return lambda text, where: Fraction(cpus(text, where), 1000)
    if "mem" in name:
        return memory
    if re.search(r"time|limit", name):
        return slurm_time
    return None


def values(top: Cell, given: dict[str, Cell], then: Then) -> None:
    """`field` and `values`: how each is read, or that it is refused and with which words."""
    field = given["field"].text()
    sizes = [quantity(s.text()) for node in _nodes(given) if (s := node.get("gpu_mem_mib"))]
    parse = _parser(field, int(max(sizes)) if sizes else None)
    if parse is None:
        then.gaps.append(f"a parser for {field}")
        return
    general, results = then.take("message"), then.take("results")
    wanted = results.entries() if results else {}
    accepted: dict[str, object] = {}
    for item in given["values"].items():
        written = item.text()
        value, mistake = asked(lambda text=written: parse(text, field))  # type: ignore[misc]
        if mistake is None:
            accepted[written] = value
        else:
            then.matches(str(mistake), general, repr(written), written)
        if written not in wanted:
            then.failures.append(f"{written!r}: no result is stated")
            continue
        _result(written, wanted[written], value, str(mistake or ""), then)
    then.sentences(lambda text: _booked(text, top, given, accepted))


def _result(written: str, wanted: Cell, value: object, refusal: str, then: Then) -> None:
    """Compare one value: a number, `refuse`, or {verdict, message, and how it is read}."""
    if not wanted.is_mapping:
        if wanted.text() == "refuse":
            then.expect(bool(refusal), f"{written!r} is read as {value}, not refused")
        else:
            then.expect(
                value == quantity(wanted.text()), f"{written!r} is read as {value or refusal}, not {wanted.text()}"
            )
        return
    for name, cell in wanted.entries().items():
        if name == "verdict":
            fits = bool(refusal) == (cell.text() == "refuse")
            then.expect(fits, f"{written!r}: {cell.text()} was expected; {refusal or f'it is read as {value}'}")
        elif name == "message":
            then.matches(refusal, cell, repr(written), written)
        else:
            then.expect(value == quantity(cell.text()), f"{written!r} is read as {value or refusal}, not {cell.text()}")


def _nodes(given: dict[str, Cell]) -> list[dict[str, Cell]]:
    return [item.entries() for item in given["nodes"].items()] if "nodes" in given else []


def _booked(text: str, top: Cell, given: dict[str, Cell], accepted: dict[str, object]) -> bool | None:
    """Whether a pod that asks for an accepted amount of GPU memory, and runs, is booked with none."""
    if re.fullmatch(r"a pod that asked for GPU memory is booked with (?:0|nothing|no memory)", text) is None:
        return None
    names = {f"v{i}": written for i, written in enumerate(accepted)}
    played = _submitted(top, given, {name: {"gpu_mem_mib": written} for name, written in names.items()})
    if played is None:
        return None
    running = view.running(played.state)
    return any(view.memory_of(played.state, name) <= 0 for name in names if name in running) or not running


def _submitted(top: Cell, given: dict[str, Cell], works: dict[str, dict[str, str]]) -> Played | None:
    """A scene on the case's nodes in which some workloads are submitted at once."""
    like = top.node
    events: list[yaml.Node] = []
    for name, asks in works.items():
        work = fields({k: scalar(v, like) for k, v in {"name": name, "queue": "q", **asks}.items()}, like)
        events.append(fields({"at": scalar(0, like), "submit": work}, like))
    case = {
        "id": scalar("values", like),
        "given": fields({"nodes": given["nodes"].node}, like),
        "when": listed(events, like),
    }
    scene = CaseReader(Cell(fields(case, like)), top.place).scene()
    return play(scene)[0]


def annotated(top: Cell, given: dict[str, Cell], then: Then) -> None:
    """`pods` with annotations: what each asks for, what it is told, and what becomes of it."""
    results = then.take("results")
    wanted = results.entries() if results else {}
    for item in given["pods"].items():
        pod = item.entries()
        name = pod["name"].text()
        written = {key: cell.text() for key, cell in pod["annotations"].entries().items()}
        wish, mistake = asked(lambda given=written: gpu_request(given))  # type: ignore[misc]
        warnings = [str(each) for each in wish.warnings] if isinstance(wish, GpuWish) else []
        for key, cell in wanted[name].entries().items() if name in wanted else ():
            match key:
                case "verdict":
                    then.outcome(cell.text(), mistake, warnings, name)
                case "message":
                    then.matches(str(mistake) if mistake else " ".join(warnings), cell, name)
                case "reads_as":
                    _reads_as(name, cell, wish, then)
                case "then":
                    _afterwards(name, cell, wish, top, given, then)
                case _:
                    then.gaps.append(f"expectation {key} of {name}")


def _reads_as(name: str, cell: Cell, wish: object, then: Then) -> None:
    for key, value in cell.entries().items():
        if not isinstance(wish, GpuWish):
            found: Fraction | int | None = None
        elif key == "gpu_mem_mib":
            found = wish.mib
        else:
            found = Fraction(wish.gpus.units, GPU)
        then.expect(found == quantity(value.text()), f"{name} is read as {key} {found}, not {value.text()}")


def _afterwards(name: str, cell: Cell, wish: object, top: Cell, given: dict[str, Cell], then: Then) -> None:
    """What becomes of a pod once it is submitted: the reason it pends for, or that it runs."""
    asks = {"gpu_mem_mib": str(wish.mib)} if isinstance(wish, GpuWish) and wish.mib else {}
    played = _submitted(top, given, {name: asks})
    for key, value in cell.entries().items():
        if played is None or key not in ("pending", "running"):
            then.gaps.append(f"expectation {key} of {name}")
        elif key == "running":
            then.expect(name in view.running(played.state), f"{name} does not run")
        else:
            then.expect(view.is_pending(played.state, name), f"{name} is not pending")
            then.matches(_reason(played, name), value, name)


def _reason(played: Played, name: str) -> str:
    from allmende.engine.explain import explain
    from allmende.words import say

    found = explain(played.state, name, played.world.now)
    return say(found, "en") if found is not None else ""
