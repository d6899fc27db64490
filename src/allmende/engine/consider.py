"""One waiting request, considered once: it starts, room is claimed for it, or it is refused."""

from __future__ import annotations

from enum import Enum

from allmende.engine import admit
from allmende.engine.claim import Claims
from allmende.engine.line import Entry, Line
from allmende.engine.shape import Shape
from allmende.engine.tree import Branch
from allmende.engine.victim import UNBOUNDED
from allmende.engine.work import Pass
from allmende.model.decision import Hold
from allmende.model.standing import Standing


class Verdict(Enum):
    """What became of one consideration."""

    MOVED = "moved"  # started, grown, or room is held for it
    PASSED = "passed"  # this one is not to be considered now; its likes are
    ALONE = "alone"  # refused, for its own time limit perhaps; its likes may fit
    REFUSED = "refused"  # none of its line can


class Considerations:
    """Judges waiting requests one by one, equal ones once."""

    def __init__(self, work: Pass, claims: Claims) -> None:
        self.work = work
        self.claims = claims

    def consider(self, branch: Branch, line: Line, entry: Entry) -> Verdict:
        """Start it in free room; else take room back for it where it may."""
        name = entry[2]
        standing = self.work.state.standings[name]
        if self.work.refuses(name, standing):
            return Verdict.PASSED
        if line.grows and line.shape.elastic and standing.holds_together(standing.pods):
            return Verdict.PASSED
        workload, shape = standing.workload, line.shape
        need = self.work.demand(shape, workload.project)
        if self.work.gate_shut(branch, workload, need, standing):
            return Verdict.REFUSED
        models = admit.models_to_try(self.work.index, branch, shape, workload.project)
        live = self.work.is_live(shape.size)
        for model in models:
            if live and self._start(branch, line, standing, need, model):
                return Verdict.MOVED
        if not self.work.state.policy.evictions or (line.grows and line.shape.elastic):
            return Verdict.REFUSED
        if self.work.holds_room(name):
            return Verdict.PASSED
        for model in models:
            if self.claims.claim(branch, line, standing, need, model):
                return Verdict.MOVED
        return Verdict.ALONE if self.work.reservations or self.work.index.masks.windows else Verdict.REFUSED

    def _start(self, branch: Branch, line: Line, standing: Standing, need: admit.Demand, model: str) -> bool:
        workload, shape = standing.workload, line.shape
        if admit.over_cap(branch, need, model) is not None:
            return False
        if not workload.borrow:
            use, guarantee = branch.against(model)
            if use + need.units > guarantee:
                return False
        ban = self.work.ban(standing) | self.work.not_model(model)
        lifted = [r for r in self.work.reservations if r.allows(workload, self.work.now)]
        memo = (shape, ban, sum(1 << i for i, r in enumerate(self.work.reservations) if r in lifted))
        if not line.grows and memo in self.work.nofit:
            return False
        for reservation in lifted:
            reservation.lift(self.work.draft)
        pods = self.work.place(shape, standing, ban, lambda: self.work.more(branch, workload, model))
        for reservation in lifted:
            reservation.put_back(self.work.draft)
        if pods is None:
            if not line.grows:
                self.work.nofit.add(memo)
                self._note_unfit(shape, ban)
            return False
        self.work.give_up_hold(workload.id)
        self.work.began(branch, workload, shape, pods)
        more = self.claims.more(branch, standing, shape, pods, model)
        if more:
            self.claims.settle(more)
            self.work.made.append(Hold(self.work.now, workload.id, tuple(more)))
        return True

    def inside(self, branch: Branch, shape: Shape, name: str) -> bool:
        """Whether its project would stay within its guarantee, on some model, once its own lower priorities have
        gone."""
        workload = self.work.state.standings[name].workload
        need = self.work.demand(shape, workload.project)
        _, own = self.work.herd.takable(branch, UNBOUNDED, workload.priority, own=True)
        for model in admit.models_to_try(self.work.index, branch, shape, workload.project):
            use, guarantee = branch.against(model)
            if use - own + need.units <= guarantee:
                return True
        return False

    def fits_now(self, line: Line, entry: Entry) -> bool:
        """Whether a borrower could start right away, so that nothing of its project may overtake it."""
        standing = self.work.state.standings[entry[2]]
        if line.grows or self.work.refuses(entry[2], standing) or not self.work.is_live(line.shape.size):
            return False
        ban = self.work.ban(standing)
        memo = (line.shape, ban, 0)
        if self.work.reservations or memo in self.work.nofit:
            return False
        if self.work.fits.get(memo) == self.work.version:
            return True  # nothing was taken since it fitted
        mark = self.work.draft.mark
        if self.work.place(line.shape, standing, ban, None) is None:
            self.work.nofit.add(memo)
            self._note_unfit(line.shape, ban)
            return False
        self.work.draft.back(mark)
        self.work.fits[memo] = self.work.version
        return True

    def _note_unfit(self, shape: Shape, ban: int) -> None:
        """Remember a shape that fits nowhere, where that is true of everybody who asks for it."""
        work = self.work
        everybody = not ban and not work.reservations and not work.index.masks.aside
        if everybody and shape.single is not None and not shape.level:
            work.unfit.add(shape)
            work.index.memory.unfit(shape, work.missing)
