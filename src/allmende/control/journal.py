"""The journal: every event and decision in the order they were applied; folding it again gives the same state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import msgspec

from allmende.engine.apply import apply
from allmende.engine.state import State
from allmende.model.decision import Decision
from allmende.model.event import Event
from allmende.model.mistake import Mistake, MistakeCode
from allmende.ports.backend import Remark

FORMAT = "allmende-journal"
VERSION = 1
"""Of the file's format; raised when an old file can no longer be read."""

Entry = Event | Decision
Line = Event | Decision | Remark


class Header(msgspec.Struct, frozen=True, tag=True):
    """The first line of a file."""

    format: str
    version: int


def _encode(value: Any) -> str:
    if isinstance(value, Fraction):
        return str(value)
    raise NotImplementedError(f"a journal cannot hold a {type(value).__name__}")


def _decode(kind: type, value: Any) -> Any:
    if kind is Fraction:
        return Fraction(value)
    raise NotImplementedError(f"a journal cannot hold a {kind.__name__}")


_ENCODER = msgspec.json.Encoder(enc_hook=_encode)
_LINES: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line, dec_hook=_decode)
_HEADER = msgspec.json.Decoder(Header)


class Journal:
    """In memory, and in a file of JSON lines where one is given; a line is written out before anything acts on it.

    Raises OSError where the file cannot be written.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.entries: list[Entry] = []
        self._file: IO[bytes] | None = None
        self._path = path
        if path is not None:
            self._file = path.open("wb")
            self._write(Header(FORMAT, VERSION))

    def append(self, line: Line) -> None:
        """Keep an entry; a remark goes to the file alone, as no state comes from it."""
        if not isinstance(line, Remark):
            self.entries.append(line)
        self._write(line)

    def _write(self, line: Line | Header) -> None:
        if self._file is not None:
            with self._named():
                self._file.write(_ENCODER.encode(line) + b"\n")

    def flush(self) -> None:
        """Hand all lines to the system."""
        if self._file is not None:
            with self._named():
                self._file.flush()

    def close(self) -> None:
        """Write out and close the file."""
        if self._file is not None:
            with self._named():
                file, self._file = self._file, None
                file.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """An error says which file it is about; the system names none when a write fails."""
        try:
            yield
        except OSError as error:
            error.filename = str(self._path)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read(path: Path) -> Iterator[Line]:
    """The lines of a journal file, one after another.

    Raises Mistake UNREADABLE with the line's number; OSError where the file cannot be opened.
    """
    with path.open("rb") as file:
        do = "give a file that 'allmende run --log' wrote"
        try:
            header = _HEADER.decode(file.readline())
        except msgspec.MsgspecError:
            raise Mistake(MistakeCode.UNREADABLE, path.name, f"{path}:1", do, "is no journal") from None
        if (header.format, header.version) != (FORMAT, VERSION):
            wrong = f"is {header.format} {header.version}, this program reads {FORMAT} {VERSION}"
            raise Mistake(MistakeCode.UNREADABLE, path.name, f"{path}:1", do, wrong)
        for number, line in enumerate(file, 2):
            try:
                yield _LINES.decode(line)
            except msgspec.MsgspecError as error:
                where = f"{path}:{number}"
                raise Mistake(
                    MistakeCode.UNREADABLE, line.decode(errors="replace").strip(), where, do, str(error)
                ) from None


def is_journal(path: Path) -> bool:
    """Whether a file begins as a journal does, of any version. Raises OSError where it cannot be opened."""
    with path.open("rb") as file:
        try:
            return _HEADER.decode(file.readline()).format == FORMAT
        except msgspec.MsgspecError:
            return False


def differences(one: State, other: State) -> tuple[str, ...]:
    """The names of the facts in which two states differ; the index is derived and not compared."""
    facts = [name for name in State.__slots__ if name != "index"]
    return tuple(name for name in facts if getattr(one, name) != getattr(other, name))


def replay(path: Path) -> State:
    """The state that a journal file leads to. Raises as `read` does."""
    state = State()
    for line in read(path):
        if not isinstance(line, Remark):
            apply(state, line)
    return state
