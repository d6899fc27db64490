"""The one GPU currency: an exact whole number of units, of which GPU make one whole GPU; SECOND stands beside it."""

import re
from fractions import Fraction
from typing import NamedTuple

from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.quantity import MOST, Written, quantity
from allmende.model.span import SECOND as SECOND

# 2^6 * 3^2 * 5^3 * 7 * 11 * 13. Every share in use is a whole number of units: 1/1 to 1/16, 1/24, 1/32, 1/48 (the most
# MPS replicas), 1/64; MIG slices in 112ths (seven compute and eight memory slices, halved: budgets.md section 4);
# per cent and per mille (the traces' milli-GPUs). Sums, books and bills are sums of ints and never round.
GPU = 72_072_000
"""Units in one GPU."""

_SHARE_DO = "write a share such as 0.25, 1/7 or 25%"
_GPUS_DO = "write a whole number of GPUs such as 3, or a share below one GPU such as 0.25 or 1/7"
_RATIO = re.compile(r"([+-]?[0-9]{1,19})/([0-9]{1,19})")
_PER_CENT = re.compile(r"([+-]?(?:[0-9]{1,19}(?:\.[0-9]{1,19})?|\.[0-9]{1,19}))%")


class GpuCount(NamedTuple):
    """What one pod asks for: whole devices, or (whole = 0) a share of one device in units; both 0 is no GPU."""

    whole: int
    share: int

    @property
    def units(self) -> int:
        """The request in units."""
        return self.whole * GPU + self.share


def amount(value: Written, field: str = "gpus", do: str = "write GPUs such as 3, 2.5, 1/7 or 25%") -> int:
    """Units of any amount of GPUs >= 0, parts included ('2.5', '15/7', '250m', '25%'): guarantees, limits, shares.

    Raises Mistake: TOO_FINE where it is no whole number of units, NEGATIVE, EMPTY, UNREADABLE, WRONG_KIND, ABSURD.
    """
    return _units(_exact(value, field, do), value, field, do)


def share(value: Written, field: str = "share") -> int:
    """Units of a share of one GPU, above 0 and at most 1 ('0.25', '1/7', '25%', 0.5).

    Raises Mistake: ZERO, NOT_A_SHARE above 1, and amount's own.
    """
    units = amount(value, field, _SHARE_DO)
    if units == 0:
        raise Mistake(MistakeCode.ZERO, value, field, _SHARE_DO)
    if units > GPU:
        raise Mistake(MistakeCode.NOT_A_SHARE, value, field, _SHARE_DO, "is more than one GPU")
    return units


def gpus(value: Written, field: str = "gpus") -> GpuCount:
    """The GPUs of one pod in our own files: a whole number (0 too), or a share below one ('1/7'); 1.5 is neither.

    Raises Mistake: NOT_A_SHARE for what is neither, and amount's own. A huge whole number is valid and fits nowhere.
    """
    exact = _exact(value, field, _GPUS_DO)
    if exact.denominator == 1 and exact >= 0:
        return GpuCount(int(exact), 0)
    if exact > 1:
        low = int(exact)
        do = f"ask for {low} or {low + 1} whole GPUs, or for a share below one GPU such as 0.5"
        wrong = "is neither a whole number of GPUs nor a share below one"
        raise Mistake(MistakeCode.NOT_A_SHARE, value, field, do, wrong)
    return GpuCount(0, _units(exact, value, field, _GPUS_DO))


def show_gpus(units: int) -> str:
    """Units as GPUs, exactly and as amount() reads them back: '3', '0.25', '1/7', '15/7'."""
    exact = Fraction(units, GPU)
    if 1000 % exact.denominator:
        return str(exact)
    thousandths = abs(units) * 1000 // GPU
    text = f"{'-' if units < 0 else ''}{thousandths // 1000}.{thousandths % 1000:03d}"
    return text.rstrip("0").rstrip(".")


def _exact(value: Written, field: str, do: str) -> Fraction:
    """GPUs as an exact fraction."""
    if isinstance(value, str):
        ratio, per_cent = _RATIO.fullmatch(value), _PER_CENT.fullmatch(value)
        if ratio and int(ratio[2]) == 0:
            raise Mistake(MistakeCode.UNREADABLE, value, field, do, "divides by zero")
        if ratio and abs(int(ratio[1])) > MOST:
            raise Mistake(MistakeCode.ABSURD, value, field, do)
        if ratio:
            return Fraction(int(ratio[1]), int(ratio[2]))
        if per_cent:
            return Fraction(per_cent[1]) / 100
    return quantity(value, field, do)


def _units(exact: Fraction, value: Written, field: str, do: str) -> int:
    """GPUs in units, or the refusal of what has none."""
    if exact < 0:
        raise Mistake(MistakeCode.NEGATIVE, value, field, do)
    units = exact * GPU
    if units.denominator != 1:
        near = exact.limit_denominator(16)
        hint = f"; {near} can be counted" if near else ""
        raise Mistake(MistakeCode.TOO_FINE, value, field, do + hint, "is no whole number of a GPU's units")
    return int(units)
