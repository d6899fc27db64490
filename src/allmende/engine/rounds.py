"""Steps 3 to 5 of a pass: reservations, then the two rounds over the projects' queues."""

from __future__ import annotations

from allmende.engine import admit
from allmende.engine.backfill import reserve_for
from allmende.engine.consider import Considerations, Verdict
from allmende.engine.hope import Hope
from allmende.engine.line import Entry, Line, Queue
from allmende.engine.tree import Branch
from allmende.engine.turn import Turn, Turns
from allmende.engine.work import Pass
from allmende.model.standing import Standing


class Rounds:
    """Who is considered, in which order."""

    def __init__(self, work: Pass, hope: Hope, judge: Considerations) -> None:
        self.work = work
        self.hope = hope
        self.judge = judge

    def reserve(self) -> None:
        """Those who waited too long go first; where they cannot start, what they will need is reserved."""
        wait = self.work.state.policy.reserve_after
        if wait is None:
            return
        patient: list[tuple[Entry, Branch, Line]] = []
        for branch, queue in self.work.index.queues.items():
            for line in queue.lines.values():
                for entry in line.entries:
                    if entry[1] + wait > self.work.now:
                        self.work.wakes.append(entry[1] + wait)
                    elif not line.grows and not admit.on_hold(branch):
                        patient.append((entry, branch, line))
        patient.sort(key=lambda item: (item[0], item[1].name))
        for entry, branch, line in patient:
            if len(self.work.reservations) >= self.work.state.policy.reservations:
                break
            if self.judge.consider(branch, line, entry) is not Verdict.MOVED and not self.work.holds_room(entry[2]):
                self._reserve(branch, line, self.work.state.standings[entry[2]])

    def _reserve(self, branch: Branch, line: Line, standing: Standing) -> None:
        """Room is only kept for who could have it: neither a cap nor the day's limit stands in its way."""
        work = self.work
        need = work.demand(line.shape, standing.workload.project)
        models = admit.models_to_try(work.index, branch, line.shape, standing.workload.project)
        if not need.units or all(admit.over_cap(branch, need, model) is not None for model in models):
            return
        if admit.over_daily(work.state, branch, work.now) is not None:
            return
        made = reserve_for(work.state, work.draft, standing, line.shape, work.now, work.busy)
        if made is None:
            return
        work.reservations.append(made)
        work.look_again()
        if made.at is not None and made.at > work.now:
            work.wakes.append(made.at)

    def run(self) -> None:
        """Inside the guarantee first, then everybody."""
        index = self.work.index
        index.memory.refresh(index.masks)
        due = [branch for branch, queue in index.queues.items() if self._may_move(branch, queue)]
        turns = Turns(index.tree, due, lambda branch: self._turn(branch, index.queues[branch]))
        turns.each(self._first_round)
        turns.again()
        turns.each(self._second_round)

    def _may_move(self, branch: Branch, queue: Queue) -> bool:
        """A glance: a node has room for some size that waits, or something might be taken back."""
        if any(self.work.is_live(size) for size in queue.by_size):
            return True
        return self.hope.at_a_glance(branch, max(queue.by_priority))

    def _turn(self, branch: Branch, queue: Queue) -> Turn | None:
        """The lines of a project that could move: pods of a size some node has, or hope of taking back."""
        if admit.on_hold(branch):
            return None
        if branch.project.strict:
            return Turn(branch, list(queue.lines.values()))
        unfit = self.work.index.memory.known_unfit
        lines: dict[Line, None] = {}
        for size, group in queue.by_size.items():
            if self.work.is_live(size):
                lines.update([(line, None) for line in group if line.shape not in unfit])
        if self.work.state.policy.evictions and len(lines) < len(queue.lines):
            lowest = min(branch.priorities, default=None)
            others = self.hope.others(branch)[0]
            for priority, group in queue.by_priority.items():
                if others or self.work.hunt.leaving or (lowest is not None and priority > lowest):
                    self._add_hopeful(branch, priority, group, lines)
        return Turn(branch, list(lines)) if lines else None

    def _add_hopeful(self, branch: Branch, priority: int, group: dict[Line, None], lines: dict[Line, None]) -> None:
        for line in group:
            if line in lines or not self.hope.sums(branch, line, priority):
                continue
            if line.grows or not self.hope.known_hopeless((branch, line.shape, priority)):
                lines[line] = None

    def _first_round(self, turn: Turn) -> None:
        front = self._front(turn)
        if front is None:
            return
        entry, at, line = front
        if not self.judge.inside(turn.branch, line.shape, entry[2]):
            turn.deferred.append((entry, at, line))
            turn.parked = turn.branch.project.strict or self.judge.fits_now(line, entry)
            return
        self._act(turn, entry, at, line)

    def _second_round(self, turn: Turn) -> None:
        front = self._front(turn)
        if front is not None:
            self._act(turn, *front)

    def _front(self, turn: Turn) -> tuple[Entry, int, Line] | None:
        """The first entry that could still move; lines whose pods no node could take any more, and which have no hope
        of taking back, are dropped on the way."""
        if turn.branch.project.strict:
            return turn.next()
        if turn.seen != self.work.version:
            turn.seen = self.work.version
            self._purge(turn)
        while turn.heap:
            entry, at, line = turn.next()
            if line.shape not in self.work.unfit or self.hope.serves(turn.branch, line, entry):
                return entry, at, line
        return None

    def _purge(self, turn: Turn) -> None:
        """Drop what cannot move any more since room was taken."""
        live, hope, branch = self.work.is_live, self.hope, turn.branch
        dead = {size for size in {line.shape.size for _, _, line in turn.heap} if not live(size)}
        if not dead:
            return
        most = -min(entry[0] for entry, _, _ in turn.heap)
        if hope.anybody(branch, most):
            turn.keep([e for e in turn.heap if e[2].shape.size not in dead or hope.serves(branch, e[2], e[0])])
        else:
            turn.keep([e for e in turn.heap if e[2].shape.size not in dead])

    def _act(self, turn: Turn, entry: Entry, at: int, line: Line) -> None:
        self.work.barred = turn.blocked  # in a strict project nobody uses what those in front could
        verdict = self.judge.consider(turn.branch, line, entry)
        self.work.barred = 0
        if verdict is not Verdict.REFUSED:
            turn.go_on(at, line)
        if turn.branch.project.strict and verdict in (Verdict.REFUSED, Verdict.ALONE):
            turn.blocked |= self._may_use(line, entry)

    def _may_use(self, line: Line, entry: Entry) -> int:
        """Nodes that a strict queue keeps for whoever is ahead."""
        found = 0
        project = self.work.state.standings[entry[2]].workload.project
        for (ask, where), pods in zip(line.shape.roles, line.shape.wanted, strict=True):
            if pods:
                nodes = self.work.index.masks.allowed(where, project)
                found |= nodes & ~self.work.index.masks.bare if ask.on_gpu else nodes
        return found
