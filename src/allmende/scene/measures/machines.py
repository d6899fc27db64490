"""Figures of machines: what is free, in use, shared."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from allmende.model.cluster import Node
from allmende.model.request import Ask
from allmende.model.units import GPU
from allmende.scene import view
from allmende.scene.measures.played import Build, Measure, Played, fraction, plain
from allmende.scene.value import Scene


def _free_on(scene: Scene, name: str) -> Measure | None:
    def measure(played: Played) -> Fraction:
        node = played.state.nodes.get(name)
        return Fraction(view.idle_on(played.state, node) if node else 0, GPU)

    return measure if any(node.name == name for node in scene.nodes) else None


def _asks_on(played: Played, name: str) -> list[Ask]:
    """What the pods on a node ask for, the leaving ones too."""
    state = played.state
    found = [s.workload.roles[p.role].ask for s in state.standings.values() for p in s.pods if p.node == name]
    return found + [leaving.ask for leaving in state.leaving.values() if leaving.pod.node == name]


def _on_node(test: Callable[[Played, Node], Fraction | int | None]) -> Callable[[Scene, str], Measure | None]:
    """A measure of one node; None where the node states no bound."""

    def build(scene: Scene, name: str) -> Measure | None:
        def measure(played: Played) -> Fraction | None:
            node = played.state.nodes.get(name)
            return None if node is None else fraction(test(played, node))

        return measure if any(node.name == name for node in scene.nodes) else None

    return build


def _cpu_left(played: Played, node: Node) -> Fraction | None:
    used = sum(ask.cpu for ask in _asks_on(played, node.name))
    return None if node.cpu is None else Fraction(max(0, node.cpu - used), 1000)


def _ram_left(played: Played, node: Node) -> Fraction | None:
    used = sum(ask.ram for ask in _asks_on(played, node.name))
    return None if node.ram is None else Fraction(max(0, node.ram - used), 2**30)


def _places_left(played: Played, node: Node) -> int | None:
    return None if node.max_pods is None else max(0, node.max_pods - len(_asks_on(played, node.name)))


_cpus_free, _memory_free, _pod_slots_free = _on_node(_cpu_left), _on_node(_ram_left), _on_node(_places_left)
_slots_free_on = _on_node(lambda played, node: view.idle_on(played.state, node) * node.slots // GPU)


def _slots(played: Played) -> int:
    return sum(node.slots * len(node.devices) for node in played.state.nodes.values())


def _slots_used(played: Played) -> int:
    nodes = played.state.nodes
    parts = (
        part.units * nodes[pod.node].slots // GPU
        for pod in view.present_pods(played.state)
        for part in pod.slices
        if pod.node in nodes
    )
    return sum(parts)


def _in_use(played: Played) -> int:
    return len([units for units in view.held_by_device(played.state).values() if units])


TABLE: list[tuple[str, Build]] = [
    (r"free_on_(.+)", _free_on),
    (r"gpus_in_use|gpus_allocated", plain(_in_use)),
    (r"most_shares_on_one_gpu", plain(lambda played: max(view.pods_by_device(played.state).values(), default=0))),
    (r"free(?:_gpus)?|gpus_free", plain(lambda played: Fraction(view.idle(played.state), GPU))),
    (r"slots", plain(_slots)),
    (r"slots_used", plain(_slots_used)),
    (r"slots_free", plain(lambda played: _slots(played) - _slots_used(played))),
    (
        r"physical_gpus|cluster_gpus_total",
        plain(lambda played: sum(len(n.devices) for n in played.state.nodes.values())),
    ),
    (r"gpus_charged", plain(lambda played: Fraction(view.units_of(view.present_pods(played.state)), GPU))),
    (r"cpus_free_on_(.+)", _cpus_free),
    (r"(?:mem|memory)_gib_free_on_(.+)", _memory_free),
    (r"pod_slots_free_on_(.+)", _pod_slots_free),
    (r"slots_free_on_(.+)", _slots_free_on),
]
