"""The naive meaning of a workload's surplus: the pods it can lose and still be what it is.

Walk the pods it holds from the last role to the first and within a role from the highest rank down. A pod is surplus
if, with it and all surplus pods found before it taken away, the workload keeps `minimum` pods in all, its role keeps
`least` pods, and it is not rank 0 of its role (the one that others look for). The walk fixes the set; any part of the
set may be taken.
"""

from __future__ import annotations

from allmende.model.cluster import Pod
from allmende.model.standing import Standing


def surplus(standing: Standing) -> tuple[Pod, ...]:
    """The surplus pods, in the order of the walk."""
    found: list[Pod] = []
    for pod in sorted(standing.pods, key=lambda pod: (-pod.role, -pod.rank)):
        kept = [other for other in standing.pods if other not in found and other != pod]
        of_role = [other for other in kept if other.role == pod.role]
        least = standing.workload.roles[pod.role].least
        if pod.rank > 0 and len(kept) >= standing.minimum and len(of_role) >= least:
            found.append(pod)
    return tuple(found)
