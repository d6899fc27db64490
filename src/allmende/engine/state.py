"""The state of a cluster: facts in dictionaries, and the Index derived from them."""

from __future__ import annotations

from allmende.engine.account import Account
from allmende.engine.index import Index
from allmende.model.cluster import Leaving, Node, Pod, PodId
from allmende.model.policy import Policy
from allmende.model.standing import Outcome, Standing
from allmende.model.tenancy import Project


class State:
    """Facts (frozen values) and their Index. Changed only by `apply`.

    `standings`: every workload that is not over. `outcomes`: those that are. `leaving`: pods told to go whose room is
    not free yet. `silent`: nodes that are not ready, since when. `accounts`: what projects used, where a daily limit
    or the order asks for it. `holds`: places kept for a workload while pods leave them. `now`: time of the last
    entry.
    """

    __slots__ = (
        "accounts",
        "holds",
        "index",
        "leaving",
        "levels",
        "nodes",
        "now",
        "outcomes",
        "policy",
        "projects",
        "silent",
        "standings",
    )

    def __init__(self) -> None:
        self.now = 0
        self.policy = Policy()
        self.levels: tuple[str, ...] = ()
        self.projects: dict[str, Project] = {}
        self.nodes: dict[str, Node] = {}
        self.standings: dict[str, Standing] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.leaving: dict[PodId, Leaving] = {}
        self.silent: dict[str, int] = {}
        self.holds: dict[str, tuple[Pod, ...]] = {}
        self.accounts: dict[str, Account] = {}
        self.index = Index()

    def fork(self) -> State:
        """A state of its own that starts from this one."""
        other = State()
        other.now = self.now
        other.policy = self.policy
        other.levels = self.levels
        other.projects = dict(self.projects)
        other.nodes = dict(self.nodes)
        other.standings = dict(self.standings)
        other.outcomes = dict(self.outcomes)
        other.leaving = dict(self.leaving)
        other.silent = dict(self.silent)
        other.holds = dict(self.holds)
        other.accounts = dict(self.accounts)
        other.index = self.index.fork()
        return other
