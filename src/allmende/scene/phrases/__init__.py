"""Phrases about workloads, pods, nodes and projects, each becoming a claim about a moment."""

from __future__ import annotations

import re

from allmende.scene.claim import Claim
from allmende.scene.phrases import books, happen, machine, place, wait
from allmende.scene.phrases.form import Build
from allmende.scene.who import Names

FORMS: tuple[tuple[re.Pattern[str], Build], ...] = (
    *place.FORMS,
    *happen.FORMS,
    *wait.FORMS,
    *books.FORMS,
    *machine.FORMS,
)


def claim(text: str, names: Names) -> Claim | None:
    """The claim that a phrase makes; None where no form has it."""
    for pattern, build in FORMS:
        found = pattern.fullmatch(text.strip().rstrip("."))
        if found is not None and (made := build(found, names)) is not None:
            return made
    return None
