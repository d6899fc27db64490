"""What the processes of one attempt are told about each other: ranks, sizes, the address to meet at, their GPUs."""

import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing

from allmende.model.cluster import Node, Pod, PodId
from allmende.model.workload import Workload

MASTER = "127.0.0.1"
"""Where all pods of one machine meet."""


class World:
    """One attempt of a workload: its pods in the order of their ranks, and the port they meet at.

    Ranks are dense, by role, then by rank inside the role; pods that come later are ranked after those that came
    before, for a running pod cannot be told another rank.
    """

    def __init__(self) -> None:
        self.port = _free_port()
        self.ranks: dict[PodId, tuple[int, int]] = {}
        """Each pod's rank among all, and among those on the same node."""
        self._on_node: Counter[str] = Counter()

    def join(self, pods: Iterable[Pod]) -> None:
        """Count these pods in."""
        for pod in sorted(pods, key=lambda pod: pod.id):
            if pod.id not in self.ranks:
                self.ranks[pod.id] = (len(self.ranks), self._on_node[pod.node])
                self._on_node[pod.node] += 1


def environment(pod: Pod, workload: Workload, world: World, ordinals: Mapping[tuple[str, int], int]) -> dict[str, str]:
    """The variables that a pod's process gets besides those of its parent.

    `ordinals`: the machine's number of each (node, device). Without a GPU CUDA_VISIBLE_DEVICES is empty, which
    hides them all.
    """
    rank, local = world.ranks[pod.id]
    devices = sorted(ordinals[pod.node, part.device] for part in pod.slices)
    return {
        "ALLMENDE_JOB": workload.id,
        "ALLMENDE_ATTEMPT": str(pod.attempt),
        "ALLMENDE_ROLE": workload.roles[pod.role].name,
        "ALLMENDE_RANK": str(rank),
        "RANK": str(rank),
        "WORLD_SIZE": str(len(world.ranks)),
        "LOCAL_RANK": str(local),
        "MASTER_ADDR": MASTER,
        "MASTER_PORT": str(world.port),
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, devices)),
    }


def number_devices(nodes: Iterable[Node]) -> dict[tuple[str, int], int]:
    """Each (node, device) with its number on the machine, in the order of the nodes."""
    places = [(node.name, device.index) for node in nodes for device in node.devices]
    return {place: number for number, place in enumerate(places)}


def _free_port() -> int:
    """A port that nobody listens on now; the first pod of the attempt is expected to take it at once."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.bind((MASTER, 0))
        port: int = probe.getsockname()[1]
        return port
