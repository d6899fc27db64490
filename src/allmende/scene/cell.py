"""A YAML value with its place, so that every mistake can name file, line and column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from allmende.model import names, quantity, span, units
from allmende.model.mistake import Mistake, MistakeCode, quoted

_MOST = 8 * 2**20  # bytes of a scene file
_TAG = "tag:yaml.org,2002:"


class Cell:
    """One node of a YAML file. `path`: the fields that lead to it, as 'events[2].submit.pods'."""

    __slots__ = ("node", "path")

    def __init__(self, node: yaml.Node, path: str = "") -> None:
        self.node = node
        self.path = path

    def __repr__(self) -> str:
        return f"Cell({self.where}, {self.node.value!r})"

    @property
    def place(self) -> str:
        """'file:line:column', counted from 1."""
        mark = self.node.start_mark
        return f"{mark.name}:{mark.line + 1}:{mark.column + 1}"

    @property
    def where(self) -> str:
        """Place and path together, as mistakes show them."""
        return f"{self.place}: {self.path}" if self.path else self.place

    def mistake(self, code: MistakeCode, do: str, wrong: str = "", what: object = None) -> Mistake:
        """A mistake about this value."""
        return Mistake(code, self._shown() if what is None else what, self.where, do, wrong)

    def _shown(self) -> object:
        if isinstance(self.node, yaml.ScalarNode):
            return self.node.value
        return "a mapping" if isinstance(self.node, yaml.MappingNode) else "a list"

    # -- structure ----------------------------------------------------------------------------------------------

    @property
    def is_mapping(self) -> bool:
        """Whether it has fields."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_null(self) -> bool:
        """Whether it is empty or null."""
        return bool(self.node.tag == _TAG + "null")

    @property
    def is_text(self) -> bool:
        """Whether it is a scalar that YAML reads as text."""
        return bool(self.node.tag == _TAG + "str")

    def entries(self) -> dict[str, Cell]:
        """The fields of a mapping, whatever they are called. Raises Mistake: WRONG_KIND, DUPLICATE."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.mistake(MistakeCode.WRONG_KIND, "write fields with values, such as {name: a}", "has no fields")
        found: dict[str, Cell] = {}
        for key, value in self.node.value:
            name = Cell(key, self.path).text()
            if name in found:
                path = f"{self.path}.{name}" if self.path else name
                raise Cell(key, path).mistake(MistakeCode.DUPLICATE, "keep one of the two")
            found[name] = Cell(value, f"{self.path}.{name}" if self.path else name)
        return found

    def mapping(self, known: Iterable[str], needed: Iterable[str] = ()) -> dict[str, Cell]:
        """The fields of a mapping that may have only known ones.

        Raises Mistake: UNKNOWN_FIELD with the nearest known name, MISSING for a needed one, and those of entries().
        """
        found = self.entries()
        known = list(known)
        for key, _ in self.node.value:
            if key.value not in known:
                close = get_close_matches(key.value, known, 1, 0.5)
                do = f"did you mean {close[0]}?" if close else f"use one of {', '.join(known)}"
                raise Cell(key, self.path).mistake(MistakeCode.UNKNOWN_FIELD, do)
        for name in needed:
            if name not in found:
                raise self.mistake(MistakeCode.MISSING, f"add {name}: ...", f"has no {name}")
        return found

    def items(self) -> list[Cell]:
        """The values of a list. Raises Mistake: WRONG_KIND."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.mistake(MistakeCode.WRONG_KIND, "write a list, such as [a, b]", "is no list")
        return [Cell(item, f"{self.path}[{i}]") for i, item in enumerate(self.node.value)]

    def one_or_more(self) -> list[Cell]:
        """The values of a list, or the value itself."""
        return self.items() if self.is_list else [self]

    def plain(self) -> Any:
        """The value as Python's own lists, dictionaries, text and numbers, the way YAML reads it."""
        return yaml.SafeLoader("").construct_document(self.node)

    # -- scalars ------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """A scalar exactly as it is written. Raises Mistake: WRONG_KIND, EMPTY."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.mistake(MistakeCode.WRONG_KIND, "write one value", "is no single value")
        if self.is_null:
            raise self.mistake(MistakeCode.EMPTY, "write a value")
        return str(self.node.value)

    def name(self) -> str:
        """A name (see names.check)."""
        return names.check(self.text(), self.where)

    def flag(self) -> bool:
        """Yes or no. Raises Mistake: WRONG_KIND."""
        if self.node.tag != _TAG + "bool":
            raise self.mistake(MistakeCode.WRONG_KIND, "write true or false", "is neither true nor false")
        return self.text().casefold() in ("yes", "true", "on")

    def choice(self, options: Iterable[str]) -> str:
        """One of some words. Raises Mistake: UNKNOWN_NAME with the nearest one."""
        text, options = self.text(), list(options)
        if text not in options:
            close = get_close_matches(text, options, 1, 0.5)
            do = f"did you mean {close[0]}?" if close else f"write one of {', '.join(options)}"
            raise self.mistake(MistakeCode.UNKNOWN_NAME, do, "is not one of them")
        return text

    def count(self, least: int = 0) -> int:
        """A whole number of at least `least`. Raises Mistake as quantity.whole does, and ZERO."""
        found = quantity.whole(self.text(), self.where)
        if found < least:
            raise self.mistake(MistakeCode.ZERO, f"write a whole number from {least}")
        return found

    def integer(self) -> int:
        """A whole number, negative ones too."""
        text = self.text()
        return -quantity.whole(text[1:], self.where) if text.startswith("-") else quantity.whole(text, self.where)

    def span(self, least: int | None = 0) -> int:
        """Microseconds of a time (see span.seconds)."""
        return span.seconds(self.text(), self.where, least)

    def moment(self) -> int:
        """Microseconds from the scene's beginning, negative before it: '90', '10m', '-1h'."""
        text = self.text()
        return -span.seconds(text[1:], self.where) if text.startswith("-") else self.span()

    def amount(self) -> int:
        """GPU units of any amount of GPUs (see units.amount)."""
        return units.amount(self.text(), self.where)


def read_yaml(path: str, text: str | None = None) -> Cell:
    """The one YAML document of a file (or of `text` that came from it).

    Raises Mistake: MISSING where there is no such file, UNREADABLE with line and column, EMPTY.
    """
    loader = yaml.SafeLoader(_contents(path) if text is None else text)
    loader.name = path
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
        wrong = f"cannot be read: {error.problem or error.context}"
        raise Mistake(MistakeCode.UNREADABLE, "YAML", place, "mend the YAML there", wrong) from None
    except yaml.YAMLError as error:
        wrong = f"cannot be read: {quoted(str(error))}"
        raise Mistake(MistakeCode.UNREADABLE, "YAML", path, "save the file as UTF-8 text", wrong) from None
    finally:
        loader.dispose()
    if node is None:
        raise Mistake(MistakeCode.EMPTY, path, path, "write a scene; docs/scenes.md shows how")
    return Cell(node)


def _contents(path: str) -> str:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        wrong = f"cannot be opened: {error.strerror}"
        raise Mistake(MistakeCode.MISSING, path, path, "check the path", wrong) from None
    if len(data) > _MOST:
        raise Mistake(MistakeCode.TOO_LARGE, path, path, f"keep a scene below {_MOST // 2**20} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Mistake(MistakeCode.UNREADABLE, path, f"{path}: byte {error.start}", "save it as UTF-8 text") from None


def fields(entries: Mapping[str, yaml.Node], like: yaml.Node) -> yaml.MappingNode:
    """A mapping node made of others, standing where `like` stands."""
    pairs = [(scalar(name, node), node) for name, node in entries.items()]
    return yaml.MappingNode(_TAG + "map", pairs, like.start_mark, like.end_mark)


def listed(items: Iterable[yaml.Node], like: yaml.Node) -> yaml.SequenceNode:
    """A list node made of others, standing where `like` stands."""
    return yaml.SequenceNode(_TAG + "seq", list(items), like.start_mark, like.end_mark)


def scalar(text: str | int | bool, like: yaml.Node) -> yaml.ScalarNode:
    """A scalar node standing where `like` stands."""
    tag = "bool" if isinstance(text, bool) else "int" if isinstance(text, int) else "str"
    written = str(text).lower() if isinstance(text, bool) else str(text)
    return yaml.ScalarNode(_TAG + tag, written, like.start_mark, like.end_mark)
