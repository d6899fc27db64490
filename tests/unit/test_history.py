"""Draws and run-time history: distributions from censored runs, back-off between classes, determinism."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from allmende.engine.draws import Draws
from allmende.engine.history import EDGES, ONE, WINDOW, History, Like, Owner, Run
from allmende.model.span import DAY, HOUR, MINUTE
from allmende.model.units import GPU, SECOND

ANA, BEN = ("ana", ""), ("ben", "")
HALF = ONE // 2


def runs(
    owner: tuple[str, str], lasting: int, count: int, *, over: bool = True, gap: int = HOUR, units: int = GPU
) -> list[Run]:
    """So many runs of one owner, each as long, submitted one by one."""
    name = f"{owner[0]}{owner[1]}-{lasting}-{over}-{units}"
    return [Run(f"{name}-{at}", owner, units, at * gap, lasting, over) for at in range(count)]


def alone(owner: Owner, units: int = GPU) -> Like:
    """The class of one that comes alone and in no known burst."""
    return Like(owner, units, 0, -1)


def test_draws_are_splitmix64() -> None:
    draws = Draws(1234567)
    assert [draws.word() for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_draws_below_a_bound_are_even_and_repeat() -> None:
    counts = [0] * 10
    draws, again = Draws(5), Draws(5)
    for _ in range(10_000):
        drawn = draws.below(10)
        assert drawn == again.below(10)
        counts[drawn] += 1
    assert min(counts) > 900
    assert max(counts) < 1100


def test_split_streams_differ() -> None:
    draws = Draws(1)
    first, second = draws.split(), draws.split()
    assert [first.word() for _ in range(3)] != [second.word() for _ in range(3)]


def test_edges_are_half_octaves() -> None:
    assert EDGES[:4] == (0, 8 * SECOND, 11_313_708, 16 * SECOND)
    assert all(later * 10 > earlier * 14 for earlier, later in pairwise(EDGES))


def test_curves_never_rise_and_never_reach_nothing() -> None:
    history = History(runs(ANA, HOUR, 500))
    for like in (alone(ANA), alone(BEN), Like(BEN, 8 * GPU, 5, -1)):
        curve = history.curve(like)
        assert curve[0] == ONE
        assert all(above >= below > 0 for above, below in pairwise(curve))


def test_quantiles_find_what_was_seen() -> None:
    history = History(runs(ANA, 100 * MINUTE, 500))
    found = history.run_time(alone(ANA), HALF)
    span = max(edge for edge in EDGES if edge <= 100 * MINUTE)
    assert span <= found <= 1.5 * span


def test_more_outlast_means_a_shorter_run() -> None:
    history = History(runs(ANA, HOUR, 30) + runs(ANA, DAY, 30, gap=HOUR + 1))
    times = [history.run_time(alone(ANA), chance) for chance in range(0, ONE, ONE // 97)]
    assert times == sorted(times, reverse=True)
    assert times[0] > DAY
    assert all(isinstance(time, int) for time in times)


@pytest.mark.parametrize("ran", [0, SECOND, HOUR, 30 * HOUR, 400 * DAY, 4000 * DAY])
def test_what_has_run_goes_on_from_there(ran: int) -> None:
    history = History(runs(ANA, HOUR, 50))
    for chance in (0, HALF, ONE - 1):
        assert history.run_time(alone(ANA), chance, ran) >= ran


def test_runs_under_way_make_times_longer() -> None:
    ended = runs(ANA, HOUR, 40)
    alike = History(ended).run_time(alone(ANA), HALF)
    with_long = History(ended + runs(ANA, 20 * HOUR, 40, over=False, gap=HOUR + 1)).run_time(alone(ANA), HALF // 2)
    assert with_long > 4 * alike


def test_what_has_not_started_counts_nothing() -> None:
    ended = runs(ANA, HOUR, 40)
    waiting = [Run(f"waits-{at}", ANA, GPU, 50 * DAY + at * HOUR, None, False) for at in range(40)]
    assert History(ended + waiting).run_time(alone(ANA), HALF) == History(ended).run_time(alone(ANA), HALF)
    assert History(waiting).ended == 0


def test_unknown_owners_are_like_all_and_known_ones_like_themselves() -> None:
    history = History(runs(ANA, MINUTE, 300) + runs(BEN, 30 * HOUR, 300))
    ana, ben, new = (history.run_time(alone(owner), HALF) for owner in (ANA, BEN, ("new", "")))
    assert ana < 2 * MINUTE
    assert ben > 15 * HOUR
    assert ana < new < ben


def test_a_user_is_told_from_his_project() -> None:
    kim, lee = ("ana", "kim"), ("ana", "lee")
    history = History(runs(kim, MINUTE, 200) + runs(lee, 10 * HOUR, 200))
    assert history.run_time(alone(kim), HALF) < 2 * MINUTE
    assert history.run_time(alone(lee), HALF) > 5 * HOUR


def test_sizes_differ() -> None:
    history = History(runs(ANA, MINUTE, 200) + runs(ANA, 10 * HOUR, 200, units=8 * GPU))
    assert history.run_time(alone(ANA), HALF) < 2 * MINUTE
    assert history.run_time(alone(ANA, 8 * GPU), HALF) > 5 * HOUR


def test_a_burst_of_a_new_owner_is_judged_by_others_bursts() -> None:
    single = runs(ANA, 10 * HOUR, 100)
    burst = [Run(f"burst-{at}", ANA, GPU, 300 * DAY + at * SECOND, MINUTE, True) for at in range(300)]
    fresh = [Run(f"fresh-{at}", BEN, GPU, 400 * DAY + at * SECOND, None, False) for at in range(300)]
    history = History(single + burst + fresh)
    assert history.run_time(history.likes["fresh-0"], HALF) < 5 * MINUTE
    assert history.run_time(alone(BEN), HALF) > 5 * HOUR


def test_a_burst_learns_from_its_own_first_runs() -> None:
    other = [Run(f"other-{at}", ANA, GPU, at * SECOND, MINUTE, True) for at in range(300)]
    mine = [
        Run(f"mine-{at}", BEN, GPU, 5 * DAY + at * SECOND, 5 * HOUR if at < 60 else None, at < 60) for at in range(300)
    ]
    history = History(other + mine)
    assert history.run_time(history.likes["mine-299"], HALF) > 2 * HOUR


def test_what_was_asked_before_does_not_matter() -> None:
    seen = runs(ANA, 10 * HOUR, 100)
    seen += [Run(f"burst-{at}", ANA, GPU, 300 * DAY + at * 40 * SECOND, MINUTE, at < 40) for at in range(90)]
    fresh, worn = History(seen), History(seen)
    for like in sorted(set(worn.likes.values())):
        worn.curve(like)
    for like in sorted(set(fresh.likes.values()), reverse=True):
        assert fresh.curve(like) == worn.curve(like) == History(seen).curve(like)


def test_company_is_counted_within_the_window() -> None:
    history = History(runs(ANA, HOUR, 3, gap=WINDOW) + runs(BEN, HOUR, 3, gap=WINDOW + 1))
    assert [like.company for like in history.likes.values()] == [1, 1, 1, 0, 0, 0]
    assert len({like.burst for like in history.likes.values()}) == 4


def test_the_order_of_what_was_seen_does_not_matter() -> None:
    seen = runs(ANA, HOUR, 50) + runs(BEN, DAY, 50, over=False) + runs(ANA, MINUTE, 50, gap=SECOND)
    shuffled = seen[:]
    random.Random(1).shuffle(shuffled)
    first, second = History(seen), History(shuffled)
    assert first.likes == second.likes
    for like in first.likes.values():
        assert first.curve(like) == second.curve(like)
