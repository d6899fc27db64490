"""What a project has used: today, for daily limits, and lately, for the order of spare capacity.

Use between two entries is constant, so both are settled exactly when it changes. Recent use decays by a half-life;
the powers of two are fixed-point integers from integer square roots, so that no float decides an order.
"""

from __future__ import annotations

from math import isqrt

from msgspec import Struct

from allmende.model.policy import Policy
from allmende.model.span import DAY

BITS = 64
ONE = 1 << BITS
STEPS = 24  # halvings of the exponent: 2 ** -24 of a half-life is a tenth of a second in a fortnight


def _roots() -> tuple[int, ...]:
    """2 ** -(1/2), 2 ** -(1/4), ... as fixed-point numbers."""
    found = [isqrt(ONE * ONE // 2)]
    while len(found) < STEPS:
        found.append(isqrt(found[-1] << BITS))
    return tuple(found)


_ROOTS = _roots()


class Account(Struct, frozen=True, gc=False):
    """`today`: GPU units x microseconds used on local day number `day`; `past`: the same, decayed; both up to `at`."""

    day: int
    today: int
    past: int
    at: int


def settled(account: Account, use: int, at: int, policy: Policy) -> Account:
    """The account at `at`, after constant `use` (GPU units) since it was last settled."""
    since = max(0, at - account.at)
    day = (at + policy.offset(at)) // DAY
    today = account.today + use * since if day == account.day else use * min(since, at - _begins(day, policy))
    past = account.past
    if policy.half_life is not None:
        left = decay(since, policy.half_life)
        past = (past * left + use * mean_life(policy.half_life) * (ONE - left)) >> BITS
    return Account(day, today, past, max(at, account.at))


def fresh(at: int, policy: Policy, past: int = 0) -> Account:
    """An account that begins now."""
    return Account((at + policy.offset(at)) // DAY, 0, past, at)


def decay(span: int, half_life: int) -> int:
    """2 ** -(span / half_life) as a fixed-point number of BITS bits."""
    exponent = (span << STEPS) // half_life
    found = ONE
    for step in range(STEPS):
        if exponent >> (STEPS - 1 - step) & 1:
            found = found * _ROOTS[step] >> BITS
    return found >> min(exponent >> STEPS, BITS + 1)


def mean_life(half_life: int) -> int:
    """Microseconds over which decayed use averages: half_life / ln 2."""
    return half_life * 14_426_950 // 10_000_000


def midnight(at: int, policy: Policy) -> int:
    """The next local midnight."""
    return _begins((at + policy.offset(at)) // DAY + 1, policy)


def _begins(day: int, policy: Policy) -> int:
    """When a local day begins: by the offset in force then, also where clocks change that day or the day before."""
    moment = day * DAY - policy.offset(day * DAY)
    return day * DAY - policy.offset(moment)
