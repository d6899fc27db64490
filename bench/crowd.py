"""Crowded clusters for the benches: a tree of projects, users, running work and a queue of mixed requests.

Everything is built through events and the engine's own decisions, from a seed; the mixes are stated here.
"""

from __future__ import annotations

import random
from fractions import Fraction

from allmende.engine.apply import apply
from allmende.engine.plan import Plan, plan
from allmende.engine.state import State
from allmende.model.cluster import Device, Node
from allmende.model.decision import Evict, Start, Stop
from allmende.model.event import Event, NodeSet, PodGone, ProjectSet, Submitted, Up
from allmende.model.request import Ask, Where
from allmende.model.tenancy import Project
from allmende.model.units import GPU, SECOND
from allmende.model.workload import Role, Workload

GPUS_PER_NODE = 8
MIB = 81_559
MIX = (
    (1, 1, 46),
    (1, 2, 12),
    (1, 4, 10),
    (1, 8, 14),
    (2, 8, 7),
    (4, 8, 4),
    (8, 8, 2),
    (16, 8, 1),
    (4, 1, 2),
    (2, 4, 2),
)
"""(pods, GPUs per pod, parts of a hundred): mostly single GPUs, as in Philly, with gangs up to 128 GPUs."""


PRIORITIES = (0,) * 19 + (10,)
"""One request in twenty is more important to its project than the others."""


class Crowd:
    """A state, its random stream and its clock."""

    def __init__(self, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.state = State()
        self.now = 0
        self.count = 0
        self.projects: list[str] = []

    def tell(self, event: Event) -> None:
        """Apply one event."""
        apply(self.state, event)

    def nodes(self, count: int, models: tuple[str, ...] = ("H100",)) -> None:
        """So many nodes of eight GPUs, with CPUs and memory stated."""
        devices = tuple(Device(index, MIB) for index in range(GPUS_PER_NODE))
        for index in range(count):
            model = models[index % len(models)]
            labels = (("rack", f"r{index // 16}"),)
            node = Node(f"n{index}", devices, model, cpu=192_000, ram=2 << 40, max_pods=110, labels=labels)
            self.tell(NodeSet(0, node))

    def tree(self, areas: int, projects: int, gpus: int, fill: Fraction = Fraction(1)) -> None:
        """A tree of three levels: one organisation, areas, projects; guarantees add up to `fill` of the GPUs."""
        self.tell(ProjectSet(0, Project("org", guarantee=gpus * GPU)))
        share = gpus * fill / projects
        for area in range(areas):
            mine = [p for p in range(projects) if p % areas == area]
            total = sum(int(share * (1 + Fraction(p % 5 - 2, 10))) for p in mine)
            self.tell(ProjectSet(0, Project(f"area{area}", "org", total * GPU)))
            for p in mine:
                own = int(share * (1 + Fraction(p % 5 - 2, 10)))
                self.tell(ProjectSet(0, Project(f"p{p}", f"area{area}", own * GPU, weight=Fraction(1 + p % 3))))
                self.projects.append(f"p{p}")

    def workload(
        self,
        project: str,
        pods: int,
        gpus: int,
        *,
        cpu: int = 0,
        priority: int = 0,
        user: str = "",
        where: Where | None = None,
    ) -> Workload:
        """A batch workload of equal pods."""
        self.count += 1
        ask = Ask(whole=gpus, cpu=cpu, ram=gpus * (64 << 30))
        role = Role("main", pods, ask, where or Where(), pods)
        return Workload(f"w{self.count:06d}", project, (role,), pods, user=user, priority=priority, limit=None)

    def mixed(self, shapes: int, models: tuple[str, ...]) -> Workload:
        """One request of the mix; `shapes` widens it by CPU per GPU and model wishes (1 = GPU counts alone)."""
        draw = self.random
        pods, gpus, _ = draw.choices(MIX, weights=[part for *_, part in MIX])[0]
        project = draw.choice(self.projects)
        user = f"u{draw.randrange(150)}"
        cpu = gpus * 1000 * (1 + draw.randrange(max(1, shapes // 20))) if shapes > 1 else gpus * 4000
        wish = draw.randrange(3) if shapes > 1 and len(models) > 1 else 0
        where = Where(models=(models[wish % len(models)],)) if wish else Where()
        return self.workload(
            project,
            pods,
            gpus,
            cpu=min(cpu, gpus * 24_000),
            user=user,
            where=where,
            priority=draw.choice(PRIORITIES),
        )

    def submit(self, workload: Workload) -> None:
        """Put it in the queue, a moment later than the one before."""
        self.now += SECOND // 10
        self.tell(Submitted(self.now, workload))

    def settle(self, rounds: int = 20) -> list[Plan]:
        """Plan and answer until nothing moves."""
        made = []
        for _ in range(rounds):
            decided = plan(self.state, self.now)
            made.append(decided)
            if not decided.decisions:
                break
            self.follow(decided)
        return made

    def follow(self, decided: Plan) -> None:
        """Apply decisions and what a world with no grace answers at once."""
        for decision in decided.decisions:
            apply(self.state, decision)
        for decision in decided.decisions:
            match decision:
                case Start(workload=name):
                    self.tell(Up(self.now, name))
                case Evict(pods=pods):
                    for pod in pods:
                        self.tell(PodGone(self.now, pod))
                case Stop(workload=name):
                    for pod in [p for p in self.state.leaving if p[0] == name]:
                        self.tell(PodGone(self.now, pod))
                case _:
                    pass
