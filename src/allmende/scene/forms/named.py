"""Names of workloads: the internal names derived from them, and the names as given in reports."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC
from itertools import combinations

from allmende.metering.table import use_csv
from allmende.metering.window import Row
from allmende.model.names import LABEL, check, internal, shorten
from allmende.model.units import GPU
from allmende.scene.cell import Cell
from allmende.scene.forms.then import Then, asked
from allmende.scene.moment import number


def names(_top: Cell, given: dict[str, Cell], then: Then) -> None:
    """`jobs` as a list of names: whether each is taken, what its label is, how reports show it."""
    written = [item.text() for item in given["jobs"].items()]
    mistakes = [mistake for name in written if (mistake := asked(lambda n=name: check(n, "name"))[1])]  # type: ignore[misc]
    verdict = then.take("verdict")
    if verdict is not None:
        then.outcome(verdict.text(), mistakes[0] if mistakes else None, [], "the names")
    then.matches(" ".join(map(str, mistakes)), then.take("message"), "the names")
    labels = then.take("label_values")
    for key, cell in labels.entries().items() if labels else ():
        _label(key, cell, written, then)
    reads = then.take("reads_as")
    for key, cell in reads.entries().items() if reads else ():
        if key == "names_in_reports" and "exactly" in cell.text():
            then.expect(_reported(written) == written, "a report changes a name")
        else:
            then.gaps.append(f"expectation {key}")
    results = then.take("results")
    for name, cell in results.entries().items() if results else ():
        mistake = asked(lambda n=name: check(n, "name"))[1]  # type: ignore[misc]
        wanted = cell.entries() if cell.is_mapping else {"verdict": cell}
        then.outcome(wanted["verdict"].text(), mistake, [], repr(name))
        then.matches(str(mistake), wanted.get("message"), repr(name), name)
    then.sentences(lambda text: _said(text, written))


def _label(key: str, cell: Cell, written: list[str], then: Then) -> None:
    """'distinct for the first two', 'at most 63 characters', 'pattern'."""
    labels = [internal(name) for name in written]
    if key == "pattern":
        for label in labels:
            then.expect(re.fullmatch(cell.text(), label) is not None, f"the label {label} does not fit {cell.text()}")
        return
    distinct = re.fullmatch(r"distinct(?: for (?:all|the first (?P<n>\w+)))?", key)
    longest = re.fullmatch(r"at most (?P<n>\d+) characters", key)
    if distinct is not None:
        first = written[: int(number(distinct["n"]))] if distinct["n"] else written
        holds = len({internal(name) for name in first}) == len(set(first))
    elif longest is not None:
        holds = max(map(len, labels)) <= int(longest["n"])
    else:
        then.gaps.append(f"expectation {key} of labels")
        return
    then.expect(holds == cell.flag(), f"labels: {key} is {holds}: {labels}")


def _reported(written: list[str]) -> list[str]:
    """The names as a reader of the use report gets them, through UTF-8."""
    text = use_csv((Row(name, GPU, 0, 1) for name in written), UTC).encode("utf-8").decode("utf-8")
    return [line["workload"] for line in csv.DictReader(io.StringIO(text))]


def _said(text: str, written: list[str]) -> bool | None:
    if re.fullmatch(r"two (?:jobs|workloads) share an internal name", text):
        return any(internal(a) == internal(b) for a, b in combinations(dict.fromkeys(written), 2))
    if re.search(r"name cut off without a mark", text):
        widths = range(1, LABEL)
        cut = [(name, shorten(name, width)) for name in written for width in widths]
        return any(short != name and "…" not in short for name, short in cut)
    return None
