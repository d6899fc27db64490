"""Whose turn it is: projects by share down the tree, and inside a project its lines in order."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from allmende.engine.line import Entry, Line
from allmende.engine.tree import Branch, Tree


class Turn:
    """The lines of one project that are still to be considered in this pass.

    `deferred`: lines whose head would borrow, kept for the second round. `blocked`: nodes that nothing later may
    use, in a strict project. `parked`: this project waits for the second round. `seen`: how much had
    been taken when it was last looked through.
    """

    __slots__ = ("blocked", "branch", "deferred", "heap", "parked", "seen")

    def __init__(self, branch: Branch, lines: list[Line]) -> None:
        self.branch = branch
        self.heap: list[tuple[Entry, int, Line]] = [(line.entries[0], 0, line) for line in lines]
        heapify(self.heap)
        self.deferred: list[tuple[Entry, int, Line]] = []
        self.blocked = 0
        self.parked = False
        self.seen = -1

    def keep(self, entries: list[tuple[Entry, int, Line]]) -> None:
        """Go on with these alone."""
        self.heap = entries
        heapify(self.heap)

    def next(self) -> tuple[Entry, int, Line]:
        """The entry in front, taken out; its line returns with `go_on`."""
        return heappop(self.heap)

    def go_on(self, at: int, line: Line) -> None:
        """The line's next entry may be considered."""
        if at + 1 < len(line.entries):
            heappush(self.heap, (line.entries[at + 1], at + 1, line))

    def second_round(self) -> None:
        """Everything that was put off comes back."""
        self.heap += self.deferred
        self.deferred = []
        self.parked = False
        self.seen = -1
        heapify(self.heap)


class Turns:
    """Picks the next project: at each level of the tree the one that is due by `Branch.key`.

    A project's lines are only put together (`make`) when it is picked: most often others have taken the room by then.
    """

    def __init__(self, tree: Tree, branches: list[Branch], make: Callable[[Branch], Turn | None]) -> None:
        self.tree = tree
        self.turns: dict[Branch, Turn] = {}
        self._make = make
        self._alive: dict[Branch, int] = {}
        self._due = set(branches)
        for branch in branches:
            self._count(branch, 1)

    def _count(self, branch: Branch, by: int) -> None:
        for step in branch.path:
            self._alive[step] = self._alive.get(step, 0) + by

    def each(self, act: Callable[[Turn], None]) -> None:
        """Let `act` consider one entry of the project that is due, until none has any left or all are parked."""
        alive, due = self._alive, self._due
        while due:
            node = self.tree.root
            while node not in due:
                waiting = [child for child in node.children if alive.get(child, 0) > 0]
                node = waiting[0] if len(waiting) == 1 else min(waiting, key=Branch.key)
            turn = self.turns.get(node)
            if turn is None:
                turn = self._make(node)
                if turn is not None:
                    self.turns[node] = turn
            if turn is not None and turn.heap:
                act(turn)
            if turn is None or not turn.heap or turn.parked:
                due.discard(node)
                self._count(node, -1)

    def again(self) -> None:
        """Begin the second round."""
        for branch, turn in self.turns.items():
            turn.second_round()
            if turn.heap:
                self._due.add(branch)
                self._count(branch, 1)
