"""What a language must bring: whole sentences for every reason, decision and event, and how it writes figures."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from allmende.model.decision import Cause
from allmende.model.reason import Code, Param, Waiting
from allmende.model.remedy import Change
from allmende.words.params import Kind


class Catalogue(Struct, frozen=True):
    """All the texts of one language; a template's {names} are the params of what it tells.

    `reasons`: one sentence per code. `given`: the sentence that takes its place when those params say something
    (no empty text, more than 0); the first that applies counts. `waiting`: the closing sentence; `growing`: its
    place for what runs already. `on_model` wraps a finding about one GPU model. `screen`: what live output says
    besides. `figure` writes one param. `remedies` and `remedies_given` are to remedies what `reasons` and `given` are
    to reasons.
    """

    reasons: Mapping[Code, str]
    given: Mapping[tuple[Code, tuple[str, ...]], str]
    waiting: Mapping[Waiting, str]
    growing: str
    on_model: str
    remedies: Mapping[Change, str]
    remedies_given: Mapping[tuple[Change, tuple[str, ...]], str]
    causes: Mapping[Cause, str]
    claimed: str
    decisions: Mapping[str, str]
    events: Mapping[str, str]
    screen: Mapping[str, str]
    figure: Callable[[Kind, Param], str]


UNTOLD = frozenset({Code.NOT_CONSIDERED})
"""Codes that already say what comes next."""

GROWING = frozenset({Code.GROWTH_CAP, Code.GROWTH_ROOM})
"""Codes of what runs already and waits for more."""
