"""A YAML value with its place, so that every mistake can name file, line and column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from allmende.model import names, quantity, span, units
from allmende.model.mistake import Mistake, MistakeCode, Mistakes, quoted

_MOST = 8 * 2**20  # bytes of a file
_DEEPEST = 40  # lists and mappings inside each other; what reads a file may call itself once or twice for each
_COMPARED = 1000  # names among which the nearest one is sought; more take too long
_LISTED = 12  # names that a message lists
SCENE = "a scene; docs/scenes.md shows how"
"""What to write into a file that is empty, unless its reader says otherwise."""
_TAG = "tag:yaml.org,2002:"


class _Shown:
    """What a mistake shows in the place of a value that is too long to show: words, not quoted as a value is."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __str__(self) -> str:
        return self._words


_MAPPING, _LIST, _YAML, THIS_FILE = map(_Shown, ("this mapping", "this list", "the YAML", "this file"))


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
        return _MAPPING if isinstance(self.node, yaml.MappingNode) else _LIST

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

    def entries(self) -> Fields:
        """The fields of a mapping, whatever they are called. Raises Mistake: WRONG_KIND, DUPLICATE."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.mistake(MistakeCode.WRONG_KIND, "write fields with values, such as {name: a}", "has no fields")
        found = Fields(self)
        for key, value in self.node.value:
            name = Cell(key, self.path).text()
            if name in found:
                path = f"{self.path}.{name}" if self.path else name
                raise Cell(key, path).mistake(MistakeCode.DUPLICATE, "keep one of the two")
            found[name] = Cell(value, f"{self.path}.{name}" if self.path else name)
        return found

    def mapping(self, known: Iterable[str], needed: Iterable[str] = (), found: list[Mistake] | None = None) -> Fields:
        """The fields of a mapping that may have only known ones.

        Raises Mistake(s): UNKNOWN_FIELD with the nearest known name, MISSING for a needed one that none of those may
        have been meant for, and those of entries(). Where `found` is given the former go there instead.
        """
        given = self.entries()
        known, wrong, meant = list(known), [], set()
        for key, _ in self.node.value:
            if key.value not in known:
                close = _nearest(key.value, [name for name in known if name not in given])
                meant.add(close)
                close = close or _nearest(key.value, known)
                do = f"did you mean {close}?" if close else f"use one of {', '.join(known)}"
                wrong.append(Cell(key, self.path).mistake(MistakeCode.UNKNOWN_FIELD, do))
        for name in needed:
            if name not in given and name not in meant:
                wrong.append(self.mistake(MistakeCode.MISSING, f"add {name}: ...", f"has no {name}"))
        if wrong and found is None:
            raise Mistakes(wrong) if len(wrong) > 1 else wrong[0]
        if found is not None:
            found += wrong
        return Fields(self, ((name, cell) for name, cell in given.items() if name in known))

    def items(self) -> list[Cell]:
        """The values of a list. Raises Mistake: WRONG_KIND, EMPTY."""
        if not isinstance(self.node, yaml.SequenceNode):
            code, wrong = (MistakeCode.EMPTY, "is empty") if self.is_null else (MistakeCode.WRONG_KIND, "is no list")
            raise self.mistake(code, "write a list, such as [a, b]", wrong)
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
            close = _nearest(text, options)
            more = f" or {len(options) - _LISTED} others" if len(options) > _LISTED else ""
            do = f"did you mean {close}?" if close else f"write one of {', '.join(options[:_LISTED])}{more}"
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

    def zone(self) -> ZoneInfo:
        """A time zone. Raises Mistake: UNKNOWN_NAME."""
        try:
            return ZoneInfo(self.text())
        except (KeyError, ValueError, OSError):
            do = "write a zone such as Europe/Berlin"
            raise self.mistake(MistakeCode.UNKNOWN_NAME, do, "is no time zone") from None

    def amount(self) -> int:
        """GPU units of any amount of GPUs (see units.amount)."""
        return units.amount(self.text(), self.where)


class Fields(dict[str, Cell]):
    """The fields of a mapping; one that is read and is not there is a mistake in the file."""

    def __init__(self, owner: Cell, items: Iterable[tuple[str, Cell]] = ()) -> None:
        super().__init__(items)
        self._owner = owner

    def __missing__(self, name: str) -> Cell:
        raise self._owner.mistake(MistakeCode.MISSING, f"add {name}: ...", f"has no {name}")


def _nearest(text: str, names: Sequence[str]) -> str:
    """The name that was probably meant, '' for none."""
    return next(iter(get_close_matches(text, names, 1, 0.6)), "") if len(names) <= _COMPARED else ""


def read_yaml(path: str, text: str | None = None, content: str = SCENE) -> Cell:
    """The one YAML document of a file (or of `text` that came from it); `content`: what an empty one should hold.

    Raises Mistake: MISSING where there is no such file, UNREADABLE with line and column, EMPTY, TOO_LARGE, and ABSURD
    for what is nested deeper than anybody writes, so that readers may call themselves.
    """
    loader = yaml.SafeLoader(_contents(path) if text is None else text)
    loader.name = path
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _unreadable(error, path) from None
    except RecursionError:
        raise _too_deep(THIS_FILE, path) from None
    except yaml.YAMLError as error:
        wrong = f"cannot be read: {quoted(str(error))}"
        raise Mistake(MistakeCode.UNREADABLE, _YAML, path, "save the file as UTF-8 text", wrong) from None
    finally:
        loader.dispose()
    if node is None:
        raise Mistake(MistakeCode.EMPTY, THIS_FILE, path, f"write {content}")
    _check_depth(node)
    return Cell(node)


def _unreadable(error: yaml.MarkedYAMLError, path: str) -> Mistake:
    mark = error.problem_mark or error.context_mark
    place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
    problem = error.problem or error.context or "?"
    if problem.startswith("but ") and error.context:
        problem = f"{error.context}, {problem}"
    do = "indent with spaces" if r"'\t'" in problem else "mend the YAML there"
    return Mistake(MistakeCode.UNREADABLE, _YAML, place, do, f"cannot be read: {problem}")


def _too_deep(what: object, where: str) -> Mistake:
    do = "write lists and fields a few levels deep"
    return Mistake(MistakeCode.ABSURD, what, where, do, "is nested too deeply")


def _check_depth(top: yaml.Node) -> None:
    """Raises Mistake where values are nested too deeply, or an alias stands inside what it stands for."""
    deepest: dict[int, int] = {}
    rest = [(top, 0)]
    while rest:
        node, depth = rest.pop()
        if isinstance(node, yaml.ScalarNode) or deepest.get(id(node), -1) >= depth:
            continue
        deepest[id(node)] = depth
        if depth > _DEEPEST:
            cell = Cell(node)
            raise _too_deep(cell._shown(), cell.place)
        inner = [each for pair in node.value for each in pair] if isinstance(node, yaml.MappingNode) else node.value
        rest += [(each, depth + 1) for each in inner]


def _contents(path: str) -> str:
    if not path:
        raise Mistake(MistakeCode.EMPTY, path, "file", "write a file's name")
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST + 1)
    except (OSError, ValueError) as error:
        raise _closed(error, path) from None
    if len(data) > _MOST:
        raise Mistake(MistakeCode.TOO_LARGE, THIS_FILE, path, f"keep it below {_MOST // 2**20} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{path}: byte {error.start}"
        raise Mistake(MistakeCode.UNREADABLE, THIS_FILE, where, "save it as UTF-8 text") from None


def _closed(error: Exception, path: str) -> Mistake:
    match error:
        case IsADirectoryError():
            do = f"name a file in it, such as {path.rstrip('/')}/NAME.yaml"
            return Mistake(MistakeCode.WRONG_KIND, THIS_FILE, path, do, "is a folder")
        case PermissionError():
            do = "make it readable for you"
        case _:
            do = "check the path"
    why = error.strerror if isinstance(error, OSError) else error
    return Mistake(MistakeCode.MISSING, THIS_FILE, path, do, f"cannot be opened: {why}")


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
