"""A phrase is a pattern for its whole text and what builds the claim from it; modules keep their phrases in a Forms."""

from __future__ import annotations

import re
from collections.abc import Callable

from allmende.scene.claim import Claim
from allmende.scene.moment import SIZE, Moment
from allmende.scene.who import Names, Who

Build = Callable[["re.Match[str]", Names], Claim | None]
BE = r"(?:is|are|was|were|has been|have been|gets?|becomes?)(?: ever| still| both| all)?"


class Forms(list[tuple[re.Pattern[str], Build]]):
    """Phrases in the order in which they are tried. In a pattern {BE} stands for forms of 'is', {SIZE} for numbers."""

    def form(self, pattern: str) -> Callable[[Build], Build]:
        """Register a phrase by the pattern of its whole text; what it builds may be None: not meant after all."""
        whole = re.compile(pattern.replace("{BE}", BE).replace("{SIZE}", SIZE), re.IGNORECASE)

        def register(build: Build) -> Build:
            self.append((whole, build))
            return build

        return register


def each(who: Who, test: Callable[[Moment, str], bool]) -> Callable[[Moment], bool]:
    """A test over the workloads that are meant: all of 'A and B', one of 'A or B' or of 'a workload'."""

    def run(moment: Moment) -> bool:
        found = who.among(moment)
        results = (test(moment, name) for name in found)
        return all(results) and bool(found) if who.all else any(results)

    return run
