"""Steps 1 and 2 of a pass: what time and the machines force, and starts in room that was held."""

from __future__ import annotations

from collections import Counter

from allmende.engine.place import Site
from allmende.engine.room import RUN
from allmende.engine.shape import Shape
from allmende.engine.tree import Branch
from allmende.engine.upkeep import upkeep
from allmende.engine.work import Pass
from allmende.model.cluster import Pod
from allmende.model.decision import Close, Evict, Stop
from allmende.model.standing import Phase, Standing


class Held:
    """Those who must go, and those whose held places are free."""

    def __init__(self, work: Pass) -> None:
        self.work = work

    def keep_up(self) -> None:
        """What time and the machines force."""
        for decision in upkeep(self.work.state, self.work.now):
            self.work.made.append(decision)
            if isinstance(decision, Close):
                self._close_node(decision.node)
                continue
            standing = self.work.state.standings[decision.workload]
            for pod in standing.pods:
                if isinstance(decision, Stop) or (isinstance(decision, Evict) and pod.id in decision.pods):
                    self.work.draft.evict(pod, standing.workload)
            self.work.busy.add(decision.workload)
            self.work.herd.spare(decision.workload)
            self.work.give_up_hold(decision.workload)
        self.work.hunt.leaving = self.work.index.masks.leaving  # what upkeep frees is for whoever comes first

    def _close_node(self, name: str) -> None:
        """Nothing new goes there in this pass either."""
        self.work.closed |= 1 << self.work.index.rooms[name].pos

    def start_held(self) -> None:
        """Those for whom room was held start when it is free; a hold that can no longer come true is given up."""
        touched, self.work.index.touched = self.work.index.touched, {}
        for name in sorted(touched, key=self.work.order):
            pods = self.work.state.holds.get(name)
            if pods is None or name in self.work.busy:
                continue
            standing = self.work.state.standings[name]
            if not self._still_wanted(standing, pods) or not all(self._still_there(pod) for pod in pods):
                self.work.give_up_hold(name)
                self.work.held_moved[name] = None
            elif name not in self.work.index.leaving_of and self._all_ready(standing, pods):
                self.work.held_moved[name] = None
                branch, shape, _, _, _ = self.work.index.place_in_line(standing)
                fresh = [Pod(name, standing.attempt + 1, p.role, p.rank, p.node, p.slices) for p in pods]
                for pod in fresh:
                    self.work.draft.take(RUN, pod, standing.workload)
                self._top_up(branch, standing, shape, fresh)
                self.work.began(branch, standing.workload, shape, fresh)

    def _still_wanted(self, standing: Standing, pods: tuple[Pod, ...]) -> bool:
        """Whether the workload was not made smaller than what is held for it."""
        count = Counter(pod.role for pod in (*standing.pods, *pods))
        return all(count[role] <= wanted for role, wanted in enumerate(standing.wanted))

    def _still_there(self, pod: Pod) -> bool:
        """Whether the node of a held place takes pods and its devices are sound."""
        room = self.work.index.rooms.get(pod.node)
        return room is not None and room.open and all(room.sound[part.device] for part in pod.slices)

    def _top_up(self, branch: Branch, standing: Standing, shape: Shape, pods: list[Pod]) -> None:
        """Whoever starts in held room takes free room for its other pods at once, before a borrower does."""
        if shape.elastic or shape.spread:
            return
        model = self.work.index.rooms[pods[0].node].node.model
        have = standing.pods if standing.phase is Phase.RUNNING else ()
        site = Site(self.work.draft, standing.workload, shape, standing.attempt + 1, have)
        site.top_up(self.work.ban(standing), pods, lambda: self.work.more(branch, standing.workload, model))

    def _all_ready(self, standing: Standing, pods: tuple[Pod, ...]) -> bool:
        """Whether all the held places are free at the same time; if so they are held no more."""
        workload = standing.workload
        mark = self.work.draft.mark
        for pod in pods:
            room = self.work.index.rooms[pod.node]
            if not room.ready_for(pod, workload.roles[pod.role].ask):
                self.work.draft.back(mark)
                return False
            self.work.draft.take(RUN, pod, workload)
        self.work.draft.back(mark)
        self.work.release(workload.id, pods)
        return True
