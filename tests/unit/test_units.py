"""Units, quantities, spans, mistakes and GPU annotations, each as a table of what is written and how it is read."""

import pickle
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from allmende.model import span, units
from allmende.model.annotations import GpuWish, gpu_request
from allmende.model.mistake import Mistake, MistakeCode, Mistakes
from allmende.model.quantity import MOST, cpus, memory, mib, quantity, suffix, whole
from allmende.model.span import DAY, HOUR, MINUTE, SECOND, seconds, show_clock, show_span, slurm_time, write_span
from allmende.model.units import GPU, GpuCount, amount, gpus, share, show_gpus

NO = MistakeCode
HUGE = "9" * 5000

WHOLE: list[tuple[Any, Any]] = [  # case 127
    ("3", 3), ("3000m", 3), ("3Ki", 3072), ("1e3", 1000), ("1E3", 1000), ("0", 0), ("3.0", 3), ("1G", 10**9), (8, 8),
    (3.0, 3), ("+3", 3), ("3.", 3), (".5k", 500), ("9223372036854775807", MOST), ("0.5", NO.NOT_WHOLE),
    ("1500m", NO.NOT_WHOLE), (0.5, NO.NOT_WHOLE), ("-1", NO.NEGATIVE), (-1, NO.NEGATIVE), ("", NO.EMPTY),
    (" ", NO.EMPTY), ("eight", NO.UNREADABLE), ("0x8", NO.UNREADABLE), ("8 ", NO.UNREADABLE), (" 8", NO.UNREADABLE),
    ("1e3Ki", NO.UNREADABLE), ("--1", NO.UNREADABLE), ("1K", NO.UNREADABLE), ("1_000", NO.UNREADABLE),
    ("８", NO.UNREADABLE), ("8\n", NO.UNREADABLE), ("1e", NO.UNREADABLE), (".", NO.UNREADABLE),
    ("9223372036854775808", NO.ABSURD), ("8Ei", NO.ABSURD), ("1e999999999", NO.ABSURD), (HUGE, NO.ABSURD),
    (10**5000, NO.ABSURD), (1e300, NO.ABSURD), (True, NO.WRONG_KIND), (None, NO.WRONG_KIND),
    (float("nan"), NO.WRONG_KIND), ([], NO.WRONG_KIND),
]  # fmt: skip

QUANTITY: list[tuple[Any, Any]] = [
    ("500m", Fraction(1, 2)), ("2.5", Fraction(5, 2)), ("1Ti", Fraction(2**40)), ("1E", Fraction(10**18)),
    ("7Ei", Fraction(7 * 2**60)), ("1n", Fraction(1, 10**9)), ("1u", Fraction(1, 10**6)), ("2k", Fraction(2000)),
    ("1e-3", Fraction(1, 1000)), ("-1", Fraction(-1)), (0.1, Fraction(1, 10)), (Decimal("0.25"), Fraction(1, 4)),
    (Decimal("0E+99999"), Fraction(0)), (5e-324, NO.ABSURD), (Decimal("1E+99999"), NO.ABSURD),
    ("1e-999999999", NO.ABSURD), (Decimal("NaN"), NO.WRONG_KIND),
]  # fmt: skip

CPUS: list[tuple[Any, Any]] = [
    ("500m", 500), (2.5, 2500), ("2", 2000), (0, 0), (0.1, 100), ("1m", 1), ("0.5m", NO.TOO_FINE),
    ("100u", NO.TOO_FINE), (-1, NO.NEGATIVE), ("9223372036854775807", NO.ABSURD), ("two", NO.UNREADABLE),
]  # fmt: skip

MEMORY: list[tuple[Any, Any]] = [
    ("1Gi", 2**30), ("1.5Gi", 3 * 2**29), ("1G", 10**9), ("1024", 1024), (0, 0), ("100m", NO.TOO_FINE),
    ("-1Gi", NO.NEGATIVE), ("16gb", NO.UNREADABLE), ("8Ei", NO.ABSURD),
]  # fmt: skip

SHARE: list[tuple[Any, Any]] = [
    ("0.25", GPU // 4), ("1/7", GPU // 7), ("25%", GPU // 4), ("12.5%", GPU // 8), (0.5, GPU // 2), (1, GPU),
    ("1", GPU), ("250m", GPU // 4), (Fraction(15, 112), GPU * 15 // 112), (Decimal("0.001"), GPU // 1000),
    ("1/48", GPU // 48), (".5", GPU // 2), ("0.3333", NO.TOO_FINE), ("1/17", NO.TOO_FINE), (0, NO.ZERO),
    ("0%", NO.ZERO), ("-0.5", NO.NEGATIVE), ("-1/2", NO.NEGATIVE), (1.5, NO.NOT_A_SHARE), ("150%", NO.NOT_A_SHARE),
    (float("nan"), NO.WRONG_KIND), (float("inf"), NO.WRONG_KIND), ("1/0", NO.UNREADABLE), ("half", NO.UNREADABLE),
    ("", NO.EMPTY), ("%", NO.UNREADABLE), ("1/7/2", NO.UNREADABLE), ("9999999999999999999/2", NO.ABSURD),
    (False, NO.WRONG_KIND),
]  # fmt: skip

AMOUNT: list[tuple[Any, Any]] = [
    (0, 0), (2.5, GPU * 5 // 2), ("15/7", GPU * 15 // 7), ("250%", GPU * 5 // 2), (-2, NO.NEGATIVE),
    ("nan", NO.UNREADABLE),
]  # fmt: skip

GPUS: list[tuple[Any, Any]] = [
    (3, GpuCount(3, 0)), ("3", GpuCount(3, 0)), (0, GpuCount(0, 0)), (0.25, GpuCount(0, GPU // 4)),
    ("1/7", GpuCount(0, GPU // 7)), ("14/7", GpuCount(2, 0)), ("100%", GpuCount(1, 0)),
    (9223372036854775807, GpuCount(MOST, 0)), ("9223372036854775807", GpuCount(MOST, 0)), (1.5, NO.NOT_A_SHARE),
    ("1500m", NO.NOT_A_SHARE), ("8/7", NO.NOT_A_SHARE), (-1, NO.NEGATIVE), (-0.5, NO.NEGATIVE),
    (0.00000001, NO.TOO_FINE), (9223372036854775808, NO.ABSURD), (1e300, NO.ABSURD), ("", NO.EMPTY),
    ("all", NO.UNREADABLE), (True, NO.WRONG_KIND),
]  # fmt: skip

SLURM: list[tuple[Any, Any]] = [  # cases 160 and 166
    ("30", 1800), ("4:00", 240), ("3:00", 180), ("1:30", 90), ("1:00:00", 3600), ("2-12", 216000),
    ("2-12:30", 217800), ("2-12:30:15", 217815), ("1-02:03:04", 93784), ("0", None), ("UNLIMITED", None),
    ("INFINITE", None), ("unlimited", None), ("0:00", None), ("1-036:00:00", 216000), ("0-023:30:00", 84600),
    ("6-24:00:00", 604800), ("7-00:00:00", 604800), ("0:240:0", 14400), ("48:00:00", 172800), ("90", 5400),
    (90, 5400), (0, None), ("1h", NO.UNREADABLE), ("-5", NO.UNREADABLE), (-5, NO.UNREADABLE), ("-1", NO.UNREADABLE),
    ("", NO.EMPTY), (" 30", NO.UNREADABLE), ("1:2:3:4", NO.UNREADABLE), ("1-2-3", NO.UNREADABLE),
    ("1.5", NO.UNREADABLE), ("30\n", NO.UNREADABLE), ("none", NO.UNREADABLE), (1.5, NO.UNREADABLE),
    (True, NO.WRONG_KIND), (None, NO.WRONG_KIND), ("9223372036854775807", NO.ABSURD), ("9" * 30, NO.UNREADABLE),
    (10**5000, NO.ABSURD),
]  # fmt: skip

SECONDS: list[tuple[Any, Any]] = [
    (90, 90 * SECOND), (1.5, 1_500_000), (0.1, 100_000), (0, 0), ("90", 90 * SECOND), ("90s", 90 * SECOND),
    ("15m", 15 * MINUTE), ("4h", 4 * HOUR), ("2d", 2 * DAY), ("1h30m", 90 * MINUTE), ("500ms", 500_000), ("5us", 5),
    ("1.5h", 90 * MINUTE), ("1d500ms", DAY + 500_000), ("2 h 05 min", 125 * MINUTE), ("1:30:00", 90 * MINUTE),
    ("1-02:03:04", 93784 * SECOND), ("2-12", 60 * HOUR), ("2-12:30", 3630 * MINUTE), ("3:00", NO.AMBIGUOUS),
    ("0.5us", NO.TOO_FINE), (0.0000001, NO.TOO_FINE), (-5, NO.NEGATIVE), ("-5", NO.NEGATIVE), ("", NO.EMPTY),
    ("soon", NO.UNREADABLE), ("1h30", NO.UNREADABLE), ("30m1h", NO.UNREADABLE), ("1H", NO.UNREADABLE),
    (" 5s", NO.UNREADABLE), ("5s ", NO.UNREADABLE), ("-5s", NO.UNREADABLE), ("UNLIMITED", NO.UNREADABLE),
    (True, NO.WRONG_KIND), (None, NO.WRONG_KIND), (float("inf"), NO.WRONG_KIND), (MOST, NO.ABSURD),
    ("9999999999999999999d", NO.ABSURD), ("9999999999999d", NO.ABSURD), (HUGE, NO.UNREADABLE),
]  # fmt: skip

MIB: list[tuple[Any, Any]] = [
    ("16384", 16384), (16384, 16384), ("3000.0", 3000), ("0", NO.ZERO), ("-1", NO.NEGATIVE), ("16Gi", NO.UNIT),
    ("3000mb", NO.UNIT), ("16GB", NO.UNIT), ("6000Mi", NO.UNIT), ("100m", NO.UNIT), ("0.5", NO.NOT_WHOLE),
    ("", NO.EMPTY), ("1e3", NO.UNREADABLE), ("much", NO.UNREADABLE), ("9223372036854775808", NO.ABSURD),
    (HUGE, NO.ABSURD),
]  # fmt: skip


def of_field(read: Callable[[Any, str], object]) -> Callable[[Any], object]:
    return lambda value: read(value, "jobs[0].field")


TABLES: dict[str, tuple[Callable[[Any], object], list[tuple[Any, Any]]]] = {
    "whole": (of_field(whole), WHOLE),
    "quantity": (of_field(quantity), QUANTITY),
    "cpus": (of_field(cpus), CPUS),
    "memory": (of_field(memory), MEMORY),
    "share": (of_field(share), SHARE),
    "amount": (of_field(amount), AMOUNT),
    "gpus": (of_field(gpus), GPUS),
    "slurm_time": (of_field(slurm_time), SLURM),
    "seconds": (of_field(seconds), SECONDS),
    "mib": (of_field(mib), MIB),
}


@pytest.mark.parametrize(
    ("reader", "written", "expected"),
    [
        pytest.param(read, written, expected, id=f"{name}-{str(written)[:20] if written != 10**5000 else 'vast'!r}")
        for name, (read, table) in TABLES.items()
        for written, expected in table
    ],
)
def test_what_is_written_is_read_exactly_or_refused(reader: Any, written: Any, expected: Any) -> None:
    if not isinstance(expected, MistakeCode):
        result = reader(written)
        assert (result, type(result)) == (expected, type(expected))
        return
    with pytest.raises(Mistake) as caught:
        reader(written)
    mistake = caught.value
    assert mistake.code is expected
    assert mistake.where == "jobs[0].field"
    assert mistake.do
    line = str(mistake)
    assert line.isprintable()
    assert len(line) < 500
    if isinstance(written, str) and written.isprintable() and len(written) < 100:
        assert mistake.what == written
        assert f"'{written}'" in line


MESSAGES: list[tuple[Callable[[], object], list[str]]] = [
    *((lambda v=v: whole(v, "nvidia.com/gpu"), ["whole number", re.escape(v), "fraction", "annotation"])
      for v in ("0.5", "1500m", "-1", "", "eight", "0x8", "8 ", "9223372036854775808")),
    (lambda: whole("0.5", "pods"), ["^pods: '0.5' is not a whole number; write a whole number, such as 1$"]),
    (lambda: mib("16Gi", "gpu_mem_mib"), ["16Gi", "MiB", "16384"]),
    (lambda: mib("16G", "gpu_mem_mib"), ["16G", "MiB", "15258"]),
    (lambda: mib("16gb", "gpu_mem_mib"), ["16gb", "MiB", "16384"]),
    (lambda: mib("3000mb", "gpu-memory"), ["3000mb", "MiB", "number", "write 3000"]),
    (lambda: mib("4294967296", "gpu_mem_mib", largest=40960), ["4294967296", "40960"]),
    (lambda: mib("9" * 30, "gpu_mem_mib", largest=40960), ["9" * 30, "40960"]),
    (lambda: gpus(1.5), ["1.5", "whole", "share", "1 or 2"]),
    (lambda: share("0.3333"), ["0.3333", "1/3 can be counted"]),
    (lambda: share("1/17"), ["1/17", "1/16 can be counted"]),
    (lambda: memory("100m"), ["100m", "thousandth", "Mi"]),
    (lambda: seconds("3:00", "limit"), ["3:00", "3h00m", "3m00s"]),
    (lambda: seconds(0, "half_life", least=1), ["half.?life", r"\b0\b"]),
    (lambda: seconds(-5, "half_life", least=1), ["half.?life", "-5"]),
    (lambda: seconds(5, "slice", least=MINUTE), ["slice", r"\b5\b", "1m"]),
    (lambda: slurm_time("1h"), ["1h", "hours:minutes:seconds", "UNLIMITED"]),
]  # fmt: skip


@pytest.mark.parametrize(("read", "patterns"), MESSAGES)
def test_a_refusal_says_what_is_wrong_and_what_to_do(read: Callable[[], object], patterns: list[str]) -> None:
    with pytest.raises(Mistake) as caught:
        read()
    for pattern in patterns:
        assert re.search(pattern, str(caught.value), re.IGNORECASE), (pattern, str(caught.value))


def test_a_gpu_divides_into_every_share_in_use() -> None:
    assert all(GPU % parts == 0 for parts in (*range(1, 17), 20, 24, 32, 48, 50, 64, 100, 112, 1000))
    assert GPU == 2**6 * 3**2 * 5**3 * 7 * 11 * 13
    assert units.SECOND == span.SECOND == 1_000_000


def test_units_of_a_count() -> None:
    assert [count.units for count in (GpuCount(3, 0), GpuCount(0, 5), gpus(MOST))] == [3 * GPU, 5, MOST * GPU]


@pytest.mark.parametrize(("written", "unit"), [("20096Mi", "Mi"), ("1", ""), ("1e3", ""), ("3000m", "m"), ("1E", "E")])
def test_the_unit_of_a_quantity(written: str, unit: str) -> None:
    assert suffix(written) == unit


@pytest.mark.parametrize(
    ("gpu_units", "shown"),
    [
        (0, "0"), (3 * GPU, "3"), (GPU // 4, "0.25"), (GPU // 7, "1/7"), (GPU * 5 // 2, "2.5"),
        (GPU * 15 // 7, "15/7"), (GPU // 1000, "0.001"), (GPU // 64, "1/64"), (GPU // 3, "1/3"), (1, "1/72072000"),
        (-GPU // 4, "-0.25"), (100 * GPU, "100"), (-GPU // 7, "-1/7"),
    ],
)  # fmt: skip
def test_gpus_are_shown_exactly(gpu_units: int, shown: str) -> None:
    assert show_gpus(gpu_units) == shown


@pytest.mark.parametrize(
    ("us", "shown", "written", "clock"),
    [
        (0, "0 s", "0s", "00:00:00"),
        (7, "7 us", "7us", "00:00:00"),
        (500_000, "500 ms", "500ms", "00:00:00"),
        (12_400_000, "12 s", "12s400ms", "00:00:12"),
        (59_500_000, "1 min 00 s", "59s500ms", "00:00:59"),
        (303 * SECOND, "5 min 03 s", "5m3s", "00:05:03"),
        (125 * MINUTE, "2 h 05 min", "2h5m", "02:05:00"),
        (DAY - SECOND, "1 d 00 h", "23h59m59s", "23:59:59"),
        (3 * DAY + 4 * HOUR, "3 d 04 h", "3d4h", "3-04:00:00"),
        (93784 * SECOND, "1 d 02 h", "1d2h3m4s", "1-02:03:04"),
        (-90 * SECOND, "-1 min 30 s", "-90.000000", "-00:01:30"),
    ],
)
def test_spans_are_shown_written_and_told_by_the_clock(us: int, shown: str, written: str, clock: str) -> None:
    assert (show_span(us), write_span(us), show_clock(us)) == (shown, written, clock)


def test_a_moment_may_be_negative() -> None:
    assert seconds(-600, "started", least=None) == -600 * SECOND


ANNOTATIONS: list[tuple[dict[str, str], GpuWish]] = [
    ({}, GpuWish()),
    ({"gpu-memory": "3000"}, GpuWish(mib=3000)),
    ({"gpu-memory": "20000"}, GpuWish(mib=20000)),
    ({"gpu-fraction": "0.5"}, GpuWish(gpus=GpuCount(0, GPU // 2))),
    ({"gpu-fraction": "1"}, GpuWish(gpus=GpuCount(1, 0))),
    ({"team": "vision", "example.com/has-gpu": "yes", "memory": "2Gi", "sidecar.istio.io/inject": "true"}, GpuWish()),
]


@pytest.mark.parametrize(("annotations", "wish"), ANNOTATIONS)
def test_annotations_ask_for_a_part_of_a_gpu(annotations: dict[str, str], wish: GpuWish) -> None:
    assert gpu_request(annotations) == wish


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("nvidia.com/gpu.memory", "gpu-memory"), ("GPU-Memory", "gpu-memory"), ("gpu_mem_mib", "gpu-memory"),
        ("nvidia.com/gpumem", "gpu-memory"), ("kai.scheduler/gpu-memory", "gpu-memory"),
        ("gpu.fraction", "gpu-fraction"), ("gpu-fraction-num-devices", "gpu-fraction"),
        ("nvidia.com/gpucores", "gpu-fraction"), ("nvidia.com/gpu", "nvidia.com/gpu"),
    ],
)  # fmt: skip
def test_a_look_alike_is_no_request_and_says_so(name: str, instead: str) -> None:
    wish = gpu_request({name: "6000Mi"})
    assert (wish.gpus.units, wish.mib) == (0, 0)
    (warning,) = wish.warnings
    assert warning.params["name"] == name
    assert instead in warning.params["instead"]
    assert name in str(warning)
    assert warning.params["instead"] in str(warning)


@pytest.mark.parametrize(
    ("annotations", "code"),
    [
        ({"gpu-memory": "3000mb"}, NO.UNIT),
        ({"gpu-memory": "0"}, NO.ZERO),
        ({"gpu-memory": "20000"}, NO.TOO_LARGE),
        ({"gpu-fraction": "1.5"}, NO.NOT_A_SHARE),
        ({"gpu-fraction": "0"}, NO.ZERO),
        ({"gpu-fraction": "0.5", "gpu-memory": "3000"}, NO.CONTRADICTION),
    ],
)
def test_an_unreadable_annotation_is_refused(annotations: dict[str, str], code: MistakeCode) -> None:
    with pytest.raises(Mistake) as caught:
        gpu_request(annotations, largest_mib=16384)
    assert caught.value.code is code
    assert caught.value.where.startswith("annotations")


def test_mistakes_are_placed_collected_and_pickled() -> None:
    first = Mistake(NO.ZERO, 0, "gpus", "write 1").at("a.yaml:3:7")
    second = Mistake(NO.DUPLICATE, "a\nb", "name", "rename one")
    both = Mistakes([first, Mistakes([second])])
    assert str(both) == "a.yaml:3:7: gpus: 0 is zero; write 1\nname: 'a\\nb' is used twice; rename one"
    assert both.each() == (first, second)
    assert (both.code, both.where, first.what, second.what) == (NO.ZERO, "a.yaml:3:7: gpus", "0", "a\nb")
    assert str(both.at("x")).count("x: ") == 2
    for mistake in (first, both):
        assert str(pickle.loads(pickle.dumps(mistake))) == str(mistake)
    assert isinstance(both, ValueError)
