"""Start intervals: exact where everything is known, whole and repeatable everywhere; learning from past errors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from allmende.engine.apply import apply
from allmende.engine.draws import Draws
from allmende.engine.forecast import (
    EXACT,
    HORIZON,
    Calibration,
    Foretold,
    Knowledge,
    StartInterval,
    affordable,
    calibrate,
    forecast,
    futures,
    interval,
    root,
    unroot,
)
from allmende.engine.history import Run, runs_of
from allmende.engine.invariants import check, picture
from allmende.engine.plan import plan
from allmende.engine.runahead import COMING, arrivals, models_of, run_ahead
from allmende.engine.state import State
from allmende.model.cluster import Device, Node
from allmende.model.decision import Start
from allmende.model.event import Ended, Event, NodeSet, PolicySet, ProjectSet, Submitted, Up
from allmende.model.policy import Policy
from allmende.model.request import Ask
from allmende.model.span import DAY, HOUR, MINUTE
from allmende.model.standing import Phase
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.model.workload import After, Dependency, Role, Workload
from allmende.sim.world import World

PRIOR = calibrate((), 0)


def job(
    name: str, gpus: int, limit: int | None = None, project: str = "red", pods: int = 1, after: str = ""
) -> Workload:
    """A gang of pods of so many GPUs."""
    needs = (Dependency(after, After.ANY),) if after else ()
    return Workload(name, project, (Role("pod", pods, Ask(whole=gpus)),), gang_min=pods, limit=limit, after=needs)


def cluster(nodes: int = 1, gpus: int = 4, evictions: bool = True, **guarantees: int) -> list[Event]:
    """Nodes, and projects with guarantees in GPUs."""
    devices = tuple(Device(index) for index in range(gpus))
    made: list[Event] = [PolicySet(0, Policy(evictions=evictions))]
    made += [NodeSet(0, Node(f"node-{at}", devices)) for at in range(nodes)]
    made += [ProjectSet(0, Project(name, guarantee=count * GPU)) for name, count in guarantees.items()]
    return made


def played(events: Sequence[Event], until: int = 0) -> World:
    """A world that lived to `until`."""
    world = World(checked=True)
    for event in events:
        world.at(event.at, event)
    world.run(until)
    return world


def true_starts(world: World) -> dict[str, int]:
    """When each workload that ever started did so first."""
    found: dict[str, int] = {}
    for entry in world.log:
        if isinstance(entry, Start):
            found.setdefault(entry.workload, entry.at)
    return found


def waiting(state: State) -> list[str]:
    return sorted(name for name, standing in state.standings.items() if standing.phase is Phase.QUEUED)


def exact(state: State, now: int, runs: int = 3) -> dict[str, StartInterval]:
    """The forecast where limits are kept exactly and nobody else comes."""
    return forecast(state, now, Knowledge(state, now, EXACT, coming=False), runs, seed=1)


# -- where everything is known --------------------------------------------------------------------------------

QUEUES: dict[str, list[Event]] = {  # each is asked before anything of it has ended
    "one after the other": [
        *cluster(red=4),
        *(Submitted(at, job(f"j{at}", 4, HOUR + at)) for at in range(4)),
    ],
    "a gang waits for two nodes, small ones pass it": [
        *cluster(2, red=8),
        Submitted(0, job("long", 3, 5 * HOUR)),
        Submitted(1, job("gang", 4, HOUR, pods=2)),
        Submitted(2, job("small", 2, 2 * HOUR)),
        Submitted(3, job("other", 2, 7 * HOUR)),
        Submitted(4, job("tail", 2, 7 * HOUR)),
    ],
    "two projects in turn": [
        *cluster(1, 2, red=1, blue=1),
        *(Submitted(at, job(f"red{at}", 1, (3 + at) * HOUR)) for at in range(6)),
        *(Submitted(6 + at, job(f"blue{at}", 1, (2 + at) * HOUR, "blue")) for at in range(5)),
    ],
    "a dependency": [
        *cluster(red=4),
        Submitted(0, job("first", 1, 2 * HOUR)),
        Submitted(1, job("then", 1, HOUR, after="first")),
    ],
    "what borrowed is taken back": [
        *cluster(1, 4, red=2, blue=2),
        *(Submitted(at, job(f"red{at}", 2, 6 * HOUR)) for at in range(3)),
        Submitted(HOUR, job("blue", 1, 2 * HOUR, "blue")),
        Submitted(HOUR + 1, job("late", 4, 2 * HOUR, "blue")),
    ],
}


@pytest.mark.parametrize("name", QUEUES)
def test_exact_limits_give_the_true_start(name: str) -> None:
    events = QUEUES[name]
    now = max(event.at for event in events) + 5
    then = played(events, now)
    found = exact(then.state, now)
    assert sorted(found) == waiting(then.state)
    truth = true_starts(played(events, 100 * HOUR))
    before = true_starts(then)
    for workload, one in found.items():
        assert workload not in before or then.state.standings[workload].evictions
        if workload not in before:
            assert one == StartInterval(truth[workload], truth[workload], truth[workload]), workload


def test_the_impossible_has_no_start() -> None:
    state = played([*cluster(red=4), Submitted(0, job("runs", 4, HOUR)), Submitted(1, job("huge", 5, HOUR))], 1).state
    assert exact(state, 1) == {"huge": StartInterval(None, None, None)}


def test_a_fork_is_all_that_changes() -> None:
    state = played(QUEUES["two projects in turn"], 20).state
    before = dict(state.standings), dict(state.outcomes), picture(state.index), plan(state, 20)
    forecast(state, 20, Knowledge(state, 20, PRIOR), 2, seed=3)
    assert (dict(state.standings), dict(state.outcomes), picture(state.index), plan(state, 20)) == before
    check(state)


# -- where it is not ------------------------------------------------------------------------------------------


def crowd(order: int = 1) -> tuple[State, int]:
    """A cluster in use for two days, some forty of two owners waiting."""
    events = cluster(4, 8, red=16, blue=16)
    jobs = [
        Submitted(at * 20 * MINUTE, job(f"job{at:03}", (1, 2, 8)[at % 3], None, ("red", "blue")[at % 2]))
        for at in range(150)
    ]
    world = World()
    for event in [*events, *jobs[::order]]:
        world.at(event.at, event)
    for at in range(150):
        world.work[f"job{at:03}"] = (1 + at * at % 17) * HOUR
    world.run(2 * DAY)
    return world.state, 2 * DAY


def test_intervals_are_whole_and_in_order() -> None:
    state, now = crowd()
    found = forecast(state, now, Knowledge(state, now, PRIOR), 4, seed=7)
    assert list(found) == waiting(state)
    assert len(found) > 20
    for one in found.values():
        assert one.low is not None
        assert one.median is not None
        assert one.high is not None
        assert now <= one.low <= one.median <= one.high <= now + HORIZON
        assert isinstance(one.median, int)


def test_the_same_seed_says_the_same_and_input_order_does_not_matter() -> None:
    state, now = crowd()
    first = forecast(state, now, Knowledge(state, now, PRIOR), 3, seed=7)
    assert forecast(state, now, Knowledge(state, now, PRIOR), 3, seed=7) == first
    other, _ = crowd(order=-1)
    assert forecast(other, now, Knowledge(other, now, PRIOR), 3, seed=7) == first
    assert forecast(state, now, Knowledge(state, now, PRIOR), 3, seed=8) != first


def test_every_future_starts_each_once_and_never_before_now() -> None:
    state, now = crowd()
    found = futures(state, now, Knowledge(state, now, PRIOR), 5, seed=2)
    for starts in found.values():
        assert len(starts) == 5
        assert all(start is None or now <= start <= now + HORIZON for start in starts)


def test_the_front_of_the_line_comes_first() -> None:
    events = [*cluster(red=4), *(Submitted(at, job(f"j{at}", 4)) for at in range(6))]
    state = played(events, 10).state
    found = forecast(state, 10, Knowledge(state, 10, PRIOR, coming=False), 3, seed=1)
    medians = [one.median for one in found.values()]
    assert all(a is not None and b is not None and a < b for a, b in pairwise(medians))


def test_a_limit_bounds_what_history_says() -> None:
    world = played(cluster(red=4), 0)
    world.work = {f"old{at}": 30 * HOUR for at in range(20)}
    for at in range(20):
        world.at(at * DAY, Submitted(at * DAY, job(f"old{at}", 4)))
    world.at(21 * DAY, Submitted(21 * DAY, job("limited", 4, HOUR)))
    world.at(21 * DAY + 1, Submitted(21 * DAY + 1, job("next", 4, HOUR)))
    world.run(30 * DAY)
    now = max(start for name, start in true_starts(world).items() if name == "limited")
    again = played(cluster(red=4), 0)
    again.work = world.work
    for at in range(20):
        again.at(at * DAY, Submitted(at * DAY, job(f"old{at}", 4)))
    again.at(21 * DAY, Submitted(21 * DAY, job("limited", 4, HOUR)))
    again.at(21 * DAY + 1, Submitted(21 * DAY + 1, job("next", 4, HOUR)))
    again.run(now)
    found = exact(again.state, now)["next"]
    assert found.high is not None
    assert found.high <= now + HOUR


# -- arrivals -------------------------------------------------------------------------------------------------


def test_arrivals_repeat_the_recent_past_less_and_less() -> None:
    state, now = crowd()
    seen = runs_of(state, now)
    models = models_of(state, seen)
    drawn = arrivals(seen, models, now, Draws(4))
    assert drawn == arrivals(seen, models, now, Draws(4))
    assert all(now <= entry.at <= now + COMING for entry, _ in drawn)
    assert len({entry.workload.id for entry, _ in drawn}) == len(drawn)
    first = sum(entry.at < now + DAY for entry, _ in drawn)
    last = sum(entry.at >= now + 3 * DAY for entry, _ in drawn)
    assert first > 3 * last
    by_id = {run.workload: run for run in seen}
    for entry, source in drawn:
        assert entry.workload.project == by_id[source].owner[0]
        assert sum(role.pods * role.ask.whole for role in entry.workload.roles) * GPU == by_id[source].units


def test_nothing_recent_nothing_comes() -> None:
    state, now = crowd()
    assert arrivals([], {}, now, Draws(1)) == []
    seen = runs_of(state, now)
    assert arrivals(seen, models_of(state, seen), now + 9 * DAY, Draws(1)) == []


def test_a_size_of_which_none_is_left_is_asked_for_in_whole_nodes() -> None:
    state = played(cluster(2, 8, red=8), 0).state
    seen = [Run("a", ("red", ""), 20 * GPU, 0, HOUR, True), Run("b", ("red", ""), GPU // 2, 0, HOUR, True)]
    models = models_of(state, seen)
    assert [(role.pods, role.ask.whole) for role in models[20 * GPU].roles] == [(2, 8), (1, 4)]
    assert models[20 * GPU].gang_min == 3
    assert models[GPU // 2].roles[0].ask.share == GPU // 2


def test_a_future_ends_at_its_horizon() -> None:
    state = played([*cluster(red=4), *(Submitted(at, job(f"j{at}", 4, DAY)) for at in range(6))], 5).state
    found = run_ahead(state, 5, lambda standing, ran: DAY, [], 5 + 2 * DAY)
    assert found == {"j1": DAY, "j2": 2 * DAY}


def test_a_start_in_a_future_is_the_engines_own() -> None:
    state, now = crowd()
    twin, _ = crowd()
    first = {d.workload for d in plan(state, now).decisions if isinstance(d, Start)}
    running = min(name for name, one in state.standings.items() if one.phase is Phase.RUNNING)
    apply(twin, Ended(now, running))
    after = [d for d in plan(twin, now).decisions if isinstance(d, Start)]
    for decision in after:
        apply(twin, decision)
        apply(twin, Up(now, decision.workload))
    apply(state, Ended(now, running))
    found = run_ahead(state, now, lambda standing, ran: ran + DAY, [], now)
    assert set(found) == {decision.workload for decision in after} | first


# -- learning from past errors --------------------------------------------------------------------------------


def past(moments: int, each: int, foretold: int, true: int | None) -> list[Foretold]:
    """Forecasts of several days, all alike: waits foretold and true (None: it waits still)."""
    return [
        Foretold(
            day * DAY,
            f"w{day}-{at}",
            ("red", ""),
            GPU,
            day * DAY + foretold,
            None if true is None else day * DAY + true,
        )
        for day in range(moments)
        for at in range(each)
    ]


NOW = 100 * DAY


def test_roots_and_back() -> None:
    for wait in (0, 1, MINUTE, HOUR, DAY, HORIZON):
        assert wait * 0.9999 - 1 <= unroot(root(wait)) <= wait
    assert root(-5) == 0
    assert unroot(-5) == 0


def test_expected_errors_are_those_of_half_or_twice_sixteen_hours() -> None:
    low, high = (unroot(root(16 * HOUR) + sign * PRIOR.off * 10 // 13) / HOUR for sign in (-1, 1))
    assert 7 < low < 9
    assert 28 < high < 34


def test_good_forecasts_narrow_and_bad_ones_widen() -> None:
    good = calibrate(past(30, 20, 10 * HOUR, 11 * HOUR), NOW)
    bad = calibrate(past(30, 20, 10 * HOUR, 60 * HOUR), NOW)
    assert good.off < PRIOR.off < bad.off
    assert bad.off == root(60 * HOUR) - root(10 * HOUR)


def test_too_late_is_as_wrong_as_too_early() -> None:
    late = calibrate(past(30, 1, 81 * HOUR, 16 * HOUR), NOW)
    early = calibrate(past(30, 1, 16 * HOUR, 81 * HOUR), NOW)
    assert late == early


def test_a_few_bad_days_do_not_rule_alone() -> None:
    one = calibrate(past(1, 1000, HOUR, 300 * HOUR), NOW)
    many = calibrate(past(30, 1000, HOUR, 300 * HOUR), NOW)
    assert PRIOR.off < one.off < many.off / 3


def test_who_waits_still_is_wrong_by_at_least_so_much() -> None:
    waits = calibrate(past(10, 20, HOUR, None), 11 * DAY)
    assert waits.off > PRIOR.off
    soon = calibrate(past(10, 20, 50 * DAY, None), 11 * DAY)
    assert soon.off == PRIOR.off


def test_what_was_not_known_by_then_is_not_used() -> None:
    forecasts = past(30, 5, 10 * HOUR, 60 * HOUR)
    assert calibrate(forecasts, 0) == PRIOR
    known = [one for one in forecasts if one.made < 5 * DAY]
    cut = [
        Foretold(one.made, one.workload, one.owner, one.units, one.median, None)
        if one.started is not None and one.started > 5 * DAY
        else one
        for one in known
    ]
    assert calibrate(forecasts, 5 * DAY) == calibrate(cut, 5 * DAY)


def test_the_order_of_past_forecasts_does_not_matter() -> None:
    forecasts = past(6, 7, 3 * HOUR, 9 * HOUR) + past(6, 7, 30 * HOUR, 5 * HOUR)
    assert calibrate(forecasts, NOW) == calibrate(forecasts[::-1], NOW)


def test_four_of_five_past_forecasts_fall_within() -> None:
    draws = Draws(3)
    mixed = []
    for day in range(90):
        true = unroot(root(20 * HOUR) + draws.below(40_000_000) - 20_000_000)
        mixed += past(1, 1, 20 * HOUR, true)
        mixed[-1] = Foretold(day * DAY, f"w{day}", ("red", ""), GPU, day * DAY + 20 * HOUR, day * DAY + true)
    learnt = calibrate(mixed, NOW)
    within = sum(abs(root((one.started or 0) - one.made) - root(20 * HOUR)) <= learnt.off for one in mixed)
    assert 68 <= within <= 76


def test_an_interval_holds_what_the_futures_say() -> None:
    narrow = Calibration(1)
    assert interval(0, [HOUR, 3 * HOUR, 9 * HOUR], narrow) == StartInterval(HOUR, 3 * HOUR, 9 * HOUR)
    assert interval(0, [HOUR, None, None], narrow) == StartInterval(HOUR, None, None)
    assert interval(5, [7], EXACT) == StartInterval(7, 7, 7)
    wide = interval(0, [16 * HOUR], PRIOR)
    assert wide.low is not None
    assert wide.high is not None
    assert wide.low < 8 * HOUR < 32 * HOUR < wide.high
    assert interval(0, [0], PRIOR).low == 0


def test_more_waiting_fewer_futures() -> None:
    assert [affordable(count) for count in (0, 10, 8_000, 40_000, 10**6)] == [8, 8, 5, 3, 3]
