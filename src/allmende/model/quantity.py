"""Numbers and Kubernetes quantities ('500m', '1e3', '1Ti'), read exactly; whole counts, milli-CPUs, bytes and MiB."""

import math
import re
from decimal import Decimal
from fractions import Fraction

from allmende.model.mistake import Mistake, MistakeCode

Written = str | int | float | Fraction | Decimal
"""A number as people and files write it; a float is read by its shortest decimal, so 0.1 is exactly one tenth."""

MOST = 2**63 - 1
"""No value may be larger: nothing real is, and other programs' counters wrap behind it (cases 129, 131)."""

MIB = 2**20

_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIX = {name: Fraction(1000) ** power for power, name in enumerate(_DECIMAL, start=-3)}
_SUFFIX |= {name: Fraction(1024) ** power for power, name in enumerate(_BINARY, start=1)}
_QUANTITY = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE])?)")
_LONGEST = 64  # characters; the largest value has 19 digits
_WIDEST = 40  # decimal powers; bounds the work before a value is refused
_ANY = "write a number with at most one unit, such as 3, 500m, 1e3, 2.5G or 1Ti"


def quantity(text: Written, field: str = "quantity", do: str = _ANY) -> Fraction:
    """The exact value of a Kubernetes quantity or a bare number; may be negative.

    Raises Mistake: EMPTY, UNREADABLE, or ABSURD beyond 2^63-1. Source: apimachinery's resource.Quantity grammar.
    """
    if not isinstance(text, str):
        return number(text, field, do)
    if not text.strip():
        raise Mistake(MistakeCode.EMPTY, text, field, do)
    if len(text) > _LONGEST:
        raise Mistake(MistakeCode.ABSURD, text, field, do)
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise Mistake(MistakeCode.UNREADABLE, text, field, do)
    sign, digits, exponent, suffix = found.groups()
    if exponent is not None and abs(int(exponent)) > _WIDEST:
        raise Mistake(MistakeCode.ABSURD, text, field, do)
    value = Fraction(digits.rstrip(".")) * (Fraction(10) ** int(exponent) if exponent else _SUFFIX[suffix or ""])
    return _bounded(-value if sign == "-" else value, text, field, do)


def number(value: int | float | Fraction | Decimal, field: str, do: str) -> Fraction:
    """The exact value of a number that is no text. Raises Mistake: WRONG_KIND (yes/no, NaN, others) or ABSURD."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        raise Mistake(MistakeCode.WRONG_KIND, value, field, do, "is not a number")
    if isinstance(value, float | Decimal):
        exact = Decimal(repr(float(value))) if isinstance(value, float) else value
        if not exact.is_finite():
            raise Mistake(MistakeCode.WRONG_KIND, value, field, do, "is not a finite number")
        if abs(exact.adjusted()) > _WIDEST and exact:
            raise Mistake(MistakeCode.ABSURD, value, field, do)
        return _bounded(Fraction(exact), value, field, do)
    return _bounded(Fraction(value), value, field, do)


def _bounded(exact: Fraction, written: object, field: str, do: str) -> Fraction:
    if abs(exact) > MOST:
        raise Mistake(MistakeCode.ABSURD, written, field, do, f"is absurd: larger than {MOST}")
    return exact


def suffix(text: str) -> str:
    """The unit a quantity is written with ('Mi', 'm'; '' for a bare number), to see whether siblings use one unit."""
    quantity(text)
    found = _QUANTITY.fullmatch(text)
    return (found[4] or "") if found else ""


def whole(text: Written, field: str) -> int:
    """A count >= 0 in any spelling of a whole number ('3', '3000m', '3Ki', '1e3'; case 127).

    Raises Mistake: NOT_WHOLE, NEGATIVE, EMPTY, UNREADABLE, ABSURD; for a count of GPUs it names the way to a fraction.
    """
    do = "write a whole number, such as 1"
    if "gpu" in field.casefold():
        do += "; a fraction of a GPU is asked for by the annotation gpu-fraction or gpu-memory"
    return _count(text, Fraction(1), field, do, MistakeCode.NOT_WHOLE, "is not a whole number")


def cpus(text: Written, field: str = "cpus") -> int:
    """Milli-CPUs ('500m' is 500, 2.5 is 2500). Raises Mistake: TOO_FINE below 1m, NEGATIVE, and quantity's own."""
    do = "write CPUs such as 2, 0.5 or 500m"
    return _count(text, Fraction(1, 1000), field, do, MistakeCode.TOO_FINE, "is finer than 1m, a thousandth of a CPU")


def memory(text: Written, field: str = "memory") -> int:
    """Bytes ('1Gi' is 2^30, a bare number is bytes). Raises Mistake: TOO_FINE, NEGATIVE, and quantity's own."""
    do = "write bytes with a unit, such as 512Mi or 16Gi"
    return _count(text, Fraction(1), field, do, MistakeCode.TOO_FINE, "is no whole number of bytes (m is a thousandth)")


def _count(text: Written, unit: Fraction, field: str, do: str, code: MistakeCode, wrong: str) -> int:
    counted = quantity(text, field, do) / unit
    if counted < 0:
        raise Mistake(MistakeCode.NEGATIVE, text, field, do)
    if counted.denominator != 1:
        raise Mistake(code, text, field, do, wrong)
    if counted > MOST:
        raise Mistake(MistakeCode.ABSURD, text, field, do)
    return int(counted)


def mib(text: Written, field: str, largest: int | None = None) -> int:
    """GPU memory, a bare whole number of MiB above 0, at most the largest GPU's where that is given (cases 129, 133).

    Raises Mistake: UNIT (with the number that was probably meant), ZERO, NEGATIVE, NOT_WHOLE, TOO_LARGE, ABSURD, ...
    """
    do = "write the memory of one GPU as a bare number of MiB, such as 16384"
    if isinstance(text, str) and not re.fullmatch(r"[+-]?[0-9]+(\.[0-9]*)?", text):
        raise _unit_in_mib(text, field, do)
    try:
        exact = quantity(text, field, do)
    except Mistake as mistake:
        if mistake.code is not MistakeCode.ABSURD or largest is None:
            raise
        raise Mistake(MistakeCode.TOO_LARGE, text, field, do, _above(largest)) from None
    if exact <= 0:
        raise Mistake(MistakeCode.NEGATIVE if exact else MistakeCode.ZERO, text, field, do)
    if exact.denominator != 1:
        raise Mistake(MistakeCode.NOT_WHOLE, text, field, do)
    if largest is not None and exact > largest:
        raise Mistake(MistakeCode.TOO_LARGE, text, field, f"ask for at most {largest} MiB", _above(largest))
    return int(exact)


def _above(largest: int) -> str:
    return f"MiB is more than the {largest} MiB of the largest GPU"


def _unit_in_mib(text: str, field: str, do: str) -> Mistake:
    """What to say of text that is no bare number: with a unit, kind or mistaken, the number of MiB it comes to."""
    if not text.strip():
        return Mistake(MistakeCode.EMPTY, text, field, do)
    loose = re.fullmatch(r"\s*([0-9]{1,15})\s*([mg])i?b?\s*", text, re.IGNORECASE)
    try:
        meant = quantity(text, field) / MIB if suffix(text) else None
    except Mistake:
        meant = Fraction(int(loose[1]) * (1024 if loose[2] in "gG" else 1)) if loose else None
    if meant is None:
        return Mistake(MistakeCode.UNREADABLE, text, field, do)
    figure = math.floor(meant)
    hint = f"write {figure}" if meant == figure else f"that is about {figure} MiB: write the whole number you mean"
    wrong = "carries a unit, but this is a bare number of MiB"
    return Mistake(MistakeCode.UNIT, text, field, hint if figure > 0 else do, wrong)
