"""One pass: what to do now. A pure function of the state and the moment; the state is left as it was.

Naive meaning: 1. do what time and the machines force; 2. start whom freed room was held for; 3. give reservations to
those who have waited too long; 4. first round: requests inside their guarantee, by share down the tree and in order
inside a project, into free room, else into room taken back; 5. second round: everybody else into free room (a higher
priority may take from a lower one of its own project); 6. elastic workloads grow into what is left.
Optimised: equal requests are judged once; projects without a line that could move are not looked at; all tentative
work is done on the index itself and undone at the end.
"""

from __future__ import annotations

from msgspec import Struct

from allmende.engine.apply import settle
from allmende.engine.claim import Claims
from allmende.engine.consider import Considerations
from allmende.engine.growth import grow_elastic
from allmende.engine.held import Held
from allmende.engine.hope import Hope
from allmende.engine.rounds import Rounds
from allmende.engine.search import Search
from allmende.engine.state import State
from allmende.engine.upkeep import next_wake
from allmende.engine.work import Pass
from allmende.model.decision import Decision


class Plan(Struct, frozen=True):
    """Decisions in the order to be applied, when to look again (microseconds; None = at the next event), and what the
    victim searches cost and proved."""

    decisions: tuple[Decision, ...]
    wake_at: int | None
    searches: tuple[Search, ...] = ()


def plan(state: State, now: int) -> Plan:
    """The decisions due at `now`."""
    settle(state)
    work = Pass(state, now)
    hope = Hope(work)
    held, rounds = Held(work), Rounds(work, hope, Considerations(work, Claims(work, hope)))
    try:
        held.keep_up()
        held.start_held()
        rounds.reserve()
        rounds.run()
        grow_elastic(work)
    finally:
        work.close()
    moments = next_wake(state, now) + work.wakes
    return Plan(work.decisions(), min(moments, default=None), (*work.searches, *work.hunt.given_up))
