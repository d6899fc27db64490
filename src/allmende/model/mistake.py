"""The typed error for bad input: what was written, where, what is wrong with it and what to do."""

from collections.abc import Iterable
from enum import StrEnum


class MistakeCode(StrEnum):
    """What can be wrong with an input; the set is closed, so callers and catalogues can match on it."""

    EMPTY = "empty"
    UNREADABLE = "unreadable"
    WRONG_KIND = "wrong_kind"
    NOT_WHOLE = "not_whole"
    NOT_A_SHARE = "not_a_share"
    TOO_FINE = "too_fine"
    ZERO = "zero"
    NEGATIVE = "negative"
    TOO_LARGE = "too_large"
    ABSURD = "absurd"
    UNIT = "unit"
    AMBIGUOUS = "ambiguous"
    TOO_LONG = "too_long"
    CONTROL = "control"
    MISSING = "missing"
    UNKNOWN_FIELD = "unknown_field"
    UNKNOWN_NAME = "unknown_name"
    DUPLICATE = "duplicate"
    CYCLE = "cycle"
    CONTRADICTION = "contradiction"


_WRONG = {
    MistakeCode.EMPTY: "is empty",
    MistakeCode.UNREADABLE: "cannot be read",
    MistakeCode.WRONG_KIND: "is of the wrong kind",
    MistakeCode.NOT_WHOLE: "is not a whole number",
    MistakeCode.NOT_A_SHARE: "is not a share of one GPU",
    MistakeCode.TOO_FINE: "is finer than can be counted",
    MistakeCode.ZERO: "is zero",
    MistakeCode.NEGATIVE: "is negative",
    MistakeCode.TOO_LARGE: "is too large",
    MistakeCode.ABSURD: "is absurdly large or fine",
    MistakeCode.UNIT: "has the wrong unit",
    MistakeCode.AMBIGUOUS: "can be read in two ways",
    MistakeCode.TOO_LONG: "is too long",
    MistakeCode.CONTROL: "holds an invisible control character",
    MistakeCode.MISSING: "is missing",
    MistakeCode.UNKNOWN_FIELD: "is not a known field",
    MistakeCode.UNKNOWN_NAME: "names nothing that exists",
    MistakeCode.DUPLICATE: "is used twice",
    MistakeCode.CYCLE: "leads back to itself",
    MistakeCode.CONTRADICTION: "contradicts another value",
}

_SHOWN = 120  # characters of a value that a message shows before it cuts with a mark


def quoted(value: object) -> str:
    """The value as written, on one line: text in quotes with control characters escaped, long text cut with '…'."""
    try:
        text = value if isinstance(value, str) else str(value)
    except ValueError:  # an int of more digits than Python converts
        text = "a number of thousands of digits"
    if len(text) > _SHOWN:
        text = text[:_SHOWN] + "…"
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return f"'{line}'" if isinstance(value, str) else line


class Mistake(ValueError):
    """One mistake in an input; raised instead of a bare ValueError so that what, where and the remedy are never lost.

    code: what kind of mistake; what: the value as written; where: the field's path, also 'file:line:column: path';
    do: the remedy; wrong: what is wrong in words (by default the code's own words).
    """

    def __init__(self, code: MistakeCode, what: object, where: str, do: str, wrong: str = "") -> None:
        super().__init__(code, what, where, do, wrong)  # the arguments make it picklable
        self.code = code
        self.what = what if isinstance(what, str) else quoted(what)
        self.where = where
        self.do = do
        self.wrong = wrong or _WRONG[code]
        self._shown = quoted(what)

    def __str__(self) -> str:
        line = f"{self.where}: {self._shown} {self.wrong}; {self.do}"
        return line if line.isprintable() else "".join(c if c.isprintable() else " " for c in line)

    def at(self, place: str) -> "Mistake":
        """The same mistake with its place (file:line:column, or an outer path) put before the field."""
        code, what, where, do, wrong = self.args
        return Mistake(code, what, f"{place}: {where}", do, wrong)

    def each(self) -> tuple["Mistake", ...]:
        """The single mistakes in this one: itself, or all that a Mistakes collected."""
        return (self,)


class Mistakes(Mistake):
    """Several mistakes found in one reading; its own fields are the first one's, its text has one line for each."""

    def __init__(self, found: Iterable[Mistake]) -> None:
        self.found = tuple(single for mistake in found for single in mistake.each())
        code, what, where, do, wrong = self.found[0].args
        super().__init__(code, what, where, do, wrong)
        self.args = (self.found,)

    def __str__(self) -> str:
        return "\n".join(str(mistake) for mistake in self.found)

    def at(self, place: str) -> "Mistakes":
        """The same mistakes, each with its place put before the field."""
        return Mistakes(mistake.at(place) for mistake in self.found)

    def each(self) -> tuple[Mistake, ...]:
        """All the mistakes, in the order they were found."""
        return self.found
