"""What earlier passes learnt: shapes that fit nowhere, claims without an answer. It saves work and changes no decision.

Learnt while tentative work stood, a finding holds only when the decisions of that pass have been applied; until then it
is kept aside, and thrown away where the next pass finds that they were not.
"""

from __future__ import annotations

from collections.abc import Mapping

from allmende.engine.mask import Masks, bits
from allmende.engine.room import slots
from allmende.engine.shape import Shape
from allmende.engine.tree import Branch

Claim = tuple[Branch, Shape, int]
"""(project, shape, priority)"""


class Memory:
    """Findings of earlier passes, and those of the last one that wait for its decisions.

    `applied` counts decisions applied since the last pass. A hopeless claim is kept with its project's change count,
    the nodes on which more room could alter it (0: only somebody leaving could), and a sign of who could give.
    """

    __slots__ = ("_hopeless", "_hopeless_new", "_unfit", "_unfit_new", "_waits_for", "applied")

    def __init__(self) -> None:
        self.applied = 0
        self._waits_for = 0
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._unfit: dict[Shape, int] = {}
        self._unfit_new: dict[Shape, int] = {}
        self._hopeless: dict[Claim, tuple[int, int, object]] = {}
        self._hopeless_new: dict[Claim, tuple[int, int, object]] = {}

    def forget_claims(self) -> None:
        """Somebody leaves whom no claim could ask: any claim may have an answer now."""
        self._hopeless, self._hopeless_new = {}, {}

    def await_decisions(self, count: int) -> None:
        """A pass is over; what it learnt holds once so many decisions have been applied."""
        self._waits_for = count
        self.applied = 0

    def refresh(self, masks: Masks) -> None:
        """A pass begins: take over or throw away what the last one learnt, and forget what more room may have
        changed."""
        if self.applied == self._waits_for:
            self._unfit.update(self._unfit_new)
            self._hopeless.update(self._hopeless_new)
        self._unfit_new, self._hopeless_new = {}, {}
        if not masks.grown:
            return
        for claim, (_, nodes, _) in list(self._hopeless.items()):
            if nodes & masks.grown:
                del self._hopeless[claim]
        rooms = [masks.rooms[pos] for pos in bits(masks.grown)] if self._unfit else []
        for shape, missing in list(self._unfit.items()):
            ask = shape.single
            for room in rooms if ask is not None else ():
                if room.open and missing > 0 and ask is not None:
                    missing -= slots(room, ask, missing)
            if missing <= 0 or ask is None:
                del self._unfit[shape]
            else:
                self._unfit[shape] = missing

    def unfit(self, shape: Shape, missing: int) -> None:
        """The shape fits nowhere now: so many of its pods found no place."""
        self._unfit_new[shape] = missing

    @property
    def known_unfit(self) -> Mapping[Shape, int]:
        """The shapes known to fit nowhere."""
        return self._unfit

    def hopeless(self, claim: Claim, nodes: int, whose: object) -> None:
        """Nothing could be taken back for this claim."""
        self._hopeless_new[claim] = (claim[0].stamp, nodes, whose)

    def is_hopeless(self, claim: Claim, whose: object, leaving: bool) -> bool:
        """Whether the claim is known to have no answer, and nothing that could give one has changed. Within a pass
        claims only get harder, so what it learns holds in it at once."""
        if claim in self._hopeless_new:
            return True
        found = self._hopeless.get(claim)
        if found is None:
            return False
        stamp, nodes, sign = found
        if stamp == claim[0].stamp and sign == whose and (nodes or not leaving):
            return True
        del self._hopeless[claim]
        return False
