"""What a scene is: one frozen value, whichever layout it was written in. Times are microseconds, GPUs units."""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

from allmende.model.cluster import Node
from allmende.model.event import Checkpointed, LevelsSet, NodeGone
from allmende.model.policy import Policy
from allmende.model.tenancy import Project
from allmende.model.workload import Workload


class Running(Struct, frozen=True):
    """A workload that runs when the scene begins. `places`: pods per node; `devices`: which GPUs it holds there.

    `per_device`: pods per GPU index, for shared slots. `ends`: the moment it ends by itself (None: not).
    """

    workload: Workload
    places: tuple[tuple[str, int], ...]
    started: int
    ends: int | None = None
    devices: tuple[int, ...] = ()
    per_device: tuple[tuple[int, int], ...] = ()


class Submit(Struct, frozen=True, tag=True):
    """A workload is submitted; `runs`: how long it really runs (None: until something ends it)."""

    at: int
    workload: Workload
    runs: int | None = None


class End(Struct, frozen=True, tag=True):
    """A workload finishes, well or badly."""

    at: int
    workload: str
    ok: bool = True


class Cancel(Struct, frozen=True, tag=True):
    """Its owner removes it. `unreported`: no report of an eviction under way ever comes."""

    at: int
    workload: str
    unreported: bool = False


class SetNode(Struct, frozen=True, tag=True):
    """A node joins or changes. `reopen`: somebody has looked at it; `drained`: every pod on it is taken."""

    at: int
    node: Node
    reopen: bool = False
    drained: bool = False


class SetProject(Struct, frozen=True, tag=True):
    """A project is created or changed."""

    at: int
    project: Project


class Resize(Struct, frozen=True, tag=True):
    """Another number of pods is asked for, of a role by name ('' = the only one)."""

    at: int
    workload: str
    pods: int
    role: str = ""


class EndPods(Struct, frozen=True, tag=True):
    """So many pods of a workload come to their own end, the last ranks first."""

    at: int
    workload: str
    pods: int
    ok: bool = True


class Report(Struct, frozen=True, tag=True):
    """A report about one pod arrives: 'finished', 'gone' or 'lost'; the pod is the `pod`-th that the workload had."""

    at: int
    workload: str
    what: str
    pod: int = 0


class FailAtBind(Struct, frozen=True, tag=True):
    """The node goes bad between the next assignment of the workload there and its pods' start."""

    at: int
    workload: str
    node: str


class Restart(Struct, frozen=True, tag=True):
    """The scheduler loses its memory and rebuilds it from its log; `listed`: the order of the store's list."""

    at: int
    listed: tuple[str, ...] = ()


Step = (
    Submit
    | End
    | Cancel
    | SetNode
    | NodeGone
    | SetProject
    | LevelsSet
    | Resize
    | EndPods
    | Report
    | FailAtBind
    | Checkpointed
    | Restart
)


class Check(Struct, frozen=True):
    """What must hold at a moment; None: not asked. `running`: they run, and no other that was submitted by itself.

    `pending` and `growth_pending`: patterns that must all be found in the reason. `placement`: least and most pods
    per node, by workload or workload/role; the node 'any' = wherever. `on_gpus`: pods per GPU index.
    `usage` in units by project, `usage_added`: units more than when the scene began; `free`, `free_on`: idle GPUs in
    units, in all or by node.
    """

    at: int
    running: tuple[str, ...] | None = None
    pending: dict[str, tuple[str, ...]] = {}
    growth_pending: dict[str, tuple[str, ...]] = {}
    placement: dict[str, dict[str, tuple[int, int]]] = {}
    on_gpus: dict[str, dict[int, int]] = {}
    usage: dict[str, int] = {}
    usage_added: int | None = None
    free: int | None = None
    free_on: dict[str, int] = {}
    queue_positions: dict[str, int] = {}


class Happened(Struct, frozen=True):
    """Something must have been told about a workload or a node: patterns found together in one line of its story."""

    about: str
    has: tuple[str, ...]


class Written(Struct, frozen=True):
    """A sentence or a name of a figure, with the place it was written at."""

    text: str
    place: str


class Repeat(Struct, frozen=True):
    """Play the scene so often with the order of what is equal varied; the same must come out each time.

    `vary`: any of 'nodes', 'projects', 'running', 'events' (of one moment).
    """

    times: int
    vary: tuple[str, ...]


class Expect(Struct, frozen=True):
    """What must hold. `one_of`: alternatives at the end, exactly one of which holds.

    `evicted`: how often pods were taken from a workload, those not named never (None: not asked).
    `numbers`: figures at the end, equal within `tolerance`.
    """

    checks: tuple[Check, ...] = ()
    one_of: tuple[Check, ...] = ()
    evicted: dict[str, int] | None = None
    evicted_pods: dict[str, int] | None = None
    never: tuple[Written, ...] = ()
    numbers: tuple[tuple[Written, Fraction], ...] = ()
    tolerance: Fraction = Fraction(1, 100)
    events: tuple[Happened, ...] = ()
    warnings_at_setup: tuple[str, ...] | None = None
    warnings_at_change: tuple[str, ...] | None = None
    repeat: Repeat | None = None


class Scene(Struct, frozen=True):
    """A world, what happens in it and what must hold.

    `recreate`: owners submit an evicted workload anew. `zone`: the time zone of local days. `origin`: the moment that
    the file's 0 stands for. `bulk`: names of workloads that came by the dozen. `gaps`: what happens in the scene and no
    part of the product offers yet, by name: it cannot be judged. `unjudged`: expectations of which that is true.
    """

    name: str
    about: str = ""
    policy: Policy = Policy()
    recreate: bool = False
    levels: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = ()
    projects: tuple[Project, ...] = ()
    running: tuple[Running, ...] = ()
    steps: tuple[Step, ...] = ()
    expect: Expect = Expect()
    origin: int = 0
    zone: str = "UTC"
    bulk: frozenset[str] = frozenset()
    gaps: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()

    @property
    def workloads(self) -> dict[str, Workload]:
        """Every workload of the scene by name, in the order of its appearance."""
        found = {running.workload.id: running.workload for running in self.running}
        found.update((step.workload.id, step.workload) for step in self.steps if isinstance(step, Submit))
        return found

    @property
    def submitted(self) -> frozenset[str]:
        """Workloads that are submitted one by one within the scene."""
        names = {step.workload.id for step in self.steps if isinstance(step, Submit)}
        return frozenset(names) - self.bulk

    @property
    def end(self) -> int:
        """The last moment that matters: of the last step or check."""
        moments = [step.at for step in self.steps] + [check.at for check in self.expect.checks]
        return max(moments, default=self.origin)
