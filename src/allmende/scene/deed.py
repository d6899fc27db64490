"""What a sentence says that happens, as events of our schema: pods finish, reports arrive, levels are named anew."""

from __future__ import annotations

import re
from collections.abc import Callable

import yaml

from allmende.scene.cell import fields, listed, scalar
from allmende.scene.moment import NUMBER, number

Event = dict[str, yaml.Node]
Make = Callable[["re.Match[str]", yaml.Node], list[Event]]

_NAME = r"[^\s,;]+"
_NAMES = rf"{_NAME}(?:(?:, and |, | and ){_NAME})*"
_WELL = r"(?:finish(?:es)?|ends?|completes?|succeeds?|are done|is done)(?: with success| well| successfully)?"
_BADLY = r"(?:fails?|crash(?:es)?|dies?|end(?:s)? badly|(?:finish(?:es)?|ends?) with (?:an? )?(?:error|failure))"
_TAIL = r"(?:[;,] (?:no retry|nothing is retried|they are not retried))?"


def deeds(text: str, like: yaml.Node, last_report: yaml.Node | None = None) -> list[Event] | None:
    """The events that a sentence stands for; None where no form understands it.

    `last_report`: the report before this one, for 'it is reported a second time'.
    """
    plain = re.sub(r"\s+", " ", text).strip().rstrip(".")
    if re.fullmatch(
        r"(?:the|its|this) (?:report|deletion|end|message)\b(?! of ).* (?:a second time|twice|again|late)", plain
    ):
        return [{"report": last_report}] if last_report is not None else None
    for pattern, make in _FORMS:
        found = re.fullmatch(pattern, plain, re.IGNORECASE)
        if found is not None:
            return make(found, like)
    return None


def _split(names: str) -> list[str]:
    return [name for name in re.split(r", and |, | and ", names) if name]


def _made(kind: str, like: yaml.Node, **values: str | int | bool) -> Event:
    return {kind: fields({name: scalar(value, like) for name, value in values.items()}, like)}


def _pods_end(ok: bool) -> Make:
    def make(found: re.Match[str], like: yaml.Node) -> list[Event]:
        return [_made("end_pods", like, name=found["j"], pods=int(number(found["n"])), ok=ok)]

    return make


def _all_end(kind: str) -> Make:
    def make(found: re.Match[str], like: yaml.Node) -> list[Event]:
        return [{kind: scalar(name, like)} for name in _split(found["j"])]

    return make


def _report(what: str) -> Make:
    def make(found: re.Match[str], like: yaml.Node) -> list[Event]:
        pod = int(found["p"]) if "p" in found.groupdict() and found["p"] else 0
        return [_made("report", like, name=found["j"], what=what, pod=pod)]

    return make


def _levels(found: re.Match[str], like: yaml.Node) -> list[Event]:
    names = [name.strip() for name in found["l"].split(",")]
    return [{"levels": listed((scalar(name, like) for name in names), like)}]


def _fail_at_bind(found: re.Match[str], like: yaml.Node) -> list[Event]:
    return [_made("fail_at_bind", like, name=found["j"], node=found["n"])]


def _node_state(state: str) -> Make:
    def make(found: re.Match[str], like: yaml.Node) -> list[Event]:
        return [_made("node", like, name=found["n"], state=state)]

    return make


def _restart(_found: re.Match[str], like: yaml.Node) -> list[Event]:
    return [{"restart": scalar(True, like)}]


_OWN_POD = rf"(?P<j>{_NAME})'s (?:only |first )?pod(?: (?P<p>\d+))?"

_AGAIN = r"(?: (?:a second time|once more|again|twice|late))?"

_FORMS: list[tuple[str, Make]] = [
    (rf"(?P<n>{NUMBER}) (?:of the )?pods? of (?P<j>{_NAME}) {_WELL}{_TAIL}", _pods_end(True)),
    (rf"(?P<n>{NUMBER}) (?:of the )?pods? of (?P<j>{_NAME}) {_BADLY}{_TAIL}", _pods_end(False)),
    (rf"(?:all|every|the) pods? of (?P<j>{_NAMES}) {_WELL}{_TAIL}", _all_end("end")),
    (rf"(?:all|every|the) pods? of (?P<j>{_NAMES}) {_BADLY}{_TAIL}", _all_end("fail")),
    (rf"{_OWN_POD} (?:reports that it has finished|is reported (?:as )?finished|{_WELL})", _report("finished")),
    (rf"{_OWN_POD} (?:is (?:reported (?:as )?)?(?:deleted|gone|removed))", _report("gone")),
    (rf"(?:the )?(?:deletion|removal) of (?P<j>{_NAME}) is reported{_AGAIN}", _report("gone")),
    (rf"(?P<j>{_NAME})'s (?:deletion|removal) is reported{_AGAIN}", _report("gone")),
    (rf"(?:the )?end of (?P<j>{_NAME}) is reported{_AGAIN}", _report("finished")),
    (rf"(?P<j>{_NAME})'s end is reported{_AGAIN}", _report("finished")),
    (rf"{_OWN_POD} (?:is lost|{_BADLY}|is taken by its node)", _report("lost")),
    (
        r"the (?:level list|levels|topology)(?: object)? (?:is|are) (?:deleted and )?(?:re)?"
        r"(?:created|defined|set|named)(?: anew| again)?(?: as)? \[(?P<l>[^\]]+)\]",
        _levels,
    ),
    (
        rf"(?:right )?after (?P<j>{_NAME}) (?:was|is) assigned to (?P<n>{_NAME}) and before (?:a|any|its) pods? "
        r"(?:is|are) bound, (?P=n) (?:becomes|is|goes) (?:not_ready|not ready|tainted|unreachable|bad)"
        r"(?: and stays so)?",
        _fail_at_bind,
    ),
    (rf"(?P<j>{_NAMES}) {_WELL}", _all_end("end")),
    (rf"(?P<j>{_NAMES}) {_BADLY}{_TAIL}", _all_end("fail")),
    (rf"(?P<j>{_NAMES}) (?:is|are) (?:cancelled|removed|deleted)(?: by (?:its|their) owners?)?", _all_end("cancel")),
    (
        rf"(?:node )?(?P<n>{_NAME}) (?:becomes|goes|is) (?:not[_ ]ready|unreachable|down|silent)",
        _node_state("not_ready"),
    ),
    (rf"(?:node )?(?P<n>{_NAME}) (?:becomes|is) ready(?: again)?", _node_state("ready")),
    (rf"(?:node )?(?P<n>{_NAME}) is cordoned", _node_state("cordoned")),
    (rf"(?:node )?(?P<n>{_NAME}) is (?:gone|taken away|removed for good)", _node_state("gone")),
    (r"the scheduler (?:restarts|is restarted|crashes and comes back)", _restart),
]
