"""The naive meaning of what must be true after every step, read from the facts alone.

- **Gangs are whole.** A workload holds no pod at all, or at least `minimum` pods and at least `least` of every role,
  where a pod that came to a good end is not missed. Held places obey the same together with what it has.
- **Nothing is given twice.** On every device, what runs and what is leaving takes at most one GPU, and so does what
  runs and what is held; likewise CPU, memory and pod slots of every node. A pod is in one place only.
- **Places are legal when they are given.** No role gets more pods than are wanted of it. The node is open to the
  project, of an allowed model, with the labels, with no taint that is not tolerated; the slices are what the pod asked;
  all pods of the workload are in one domain of its level; no project above it gets over its cap by it.
- **Reclaim spares guarantees.** After an eviction for somebody's guarantee no project on the victim's path, below what
  it has in common with the claimant, is below the smaller of its guarantee and its use before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from allmende.model.cluster import Node, Pod
from allmende.model.decision import Cause, Evict, Grow, Hold, Start
from allmende.model.request import Ask
from allmende.model.standing import Standing
from allmende.model.units import GPU
from tests.reference.place import Facts, is_open, least
from tests.reference.victims import Amounts, limits, lineage, of, path, use


def gangs_whole(facts: Facts, done: Counter[tuple[str, int]]) -> None:
    """No workload holds a part of a gang, and no places are held for one; `done`: good ends by workload and role."""
    for name, standing in facts.standings.items():
        for pods in (standing.pods, (*standing.pods, *facts.holds.get(name, ()))):
            if pods:
                count = Counter(pod.role for pod in pods)
                assert len(pods) >= standing.minimum, f"{name} has {len(pods)} of {standing.minimum} pods"
                for role, low in enumerate(least(standing)):
                    ended = done[name, role]
                    assert count[role] >= low - ended, f"{name} has {count[role]} of {low} pods of role {role}"


def nothing_twice(facts: Facts) -> None:
    """No device and no node gives more than it has, to what runs and leaves, or to what runs and is promised."""
    running: list[tuple[Pod, Ask]] = []
    held: list[tuple[Pod, Ask]] = []
    for name, standing in facts.standings.items():
        roles = standing.workload.roles
        running += [(pod, roles[pod.role].ask) for pod in standing.pods]
        held += [(pod, roles[pod.role].ask) for pod in facts.holds.get(name, ())]
    leaving = [(each.pod, each.ask) for each in facts.leaving.values()]
    ids = Counter(pod.id for pod, _ in running + leaving)
    assert not ids or max(ids.values()) == 1, f"in two places: {ids.most_common(1)}"
    for node in facts.nodes.values():
        _fits(node, [(pod, ask) for pod, ask in running + leaving if pod.node == node.name], "runs and leaves")
        _fits(node, [(pod, ask) for pod, ask in running + held if pod.node == node.name], "runs and is held")
    for pod, _ in running + leaving + held:
        assert pod.node in facts.nodes, f"{pod.id} is on {pod.node}, which is gone"


def _fits(node: Node, pods: list[tuple[Pod, Ask]], what: str) -> None:
    taken: Counter[int] = Counter()
    for pod, _ in pods:
        for part in pod.slices:
            taken[part.device] += part.units
    assert set(taken) <= {device.index for device in node.devices}, f"no such device on {node.name}"
    over = {index: units for index, units in taken.items() if units > GPU}
    assert not over, f"{node.name}: {what} more than a GPU: {over}"
    for name, have, need in (
        ("CPU", node.cpu, sum(ask.cpu for _, ask in pods)),
        ("memory", node.ram, sum(ask.ram for _, ask in pods)),
        ("pods", node.max_pods, len(pods)),
    ):
        assert have is None or need <= have, f"{node.name}: {what} {need} of {have} {name}"


def places_legal(facts: Facts, decision: Start | Grow | Hold) -> None:
    """Before a decision is applied: whether its pods may stand where it puts them."""
    standing = facts.standings[decision.workload]
    count = Counter(pod.role for pod in (*standing.pods, *decision.pods))
    for number, wanted in enumerate(standing.wanted):
        gets = any(pod.role == number for pod in decision.pods)
        assert not gets or count[number] <= wanted, (
            f"{decision.workload} gets {count[number]} of {wanted} of role {number}"
        )
    for pod in decision.pods:
        node, role = facts.nodes[pod.node], standing.workload.roles[pod.role]
        labels = dict(node.labels)
        assert is_open(node, standing.workload.project), f"{node.name} is not open"
        assert not role.where.models or node.model in role.where.models, f"{pod.id} on model {node.model}"
        assert all(labels.get(key) == value for key, value in role.where.select), f"{pod.id} on labels {labels}"
        assert all(taint in role.where.tolerates for taint in node.taints), f"{pod.id} on taints {node.taints}"
        parts = [part.units for part in pod.slices]
        assert parts == ([GPU] * role.ask.whole or [role.ask.share] * bool(role.ask.share)), f"{pod.id} got {parts}"
        lost = {device.index for device in node.devices if not device.healthy}
        assert not lost & {part.device for part in pod.slices}, f"{pod.id} is on a lost GPU"
    _one_domain(facts, standing, decision)


def _one_domain(facts: Facts, standing: Standing, decision: Start | Grow | Hold) -> None:
    level = standing.workload.same
    kept = standing.pods if isinstance(decision, Grow | Hold) else ()
    found: set[tuple[str | None, ...]] = set()
    for pod in (*kept, *decision.pods):
        labels = dict(facts.nodes[pod.node].labels)
        above = facts.levels[: facts.levels.index(level) + 1] if level in facts.levels else ()
        found.add((pod.node,) if level == "node" else tuple(labels.get(key) for key in above))
    assert len(found) <= 1, f"{decision.workload} spans {sorted(map(str, found))}"


def caps_kept(facts: Facts, decision: Start | Grow | Hold) -> None:
    """After a decision was applied: no project that gained by it is above its cap."""
    gained = {facts.nodes[pod.node].model for pod in decision.pods if pod.units}
    used = use(facts)
    for name in lineage(facts, facts.standings[decision.workload].workload.project) if gained else ():
        project = facts.projects[name]
        caps = [(None, project.cap), *((model, project.cap_by_model.get(model)) for model in sorted(gained))]
        for model, cap in caps:
            assert cap is None or of(used, name, model) <= cap, f"{name} uses {of(used, name, model)} of {cap} {model}"


def spared(facts: Facts, before: Amounts, decision: Evict, victim: str, claimant: str, models: Iterable[str]) -> None:
    """After an eviction was applied: whether guarantees on the victim's path still stand; `before` is the use then."""
    if decision.cause is not Cause.RECLAIM:
        return
    after = use(facts)
    for name in path(facts, victim, claimant):
        for model, guarantee in limits(facts.projects[name], models):
            floor = min(guarantee, of(before, name, model))
            assert of(after, name, model) >= floor, f"{name} has {of(after, name, model)} of {floor} ({model})"
