"""Sentences that may never be true: a phrase, and what narrows it down - times, 'while', 'after', 'unless'."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allmende.model.request import units_asked
from allmende.model.span import HOUR, MINUTE, SECOND
from allmende.model.workload import Workload
from allmende.scene.claim import LateStart, Ref, Sentence, Window
from allmende.scene.phrases import claim
from allmende.scene.record import Record
from allmende.scene.value import Scene
from allmende.scene.who import Names

_JOIN = re.compile(
    r",? (?P<word>after|before|between|from|until|while|when|with|although|though|as long as|unless|and|at any|"
    r"for more than|for longer than|beyond) ",
    re.IGNORECASE,
)
_UNITS = {"s": SECOND, "sec": SECOND, "m": MINUTE, "min": MINUTE, "h": HOUR, "hour": HOUR}
_TIME = re.compile(r"(?:t ?= ?)?(?P<n>\d+(?:\.\d+)?) ?(?P<u>s|sec|m|min|h|hour)?(?:onds?|utes?|s)?", re.IGNORECASE)
_POINT = re.compile(r"(?:the )?(?P<what>start|end) of (?P<a>.+)|(?P<b>.+)'s (?P<what2>start|end)", re.IGNORECASE)
_SMALL = re.compile(
    r"(?:an?|any) (?:small|smaller|short|other|new)(?:er)? (?:job|workload) (?:starts|is started)"
    r" between (?P<low>.+?) and the start of (?P<large>.+?)"
    r"(?P<spared>,? unless its limit ends before (?:(?P<large2>.+?) (?:can|could) start|that|then))?",
    re.IGNORECASE,
)


def parse(text: str, scene: Scene) -> Sentence | None:
    """What a sentence forbids, ready to look at moments; None where no form understands it."""
    names = Names(scene)
    text = re.sub(r"\s+", " ", text).strip().rstrip(".")
    special = _late_start(text, scene, names)
    if special is not None:
        return special
    for main, rest in _splits(text):
        names.main = _subject(main, names)
        first = claim(main, names)
        if first is None:
            continue
        for said in _resolved(rest, main, names):
            sentence = Sentence(first)
            if _narrow(sentence, said, scene, names):
                return sentence
    return None


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """Every way to cut a sentence into its main phrase and the rest, the longest main phrase first."""
    yield text, ""
    for found in reversed(list(_JOIN.finditer(text))):
        yield text[: found.start()], text[found.start() :]


def _subject(main: str, names: Names) -> str:
    """The workload that a phrase begins with, for 'it' and 'its'."""
    words = main.split(" ")
    for count in range(len(words), 0, -1):
        text = " ".join(words[:count])
        who = names.who(text)
        if who is not None and not who.generic:
            return text
    mentioned = [word for word in words if names.who(word) is not None]
    return mentioned[0] if mentioned else ""


def _resolved(rest: str, main: str, names: Names) -> Iterator[str]:
    """The rest with 'it', 'its' and 'there' replaced by what they may stand for: the subject, or the node spoken of."""
    nodes = [word for word in re.findall(r"[^\s,]+", main) if word in names.nodes]
    if nodes:
        rest = re.sub(r"\bthere\b", f"on {nodes[-1]}", rest)
    for meant in (names.main, *nodes[-1:], ""):
        if not meant:
            yield rest
            continue
        yield re.sub(r"\bits\b", f"{meant}'s", re.sub(r"\bit\b", meant, rest))


def _narrow(sentence: Sentence, rest: str, scene: Scene, names: Names) -> bool:
    """Read the rest piece by piece; whether all of it was understood."""
    if not rest:
        return True
    found = _JOIN.match(rest)
    if found is None:
        return False
    word, tail = found["word"].casefold(), rest[found.end() :]
    ends = [len(tail), *(each.start() for each in reversed(list(_JOIN.finditer(tail))))]
    for end in ends:
        marks = _marks(sentence)
        if _take(sentence, word, tail[:end], scene, names) and _narrow(sentence, tail[end:], scene, names):
            return True
        _restore(sentence, marks)
    return False


def _marks(sentence: Sentence) -> tuple[tuple[int, ...], int | None]:
    return tuple(len(part) for part in sentence.parts), sentence.longer_than


def _restore(sentence: Sentence, marks: tuple[tuple[int, ...], int | None]) -> None:
    lengths, sentence.longer_than = marks
    for part, length in zip(sentence.parts, lengths, strict=True):
        del part[length:]


def _take(sentence: Sentence, word: str, text: str, scene: Scene, names: Names) -> bool:
    """Read one piece: a time or another phrase, as its first word says."""
    if word == "at any":
        return text in ("time", "moment", "point")
    if word in ("for more than", "for longer than", "beyond"):
        sentence.longer_than = _length(text)
        return sentence.longer_than is not None
    window = _window(word, text, scene, names)
    if window is not None:
        sentence.windows.append(window)
        return True
    said = claim(text, names)
    if said is None and word in ("before", "after") and names.who(text) is not None:
        said = claim(f"{text} starts", names)
    if said is None:
        return False
    kinds = {"after": sentence.once, "before": sentence.not_yet, "until": sentence.not_yet, "unless": sentence.unless}
    if word in ("between", "from"):
        return False
    kinds.get(word, sentence.also).append(said)
    return True


def _window(word: str, text: str, scene: Scene, names: Names) -> Window | None:
    if word in ("between", "from"):
        both = re.split(r" and | to | until ", text, maxsplit=1)
        refs = [_ref(part, scene, names) for part in both]
        if len(refs) == 2 and refs[0] and refs[1]:
            return Window(refs[0], refs[1])
        return None
    ref = _ref(text, scene, names)
    if ref is None:
        return None
    if word == "after":
        return Window(low=ref)
    return Window(high=ref) if word in ("before", "until") else None


def _ref(text: str, scene: Scene, names: Names) -> Ref | None:
    """A moment in words: seconds from the scene's beginning, or the start or end of a workload."""
    length = _length(text)
    if length is not None:
        at = scene.origin + length
        return lambda _: at
    found = _POINT.fullmatch(text.strip())
    who = names.who(found["a"] or found["b"]) if found else None
    if found is None or who is None or len(who.names) != 1:
        return None
    (name,) = who.names
    ends = (found["what"] or found["what2"]).casefold() == "end"
    return lambda record: _point(record, name, ends)


def _point(record: Record, name: str, ends: bool) -> float:
    at = record.end_of(name) if ends else record.start_of(name)
    return float("inf") if at is None else at


def _length(text: str) -> int | None:
    """Microseconds of '60 s', '2 min', '75'."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        return None
    return round(float(found["n"]) * _UNITS[(found["u"] or "s").casefold()])


def _late_start(text: str, scene: Scene, names: Names) -> LateStart | None:
    """'a small job starts between T and the start of X, unless its limit ends before X can start'."""
    found = _SMALL.fullmatch(text)
    large = names.who(found["large"]) if found else None
    low = _ref(found["low"], scene, names) if found else None
    if found is None or large is None or low is None or len(large.names) != 1:
        return None
    (name,) = large.names
    most = _units(scene.workloads[name])
    window = Window(low, lambda record: _point(record, name, False))
    return LateStart(lambda moment, each: _units(moment.world.specs[each]) < most, name, window, bool(found["spared"]))


def _units(workload: Workload) -> int:
    return sum(role.pods * units_asked(role.ask) for role in workload.roles)
