"""The one table that every trace is read into, the tally of its reading, and strict reading of CSV, packed or plain."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from allmende.model.mistake import Mistake, MistakeCode, Mistakes
from allmende.model.quantity import MOST
from allmende.model.request import units_asked
from allmende.model.units import SECOND
from allmende.model.workload import Role

TOLERANCE = 1000
"""One bad row in so many is skipped and reported; where there are more, the file is refused."""

_NAMED = 5  # bad rows that a refusal names one by one
_GZIP = b"\x1f\x8b"
_POINTER = b"version https://git-lfs"
_ANEW = "get the file anew (docs/replay.md says where)"
_WHOLE = re.compile(r"[0-9]{1,18}")
_SECONDS = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,6})0*)?")


class Job(Struct, frozen=True, gc=False):
    """One job as the trace tells it, whatever the trace.

    `submit` in microseconds since the trace's start; `duration` in microseconds of running, None where the trace
    does not say, or where the job only arrives. `roles`: its pods, which are placed together.
    """

    id: str
    project: str
    user: str
    submit: int
    duration: int | None
    roles: tuple[Role, ...]

    @property
    def pods(self) -> int:
        """Pods in all."""
        return sum(role.pods for role in self.roles)

    @property
    def units(self) -> int:
        """GPU units of all its pods."""
        return sum(role.pods * units_asked(role.ask) for role in self.roles)


class Tally(Struct):
    """What the reading of one file met: `rows` with data, of which `kept`; why others were skipped; and remarks.

    `skipped`: reason to (rows, place of the first). `expected`: rows of the published file, 0 where not known.
    """

    file: str
    expected: int = 0
    rows: int = 0
    kept: int = 0
    blank: int = 0
    skipped: dict[str, tuple[int, str]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    bad: list[Mistake] = field(default_factory=list)

    def refuse(self, mistake: Mistake) -> None:
        """Count a row that cannot be read. It is skipped; too many of them refuse the whole file (`close`)."""
        self.bad.append(mistake)
        count, first = self.skipped.get(mistake.wrong, (0, mistake.where))
        self.skipped[mistake.wrong] = (count + 1, first)

    def close(self) -> Tally:
        """End it. Raises Mistakes for more bad rows than one in TOLERANCE, Mistake EMPTY where none is left."""
        if len(self.bad) * TOLERANCE > self.rows:
            found = self.bad[:_NAMED]
            if len(self.bad) > _NAMED:
                what = f"{len(self.bad)} of {self.rows} rows"
                found.append(Mistake(MistakeCode.UNREADABLE, what, self.file, _ANEW, "cannot be read"))
            raise Mistakes(found)
        if not self.kept:
            raise Mistake(MistakeCode.EMPTY, self.file, "trace", _ANEW, "has no rows below its header")
        return self

    def lines(self) -> list[str]:
        """The tally in words: a line for the file, and one for each thing left out or odd."""
        found = [f"{self.file}: {self.rows:,} rows, {self.kept:,} kept"]
        found += [f"  skipped {n:,}: {why} (first: {where})" for why, (n, where) in sorted(self.skipped.items())]
        if self.blank:
            found.append(f"  blank lines: {self.blank:,}")
        if self.expected and self.rows != self.expected:
            found.append(f"  the published file has {self.expected:,} rows: is this one whole?")
        return found + [f"  {remark}" for remark in self.remarks]


def find(folder: str, stems: tuple[str, ...], upstream: str) -> Path:
    """The trace's file in the folder, `STEM.csv` or `STEM.csv.gz`, by the first stem that is there.

    Raises Mistake MISSING, which names the file and where upstream has it.
    """
    for stem in stems:
        for name in (f"{stem}.csv", f"{stem}.csv.gz"):
            if (Path(folder) / name).is_file():
                return Path(folder) / name
    wrong = f"has no file {stems[0]}.csv or {stems[0]}.csv.gz"
    if not Path(folder).is_dir():
        wrong = f"is no folder; it should hold {stems[0]}.csv or {stems[0]}.csv.gz"
    raise Mistake(MistakeCode.MISSING, folder, "trace", f"get the file from {upstream}", wrong)


def listed(folder: str, prefix: str) -> list[str]:
    """The names of the trace files in the folder that begin with the prefix, without it and without '.csv[.gz]'."""
    names = (path.name.removesuffix(".gz") for path in Path(folder).glob(f"{prefix}*.csv*"))
    return sorted({name.removeprefix(prefix).removesuffix(".csv") for name in names if name.endswith(".csv")})


def read_rows(
    path: Path, needed: tuple[str, ...], tally: Tally, maybe: tuple[str, ...] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Place ('file:line') and fields of every row: the columns `needed`, then `maybe` ('' where the file lacks one).

    Rows with too few or too many fields go to the tally. Raises Mistake: EMPTY, MISSING (a column), UNREADABLE for a
    file that is cut, damaged, no gzip though named so, not UTF-8, no CSV, or only a Git-LFS pointer.
    """
    reader = csv.reader(_lines(path, tally), strict=True)
    fields: list[str] = []
    short: Mistake | None = None
    try:
        header = next(reader, [])
        columns = _columns(f"{path}:1", header, needed, maybe, tally)
        for fields in reader:
            if not fields:
                tally.blank += 1
                continue
            tally.rows += 1
            if len(fields) == len(header):
                short = None
                yield f"{path}:{reader.line_num}", [fields[i] if i >= 0 else "" for i in columns]
                continue
            wrong = f"has {len(fields)} fields where the header has {len(header)}"
            short = Mistake(MistakeCode.UNREADABLE, ",".join(fields), f"{path}:{reader.line_num}", _ANEW, wrong)
            tally.refuse(short)
    except csv.Error as error:
        where = f"{path}:{reader.line_num}"
        raise Mistake(MistakeCode.UNREADABLE, str(error), where, _ANEW, "is no CSV") from error
    if short is not None and len(fields) < len(header):
        raise Mistake(short.code, short.what, short.where, _ANEW, f"is the last row and {short.wrong}: the file is cut")


def _columns(
    where: str, header: list[str], needed: tuple[str, ...], maybe: tuple[str, ...], tally: Tally
) -> tuple[int, ...]:
    """Where each column stands in a row, -1 for one of `maybe` that is not there; unknown ones become a remark."""
    shown = ",".join(header)
    do = f"its first line must name {', '.join(needed)}"
    missing = [name for name in needed if name not in header]
    if missing:
        raise Mistake(MistakeCode.MISSING, shown, where, do, f"has no column {', '.join(missing)}")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise Mistake(MistakeCode.DUPLICATE, shown, where, do, f"has {', '.join(twice)} twice")
    unknown = [name for name in header if name not in needed + maybe]
    if unknown:
        tally.remarks.append(f"unknown columns, not used: {', '.join(unknown)}")
    return tuple(header.index(name) if name in header else -1 for name in needed + maybe)


def _lines(path: Path, tally: Tally) -> Iterator[str]:
    """The lines of a file that is gzip by its content, or plain; a last line without its end becomes a remark."""
    count, line = 0, "\n"
    try:
        with path.open("rb") as raw:
            head = raw.read(len(_POINTER))
        if not head:
            raise Mistake(MistakeCode.EMPTY, str(path), "trace", _ANEW, "has nothing in it")
        if head == _POINTER:
            do = "run 'git lfs pull' in the clone it came from"
            raise Mistake(MistakeCode.UNREADABLE, str(path), "trace", do, "is a Git-LFS pointer, not the data")
        packed = head.startswith(_GZIP)
        if path.suffix == ".gz" and not packed:
            do = f"{_ANEW}, or take .gz off its name if it is plain text"
            raise Mistake(MistakeCode.UNREADABLE, str(path), "trace", do, "is no gzip file, though its name says so")
        opener = gzip.open if packed else open
        with opener(path, "rt", encoding="utf-8-sig", newline="") as text:
            for line in text:
                count += 1
                yield line
    except EOFError as error:
        wrong = f"ends in the middle of its gzip data, after line {count}: the file is cut"
        raise Mistake(MistakeCode.UNREADABLE, str(path), "trace", _ANEW, wrong) from error
    except UnicodeDecodeError as error:
        raise Mistake(MistakeCode.UNREADABLE, str(path), "trace", _ANEW, "is not UTF-8 text") from error
    except (OSError, zlib.error) as error:
        wrong = f"cannot be read after line {count} ({error})"
        raise Mistake(MistakeCode.UNREADABLE, str(path), "trace", _ANEW, wrong) from error
    if not line.endswith(("\n", "\r")):
        tally.remarks.append(f"line {count} has no line end: is the file whole?")


def whole(text: str, column: str, most: int = MOST) -> int:
    """A whole number >= 0 as traces write it. Raises Mistake: NOT_WHOLE, TOO_LARGE."""
    if not _WHOLE.fullmatch(text):
        raise Mistake(
            MistakeCode.NOT_WHOLE, text, column, "write a whole number such as 12", f"in {column} is no number"
        )
    if int(text) > most:
        raise Mistake(MistakeCode.TOO_LARGE, text, column, f"write at most {most}", f"in {column} is too large")
    return int(text)


def span(text: str, column: str) -> int:
    """Microseconds of a number of seconds, '66' or '66.0'. Raises Mistake UNREADABLE."""
    found = _SECONDS.fullmatch(text)
    if not found:
        do = "write seconds such as 66 or 66.5"
        raise Mistake(MistakeCode.UNREADABLE, text, column, do, f"in {column} is no number of seconds")
    return int(found[1]) * SECOND + int((found[2] or "0").ljust(6, "0"))
