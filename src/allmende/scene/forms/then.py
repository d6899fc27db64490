"""What a case expects, ticked off field by field: what nobody asked about is a gap, never passed over."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from allmende.model.mistake import Mistake
from allmende.model.quantity import quantity
from allmende.scene.cell import Cell
from allmende.scene.run import Status, Verdict

AS_WRITTEN = "the value as written"
"""A pattern that stands for the value itself."""


class Then:
    """The expectations of a case, and what was found of them."""

    def __init__(self, cell: Cell | None) -> None:
        self._left = cell.entries() if cell else {}
        self.failures: list[str] = []
        self.gaps: list[str] = []
        self.tolerance = Fraction(1, 100)
        if (given := self.take("tolerance")) is not None:
            self.tolerance = quantity(given.text())

    def take(self, name: str) -> Cell | None:
        """An expectation, from now on dealt with."""
        return self._left.pop(name, None)

    def expect(self, holds: bool, line: str) -> None:
        """Note a failure unless something holds."""
        if not holds:
            self.failures.append(line)

    def outcome(self, wanted: str, mistake: Mistake | None, warnings: list[str], what: str) -> None:
        """Compare a verdict (accept, refuse, warn) with what the product said."""
        found = "refuse" if mistake is not None else "warn" if warnings else "accept"
        fits = found == wanted or (wanted == "accept" and found == "warn")
        self.expect(fits, f"{what}: {wanted} was expected, not {found}{f' ({mistake})' if mistake else ''}")

    def matches(self, text: str, patterns: Cell | None, what: str, written: str = "") -> None:
        """Note each pattern that is not found in a text."""
        for item in patterns.items() if patterns else ():
            pattern = re.escape(written) if item.text() == AS_WRITTEN else item.text()
            found = re.search(pattern, text, re.IGNORECASE) is not None
            self.expect(found, f"{what}: /{item.text()}/ is not in: {text}")

    def numbers(self, measure: Callable[[str], Fraction | int | None]) -> None:
        """Compare figures; one that `measure` does not know is a gap."""
        given = self.take("numbers")
        for name, cell in given.entries().items() if given else ():
            value = measure(name)
            if value is None:
                self.gaps.append(f"measure: {name}")
                continue
            wanted = quantity(cell.text(), cell.where)
            self.expect(abs(value - wanted) <= self.tolerance, f"{name} is {float(value):g}, not {float(wanted):g}")

    def sentences(self, judge: Callable[[str], bool | None]) -> None:
        """Judge what may never be: True = it was, None = not understood."""
        given = self.take("never")
        for item in given.items() if given else ():
            found = judge(item.text())
            if found is None:
                self.gaps.append(f"sentence: {item.text()}")
            else:
                self.expect(not found, f"never: {item.text()!r}, but it was")

    def verdict(self) -> Verdict:
        """How it came out; what was left over is a gap."""
        gaps = [*self.gaps, *(f"expectation {name}" for name in self._left if name != "note")]
        if self.failures:
            return Verdict(Status.FAILED, tuple(self.failures))
        if gaps:
            return Verdict(Status.NOT_YET, tuple(gaps))
        return Verdict(Status.PASSED)


def asked(ask: Callable[[], object]) -> tuple[object, Mistake | None]:
    """What the product answers, or the Mistake it raises."""
    try:
        return ask(), None
    except Mistake as mistake:
        return None, mistake
