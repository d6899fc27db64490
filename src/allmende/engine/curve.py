"""On one node: the cheapest victims that make room for one pod, for two, for three ...

Where only whole GPUs are in the way this is an exact knapsack over the victims' GPUs; where CPU, memory, pod slots
or parts of devices are, an exact search over sets of victims in rising order of price, in counted steps.
"""

from __future__ import annotations

from heapq import heappop, heappush

from allmende.engine.claimant import Claimant
from allmende.engine.draft import Draft
from allmende.engine.room import HELD, RUN, Room, slots
from allmende.engine.victim import FREE, UNBOUNDED, Price, Victim, add, price
from allmende.model.request import Ask
from allmende.model.units import GPU

Offer = tuple[Price, tuple[Victim, ...]]
"""A price and the victims it buys."""

Group = tuple[list[Victim], Victim | None]
"""One workload's victims on a node: its surplus pods there, and (where it may be taken here) the whole of it."""

STEPS = 3000  # sets looked at on one node before the search there gives up


def groups(claimant: Claimant, room: Room, *, local: bool, without: frozenset[str] = frozenset()) -> list[Group]:
    """The workloads on a node that may give way. `local`: whole ones only if all their pods are on this node."""
    herd = claimant.herd
    found: dict[str, Group] = {}
    here = room.node.name
    for pod in room.pods.values():
        name = pod.workload
        if name in found or name in without or not herd.running(name):
            continue
        extra, whole = herd.of(name)
        if not claimant.may_take(whole.workload, whole.branch) or claimant.took(name):
            continue
        slack = UNBOUNDED if whole.branch is claimant.branch else claimant.slack(whole.branch)
        if slack <= 0:
            continue  # the project is not above its guarantee
        surplus = [victim for victim in extra if victim.pods[0].node == here and victim.units <= slack]
        all_here = whole.units <= slack and (not local or all(p.node == here for p in whole.pods))
        if surplus or all_here:
            found[name] = (surplus, whole if all_here else None)
    return [found[name] for name in sorted(found)]


def cheapest(
    claimant: Claimant, draft: Draft, room: Room, ask: Ask, most: int, given: list[Group]
) -> list[Offer | None]:
    """Offers for 0, 1 .. `most` pods of `ask` on the node (None = not to be had); each exact for itself."""
    have = slots(room, ask, most, later=True)
    offers: list[Offer | None] = [(FREE, ())] * (have + 1)
    if have >= most or not given:
        return offers + [None] * (most - have)
    if ask.whole and not ask.exclusive and _only_gpus(room, ask, most, given):
        return offers + _knapsack(room, ask, have, most, given)
    return offers + [_search(claimant, draft, room, ask, count, given) for count in range(have + 1, most + 1)]


def _only_gpus(room: Room, ask: Ask, most: int, given: list[Group]) -> bool:
    """Whether whole GPUs are all that can be in the way, and every victim frees whole devices."""
    if room.node.slots or room.alone[RUN]:
        return False
    if room.node.cpu is not None or room.node.ram is not None or room.node.max_pods is not None:
        cpu, ram, pods = room.bounds(later=True)
        if cpu < ask.cpu * most or ram < ask.ram * most or pods < most:
            return False
    return all(
        part.units == GPU and room.sound[part.device]
        for surplus, whole in given
        for pod in (whole.pods if whole is not None else [p for v in surplus for p in v.pods])
        if pod.node == room.node.name
        for part in pod.slices
    )


def _gpus_here(victim: Victim, room: Room) -> int:
    held = room.units[HELD]
    return sum(not held[part.device] for pod in victim.pods if pod.node == room.node.name for part in pod.slices)


def _knapsack(room: Room, ask: Ask, have: int, most: int, given: list[Group]) -> list[Offer | None]:
    run, _, held = room.units
    free = sum(1 for d in range(len(room.sound)) if room.sound[d] and not run[d] and not held[d])
    top = most * ask.whole - free
    best: list[Offer | None] = [(FREE, ())] + [None] * top  # by GPUs freed, those beyond `top` counted as `top`
    for surplus, whole in given:
        before = best
        for victim in surplus:
            best = _with(best, victim, _gpus_here(victim, room), top)
        if whole is not None:
            best = _cheaper(best, _only(before, whole, _gpus_here(whole, room), top))
    found: list[Offer | None] = []
    for count in range(have + 1, most + 1):
        enough = [offer for offer in best[count * ask.whole - free :] if offer is not None]
        found.append(min(enough, key=lambda offer: offer[0]) if enough else None)
    return found


def _with(best: list[Offer | None], victim: Victim, gpus: int, top: int) -> list[Offer | None]:
    return _cheaper(best, _only(best, victim, gpus, top)) if gpus else best


def _only(best: list[Offer | None], victim: Victim, gpus: int, top: int) -> list[Offer | None]:
    made: list[Offer | None] = [None] * (top + 1)
    if not gpus:
        return made
    for freed, offer in enumerate(best):
        if offer is None:
            continue
        to = min(top, freed + gpus)
        there = made[to]
        key = offer[0][0] + victim.key
        if there is None or key <= there[0][0]:
            made_offer = (add(offer[0], (victim.key, (victim.name,))), (*offer[1], victim))
            if there is None or made_offer[0] < there[0]:
                made[to] = made_offer
    return made


def _cheaper(one: list[Offer | None], other: list[Offer | None]) -> list[Offer | None]:
    return [b if a is None or (b is not None and b[0] < a[0]) else a for a, b in zip(one, other, strict=True)]


def _search(claimant: Claimant, draft: Draft, room: Room, ask: Ask, count: int, given: list[Group]) -> Offer | None:
    """Sets of victims in rising order of price until one makes room; legal ones only."""
    everybody = [victim for surplus, whole in given for victim in ((whole,) if whole else surplus)]
    if not fits_without(draft, room, ask, count, everybody):
        return None
    flat = sorted(
        {victim for surplus, whole in given for victim in (*surplus, *((whole,) if whole else ()))},
        key=lambda v: (v.key, v.name, v.pods[0].id),
    )
    heap: list[tuple[Price, int, tuple[int, ...]]] = [
        ((victim.key, (victim.name,)), i, (i,)) for i, victim in enumerate(flat)
    ]
    heap.sort()
    steps = 0
    while heap and steps < STEPS:
        worth, last, chosen = heappop(heap)
        steps += 1
        victims = [flat[i] for i in chosen]
        if fits_without(draft, room, ask, count, victims) and claimant.legal(victims):
            return (worth, tuple(victims))
        whole = {v.name for v in victims if v.whole}
        taken = {v.name for v in victims}
        for nxt in range(last + 1, len(flat)):
            victim = flat[nxt]
            if victim.name in whole or (victim.whole and victim.name in taken):
                continue
            heappush(heap, (price((*victims, victim)), nxt, (*chosen, nxt)))
    if heap:
        claimant.herd.cut += 1
    return None


def fits_without(draft: Draft, room: Room, ask: Ask, count: int, victims: list[Victim]) -> bool:
    """Whether `count` pods fit on the node once these are gone."""
    mark = draft.mark
    for victim in victims:
        for pod in victim.pods:
            if pod.node == room.node.name:
                draft.evict(pod, victim.workload)
    fits = slots(room, ask, count, later=True) >= count
    draft.back(mark)
    return fits
