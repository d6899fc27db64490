"""Claims about moments, and how times and other claims narrow them down."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from allmende.scene.moment import Moment
from allmende.scene.record import Record
from allmende.words.figure import clock


class Claim:
    """Something that can be true of a moment.

    `event`: it is about what happens in an instant, not about what lasts. `rest`: it is asked only when nothing more
    is going on in the instant. `fresh`: it is asked before the first pass of an instant instead.
    """

    __slots__ = ("event", "fresh", "rest", "test")

    def __init__(
        self, test: Callable[[Moment], bool], *, event: bool = False, rest: bool = False, fresh: bool = False
    ) -> None:
        self.test = test
        self.event = event
        self.rest = rest
        self.fresh = fresh


Ref = Callable[[Record], float]
"""A moment in microseconds, perhaps one that is not known before it comes (then infinite)."""


class Window:
    """From `low` to `high`, the end left out."""

    __slots__ = ("high", "low")

    def __init__(self, low: Ref | None = None, high: Ref | None = None) -> None:
        self.low = low
        self.high = high

    def reaches(self, moment: Moment, event: bool) -> bool:
        """Whether an instant lies in it, or a stretch of time overlaps it."""
        low = self.low(moment.record) if self.low else float("-inf")
        high = self.high(moment.record) if self.high else float("inf")
        if event or moment.until == moment.start:
            return low <= moment.start < high
        return moment.until > low and moment.start < high


class Sentence:
    """What may never be true: a claim, with others that must be true with it, moments and a least length.

    `once`: claims that must have been true before or now; `not_yet`: claims that may not have been.
    """

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.also: list[Claim] = []
        self.unless: list[Claim] = []
        self.once: list[Claim] = []
        self.not_yet: list[Claim] = []
        self.windows: list[Window] = []
        self.longer_than: int | None = None
        self.breaches: list[str] = []
        self._happened: set[int] = set()
        self._since: int | None = None

    @property
    def parts(self) -> tuple[list[Claim] | list[Window], ...]:
        """The lists of what narrows it down."""
        return (self.also, self.unless, self.once, self.not_yet, self.windows)

    @property
    def _lasting(self) -> bool:
        """Whether it must not be asked within an instant."""
        parts = (self.claim, *self.also, *self.unless)
        return any(part.rest for part in parts) or bool(self.once or self.not_yet) or self.longer_than is not None

    @property
    def fresh(self) -> bool:
        """Whether it is asked before the first pass of an instant."""
        return self.claim.fresh

    def see(self, moment: Moment) -> None:
        """Judge a moment; a breach is remembered with its time."""
        if not moment.settled and self._lasting:
            return
        for part in (*self.once, *self.not_yet):
            if part.test(moment):
                self._happened.add(id(part))
        holds = self._holds(moment)
        if self.longer_than is None:
            if holds:
                self._breach(moment.start)
            return
        self._since = (moment.start if self._since is None else self._since) if holds else None
        if self._since is not None and moment.until - self._since > self.longer_than:
            self._breach(self._since)

    def _holds(self, moment: Moment) -> bool:
        event = self.claim.event
        return (
            all(window.reaches(moment, event) for window in self.windows)
            and all(id(part) in self._happened for part in self.once)
            and not any(id(part) in self._happened for part in self.not_yet)
            and self.claim.test(moment)
            and all(part.test(moment) for part in self.also)
            and not any(part.test(moment) for part in self.unless)
        )

    def _breach(self, at: int) -> None:
        self.breaches.append(f"at {clock(at)}")

    def finish(self, record: Record) -> None:
        """The scene is over."""


class LateStart(Sentence):
    """A smaller workload starts within a window, and its limit does not end before another one starts."""

    def __init__(self, small: Callable[[Moment, str], bool], large: str, window: Window, spared: bool) -> None:
        super().__init__(Claim(lambda _: False))
        self.small = small
        self.large = large
        self.window = window
        self.spared = spared
        self._seen: list[tuple[int, str, int | None]] = []

    def see(self, moment: Moment) -> None:
        """Remember who started in the window."""
        if not moment.settled or not self.window.reaches(moment, event=True):
            return
        for name, _ in moment.begun(moment.world.specs):
            if name != self.large and self.small(moment, name):
                limit = moment.world.specs[name].limit
                self._seen.append((moment.start, name, None if limit is None else moment.start + limit))

    def finish(self, record: Record) -> None:
        """Judge them by when the large one really started."""
        start = record.start_of(self.large)
        for at, name, ends in self._seen:
            if not (self.spared and ends is not None and start is not None and ends <= start):
                self.breaches.append(f"{name} at {clock(at)}")


def first_breaches(sentences: Sequence[tuple[str, Sentence]]) -> list[str]:
    """A line for each sentence that was true at some moment."""
    return [f"never: {text!r}, but true {each.breaches[0]}" for text, each in sentences if each.breaches]
