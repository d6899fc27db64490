"""What is shown is read back exactly; whatever is written is read or refused by a Mistake, never by anything else."""

import re
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allmende.model.annotations import gpu_request
from allmende.model.mistake import Mistake
from allmende.model.names import check, internal, shorten
from allmende.model.quantity import MOST, Written, cpus, memory, mib, quantity, suffix, whole
from allmende.model.span import SECOND, seconds, show_clock, show_span, slurm_time, write_span
from allmende.model.units import GPU, amount, gpus, share, show_gpus

SPANS = st.integers(0, MOST) | st.integers(0, 100 * 86_400 * SECOND)
TEXT = st.text(max_size=80) | st.text("0123456789.:-+/%eEKMGimdhsun ", max_size=24)
NUMBERS: st.SearchStrategy[Written] = st.integers() | st.floats() | st.fractions() | st.decimals()
PARTS = st.sampled_from([parts for parts in range(1, 2000) if GPU % parts == 0])

READERS: list[Callable[[Written], object]] = [
    quantity,
    lambda v: whole(v, "f"),
    cpus,
    memory,
    lambda v: mib(v, "f"),
    lambda v: mib(v, "f", 40960),
    amount,
    share,
    gpus,
    lambda v: seconds(v, "f"),
    lambda v: slurm_time(v, "f"),  # type: ignore[arg-type]
]


def refusal(read: Callable[[], object]) -> str:
    """The Mistake that reading raises, as text; any other error passes."""
    try:
        read()
    except Mistake as mistake:
        return str(mistake)
    return ""


@given(st.integers(0, MOST) | st.integers(0, 10 * GPU))
def test_gpus_shown_are_read_back(units: int) -> None:
    assert amount(show_gpus(units)) == units


@given(PARTS, st.data())
def test_a_share_is_one_number_in_every_spelling(parts: int, data: st.DataObject) -> None:
    part = Fraction(data.draw(st.integers(1, parts)), parts)
    units = share(f"{part.numerator}/{part.denominator}")
    assert units == share(part) == amount(part) == gpus(part).units == part * GPU


@given(st.integers(1, 1000))
def test_a_float_is_its_shortest_decimal(thousandths: int) -> None:
    assert share(thousandths / 1000) == thousandths * GPU // 1000 == share(f"{thousandths}m")


@given(SPANS, st.booleans())
def test_spans_written_are_read_back(us: int, negative: bool) -> None:
    us = -us if negative else us
    assert seconds(write_span(us), "f", least=None) == us


@given(SPANS)
def test_spans_shown_are_near(us: int) -> None:
    shown = show_span(us)
    off = abs(seconds(shown, "f") - us)
    # off by at most half of the smaller unit, of which the larger, shown at least once, has 24 or more
    assert off * 24 <= us if us >= 60 * SECOND else off <= SECOND // 2
    assert " 60 " not in shown
    assert shown != "60 s"


@given(st.integers(0, MOST // SECOND))
def test_the_clock_is_read_back(s: int) -> None:
    clock = show_clock(s * SECOND)
    assert seconds(clock, "f") == s * SECOND
    assert slurm_time(clock) == (s or None)


@given(st.integers(0, 10**6), st.integers(0, 99), st.integers(0, 999), st.integers(0, 999))
def test_slurm_sums_its_fields(d: int, h: int, m: int, s: int) -> None:
    assert (slurm_time(f"{d}-{h:03d}:{m}:{s}") or 0) == d * 86_400 + h * 3600 + m * 60 + s
    assert (slurm_time(f"{m}:{s}") or 0) == m * 60 + s
    assert (slurm_time(m) or 0) == m * 60


@given(st.integers(0, 2**40))
def test_quantities_agree_in_every_spelling(n: int) -> None:
    assert whole(str(n), "f") == whole(f"{n}000m", "f") == whole(f"{n}e0", "f") == n
    assert memory(f"{n}Ki") == n * 1024
    assert cpus(f"{n}m") == n
    assert suffix(f"{n}Ki") == "Ki"


@pytest.mark.parametrize("read", READERS)
@given(value=TEXT | NUMBERS)
def test_anything_is_read_or_refused_by_a_mistake(read: Callable[[Written], object], value: Written) -> None:
    assert refusal(lambda: read(value)).isprintable()


@given(st.dictionaries(st.text(max_size=20) | st.sampled_from(["gpu-memory", "gpu-fraction"]), TEXT, max_size=3))
def test_annotations_are_read_or_refused_by_a_mistake(annotations: dict[str, str]) -> None:
    try:
        wish = gpu_request(annotations)
    except Mistake:
        return
    assert min(wish.gpus.units, wish.mib) >= 0
    assert all(str(warning).isprintable() for warning in wish.warnings)


@given(st.text() | st.text("aB3._- é", max_size=80))
def test_names_are_safe_inside_and_whole_outside(name: str) -> None:
    inside = internal(name)
    assert internal(inside) == inside or inside != name
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", inside)
    assert refusal(lambda: check(name, "f")).isprintable()


@given(st.text(), st.integers(0, 40))
def test_a_shortened_name_fits_and_is_marked(name: str, width: int) -> None:
    shown = shorten(name, width)
    assert len(shown) <= max(width, 0)
    assert shown == name or width == 0 or "…" in shown
