"""Phrases about who waits, with which reason, behind whom."""

from __future__ import annotations

import re

from allmende.scene import view
from allmende.scene.book import position
from allmende.scene.claim import Claim
from allmende.scene.moment import Moment
from allmende.scene.phrases.form import Forms, each
from allmende.scene.who import Names, Who

FORMS = Forms()


@FORMS.form(r"(?P<s>.+?) (?:waits?|stays? pending|{BE} (?:kept )?(?:pending|waiting))")
def _pending(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    return None if who is None else Claim(each(who, lambda m, name: view.is_pending(m.state, name)), rest=True)


@FORMS.form(r"(?P<s>.+?) (?:waits|{BE} (?:pending|waiting)) without (?:a|any) reason")
def _mute(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    if who is None:
        return None
    test = each(who, lambda m, name: view.is_pending(m.state, name) and not m.reason(name))
    return Claim(test, rest=True)


@FORMS.form(
    r"the reason(?: (?:of|for|shown for) (?P<s>.+?))? (?:names?|mentions?|says?|is|speaks of) (?P<word>'[^']+'|\S+)"
)
def _reason(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"]) if found["s"] else Who.anybody()
    word = found["word"].strip("'")
    if who is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        return view.is_pending(moment.state, name) and word.casefold() in moment.reason(name).casefold()

    return Claim(each(who, test), rest=True)


@FORMS.form(
    r"(?P<none>no(?: other)? (?:workload|job|gang)|nothing|nobody|.+?) {BE} ahead of (?P<s>.+?)"
    r"(?: in (?:the|its) queue)?"
)
def _ahead(found: re.Match[str], names: Names) -> Claim | None:
    who, other = names.who(found["s"]), names.who(found["none"])
    if who is None:
        return None
    if re.match(r"no", found["none"]):
        return Claim(each(who, lambda m, name: position(m.state, name) == 1), rest=True)
    if other is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        mine = position(moment.state, name)
        return any(0 < position(moment.state, each) < mine for each in other.among(moment))

    return Claim(each(who, test), rest=True)


@FORMS.form(r"(?P<s>.+?) shows any reason before it was (?:looked at|considered|tried), other than '(?P<but>[^']+)'")
def _early_reason(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    if who is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        new = any(getattr(getattr(e, "workload", None), "id", "") == name for e in moment.entries)
        reason = moment.reason(name) if new and view.is_pending(moment.state, name) else ""
        return bool(reason) and not _alike(found["but"], reason)

    return Claim(each(who, test), fresh=True)


def _alike(said: str, reason: str) -> bool:
    """Whether a reason says the same as some words: each word of them, 'yet' and 'not' aside, is in it."""
    words = [word for word in re.findall(r"\w+", said.casefold()) if word not in ("not", "yet", "been")]
    return all(word in reason.casefold() for word in words)
