"""Where the pods of a request go.

A pod goes to the tightest node that holds it (fewest wholly free GPUs, then the first by name), so that whole nodes
stay whole; a gang to one node where it fits on one, else to the fewest nodes, the last of them the tightest. Pods
without GPUs go to nodes without GPUs first. Pods of one role are equal, so counting slots per node is exact; several
roles are placed hardest first, then by a bounded search in counted steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from allmende.engine.draft import Draft
from allmende.engine.mask import Masks, bits
from allmende.engine.room import RUN, Room, choose, slots
from allmende.engine.shape import Shape, weight
from allmende.model.cluster import Pod, Slice
from allmende.model.request import Ask
from allmende.model.workload import Workload

Ranks = dict[tuple[int, int], None]
SEARCH = 400  # steps of the bounded search over several roles


class Site:
    """One attempt to place a workload: its shape, the nodes it may use, the ranks that are taken already.

    `later` places into room that leaving pods still fill (for a Hold). `mode` is how places are counted meanwhile.
    `missing`: pods that found no place when the last try failed.
    """

    __slots__ = ("attempt", "draft", "have", "later", "masks", "missing", "mode", "shape", "steps", "workload")

    def __init__(
        self,
        draft: Draft,
        workload: Workload,
        shape: Shape,
        attempt: int,
        have: Sequence[Pod] = (),
        mode: int = RUN,
        later: bool = False,
    ) -> None:
        self.draft = draft
        self.masks: Masks = draft.index.masks
        self.workload = workload
        self.shape = shape
        self.attempt = attempt
        self.have = have
        self.mode = mode
        self.later = later
        self.steps = 0
        self.missing = 1

    def place(self, ban: int = 0, more: Callable[[], bool] | None = None) -> list[Pod] | None:
        """Place the minimum and, as far as there is room (and `more` allows), the rest. None = the minimum does not
        fit.

        On success the places are taken in the draft; otherwise nothing is.
        """
        shape, masks = self.shape, self.masks
        usable = masks.every & ~ban
        if self.have and shape.level:
            usable &= masks.within(shape.level, self.draft.index.rooms[self.have[0].node].pos)
            return self._fill(usable, more)
        level = shape.level or shape.prefer
        if level:
            found = self._in_domain(level, usable, more)
            if found is not None or shape.level:
                return found
        return self._fill(usable, more)

    def _in_domain(self, level: str, usable: int, more: Callable[[], bool] | None) -> list[Pod] | None:
        """The tightest domain that holds the minimum; the first by path among equals."""
        masks, draft = self.masks, self.draft
        need = sum(ask.whole * n for (ask, _), n in zip(self.shape.roles, self.shape.counts, strict=True))
        best: tuple[int, int] | None = None
        for domain in masks.domains(level).values():
            inside = domain & usable
            if not inside:
                continue
            free = sum(k * (mask & inside).bit_count() for k, mask in enumerate(masks.by_free) if k)
            if (free < need and not self.later) or (best is not None and free >= best[0]):
                continue
            mark = draft.mark
            if self._fill(inside, None) is not None:
                best = (free, inside)
                draft.back(mark)
        return self._fill(best[1], more) if best is not None else None

    def _fill(self, usable: int, more: Callable[[], bool] | None) -> list[Pod] | None:
        shape, draft = self.shape, self.draft
        mark = draft.mark
        pods = self._spread(usable) if shape.spread else self._roles(usable, self._order())
        if pods is None:
            draft.back(mark)
            if not shape.spread and sum(n > 0 for n in shape.counts) > 1:
                pods = self._search(usable)
        if pods is None:
            draft.back(mark)
            return None
        if not shape.elastic and not shape.spread:
            self._extra(usable, pods, more)
        return pods

    def _order(self) -> list[int]:
        """Roles with pods to place, the hardest first."""
        roles = self.shape.roles
        return sorted(
            (r for r, n in enumerate(self.shape.counts) if n), key=lambda r: tuple(-w for w in weight(roles[r][0]))
        )

    def _roles(self, usable: int, order: list[int]) -> list[Pod] | None:
        pods: list[Pod] = []
        for role in order:
            short = self._short_at_a_glance(role, usable)
            if short > 0:
                self.missing = short
                return None
            placed = self._role(role, self.shape.counts[role], usable, pods)
            if placed < self.shape.counts[role]:
                self.missing = self.shape.counts[role] - placed
                return None
        return pods

    def _short_at_a_glance(self, role: int, usable: int) -> int:
        """Pods of a role that free GPUs alone tell to have no place; CPUs and memory may make them more."""
        (ask, where), count = self.shape.roles[role], self.shape.counts[role]
        if self.later or count < 2 or not ask.whole or ask.exclusive:
            return 0
        mask = self.masks.allowed(where, self.workload.project) & usable & ~self.masks.shared
        by_free, places = self.masks.by_free, 0
        for free in range(ask.whole, len(by_free)):
            places += (by_free[free] & mask).bit_count() * (free // ask.whole)
        return count - places

    def top_up(self, ban: int, pods: list[Pod], more: Callable[[], bool]) -> None:
        """Pods above the minimum, beside those placed already."""
        usable = self.masks.every & ~ban
        if self.shape.level:
            usable &= self.masks.within(self.shape.level, self.draft.index.rooms[pods[0].node].pos)
        self._extra(usable, pods, more)

    def _extra(self, usable: int, pods: list[Pod], more: Callable[[], bool] | None) -> None:
        """Pods above the minimum, role by role, while there is room and they may be had."""
        for role, wanted in enumerate(self.shape.wanted):
            missing = wanted - sum(pod.role == role for pod in pods)
            while missing > 0 and (more is None or more()):
                mark, before = self.draft.mark, len(pods)
                if not self._role(role, 1, usable, pods):
                    break
                if more is not None and not more():
                    self.draft.back(mark)
                    del pods[before:]
                    return
                missing -= 1

    # -- one role ---------------------------------------------------------------------------------------------

    def _role(self, role: int, count: int, usable: int, pods: list[Pod]) -> int:
        """Place up to `count` pods of a role; how many were."""
        ask, where = self.shape.roles[role]
        mask = self.masks.allowed(where, self.workload.project) & usable
        if self.later:
            return self._by_node(role, ask, count, mask, pods)
        if ask.whole and not ask.exclusive:
            return self._whole(role, ask, count, mask & ~self.masks.shared, pods)
        placed = 0
        while placed < count:
            room = self._tightest(ask, mask)
            if room is None:
                break
            self.settle(role, ask, room, 1, pods)
            placed += 1
        return placed

    def _whole(self, role: int, ask: Ask, count: int, mask: int, pods: list[Pod]) -> int:
        by_free, rooms = self.masks.by_free, self.masks.rooms
        whole, top = ask.whole, len(by_free) - 1
        for free in range(count * whole, top + 1):  # one node for all, the tightest
            for pos in bits(by_free[free] & mask):
                if slots(rooms[pos], ask, count) >= count:
                    return self.settle(role, ask, rooms[pos], count, pods)
        placed = 0
        for free in range(top, whole - 1, -1):  # else the fewest nodes
            for pos in bits(by_free[free] & mask):
                left = count - placed
                if left <= free // whole:
                    return placed + self._rest(role, ask, left, mask, pods)
                placed += self.settle(role, ask, rooms[pos], slots(rooms[pos], ask, left), pods)
        return placed

    def _rest(self, role: int, ask: Ask, left: int, mask: int, pods: list[Pod]) -> int:
        """The last pods of a gang: on the tightest node that takes them all, else wherever they go."""
        by_free, rooms = self.masks.by_free, self.masks.rooms
        for free in range(left * ask.whole, len(by_free)):
            for pos in bits(by_free[free] & mask):
                if slots(rooms[pos], ask, left) >= left:
                    return self.settle(role, ask, rooms[pos], left, pods)
        placed = 0
        for free in range(len(by_free) - 1, ask.whole - 1, -1):
            for pos in bits(by_free[free] & mask):
                placed += self.settle(role, ask, rooms[pos], slots(rooms[pos], ask, left - placed), pods)
                if placed == left:
                    return placed
        return placed

    def _tightest(self, ask: Ask, mask: int) -> Room | None:
        """The node for one pod that takes no whole GPU, or a node to itself."""
        masks = self.masks
        if ask.share or ask.memory or ask.slots:
            room = self._fullest(ask, masks.partial & mask)
            if room is not None:
                return room
            tiers = [by & mask for by in masks.by_free[0 if ask.slots else 1 :]]
        else:
            tiers = [masks.by_free[0] & masks.bare & mask, masks.by_free[0] & mask & ~masks.bare]
            tiers += [by & mask for by in masks.by_free[1:]]
        for tier in tiers:
            for pos in bits(tier):
                if slots(masks.rooms[pos], ask, 1):
                    return masks.rooms[pos]
        return None

    def _fullest(self, ask: Ask, mask: int) -> Room | None:
        """The node with the fullest shared GPU that still holds the pod."""
        best: tuple[int, int] | None = None
        rooms = self.masks.rooms
        for pos in bits(mask):
            room = rooms[pos]
            if not slots(room, ask, 1):
                continue
            part = choose(room, ask)
            if part:
                left = room.left(part[0].device)
                if best is None or left < best[0]:
                    best = (left, pos)
        return rooms[best[1]] if best is not None else None

    def _by_node(self, role: int, ask: Ask, count: int, mask: int, pods: list[Pod]) -> int:
        """Node by node into room that may still be leaving, the roomiest first."""
        rooms = self.masks.rooms
        open_nodes = mask & self.masks.open
        found = sorted((-slots(rooms[pos], ask, count, True), pos) for pos in bits(open_nodes))
        placed = 0
        for taken, pos in found:
            if placed == count or not taken:
                break
            placed += self.settle(role, ask, rooms[pos], min(-taken, count - placed), pods)
        return placed

    def settle(self, role: int, ask: Ask, room: Room, count: int, pods: list[Pod]) -> int:
        """Take places for `count` pods on a node; how many were taken."""
        for done in range(count):
            slices = choose(room, ask, self.later)
            if slices is None:
                return done
            pods.append(self._pod(role, room, slices, pods))
        return count

    def as_many(self, ban: int) -> list[Pod]:
        """As many pods of the minimum as find a place, whole or not: for telling what is short."""
        pods: list[Pod] = []
        for role in self._order():
            self._role(role, self.shape.counts[role], self.masks.every & ~ban, pods)
        return pods

    def one_more(self, role: int, ban: int, pods: list[Pod]) -> bool:
        """One more pod of a role beside those placed already; whether it was placed."""
        usable = self.masks.every & ~ban
        placed = [*self.have, *pods]
        if self.shape.level and placed:
            usable &= self.masks.within(self.shape.level, self.draft.index.rooms[placed[0].node].pos)
        return self._role(role, 1, usable, pods) == 1

    def _pod(self, role: int, room: Room, slices: tuple[Slice, ...], pods: list[Pod]) -> Pod:
        taken = {pod.rank for pod in (*self.have, *pods) if pod.role == role}
        rank = len(taken)
        if rank in taken:
            rank = next(r for r in range(rank + 1) if r not in taken)
        pod = Pod(self.workload.id, self.attempt, role, rank, room.node.name, slices)
        self.draft.take(self.mode, pod, self.workload)
        return pod

    # -- several roles ----------------------------------------------------------------------------------------

    def _spread(self, usable: int) -> list[Pod] | None:
        """Each pod in a domain of its own."""
        pods: list[Pod] = []
        used = 0
        level = self.shape.spread
        for role in self._order():
            _, where = self.shape.roles[role]
            for _ in range(self.shape.counts[role]):
                mask = self.masks.allowed(where, self.workload.project) & usable & ~used
                mark = len(pods)
                for domain in self.masks.domains(level).values():
                    if mask & domain and self._role(role, 1, mask & domain, pods):
                        used |= domain
                        break
                if len(pods) == mark:
                    return None
        return pods

    def _search(self, usable: int) -> list[Pod] | None:
        """Depth first over nodes, pod by pod, in counted steps."""
        flat = [role for role in self._order() for _ in range(self.shape.counts[role])]
        self.steps = 0
        pods: list[Pod] = []
        return pods if self._deepen(flat, 0, usable, pods, -1) else None

    def _deepen(self, flat: list[int], at: int, usable: int, pods: list[Pod], last: int) -> bool:
        if at == len(flat):
            return True
        role = flat[at]
        ask, where = self.shape.roles[role]
        mask = self.masks.allowed(where, self.workload.project) & usable & self.masks.open
        if at and flat[at - 1] == role and last > 0:  # equal pods: nodes in rising order
            mask &= ~((1 << last) - 1)
        for pos in bits(mask):
            self.steps += 1
            if self.steps > SEARCH:
                return False
            room = self.masks.rooms[pos]
            mark = self.draft.mark
            if slots(room, ask, 1, self.later) and self.settle(role, ask, room, 1, pods):
                if self._deepen(flat, at + 1, usable, pods, pos):
                    return True
                pods.pop()
                self.draft.back(mark)
        return False
