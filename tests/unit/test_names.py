"""Given names, the label-safe names derived from them, and shortened names."""

import re

import pytest

from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.names import check, internal, shorten

LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
SERIES = "experiment-2026-09-24-llama-sft-lr-3e-5-bs-512-seed-0001-of-0100-run-"
HASHED = internal("实验-01")
MARK = "-[a-z2-7]{16}"


@pytest.mark.parametrize(
    ("given", "pattern"),
    [
        ("a", "a"),
        ("UPPER_case.job", r"UPPER_case\.job"),
        ("x" * 63, "x{63}"),
        ("x" * 64, "x{46}" + MARK),
        (SERIES + "a", "experiment-2026-09-24-llama-sft-lr-3e-5-bs-512" + MARK),
        ("Größe-Test 1", "Gro-?e-Test-1" + MARK),
        ("实验-01", "01" + MARK),
        ("학습", "n" + MARK),
        ("café", "cafe" + MARK),
        ("-a-", "-?a" + MARK),
        ("a ", "a" + MARK),
        ("a/b/../c", r"a-b-\.\.-c" + MARK),
        ("\ud800", "n" + MARK),
        (HASHED, "01-[a-z2-7]{16}" + MARK),  # a name that looks like one of ours is hashed again
    ],
)
def test_an_internal_name_is_safe_and_readable(given: str, pattern: str) -> None:
    name = internal(given)
    assert re.fullmatch(pattern, name), name
    assert LABEL.fullmatch(name)
    assert len(name) <= 63
    assert internal(given) == name


def test_internal_names_stay_distinct() -> None:
    given = [f"{stem}{i}" for stem in (SERIES, "작업 ") for i in range(2000)]
    given += ["Größe-Test 1", "Größe-Test  1", "Gro-e-Test-1", "实验-01", "实验-02", "01", "café", "cafe\u0301"]
    given += ["a", "A", "a ", " a", SERIES + "a", SERIES + "b"]
    given += [internal(name) for name in given]
    assert len({internal(name) for name in given}) == len(set(given))


def test_internal_names_do_not_depend_on_the_run() -> None:
    assert internal("실험 1") == "1-3ardh3rgl7nvowm3"


@pytest.mark.parametrize("name", ["a", "Größe-Test 1", "实验-01", "학습 실험", "👩‍💻", "a/b", "x" * 253, "0", "null"])
def test_any_script_may_name_a_job(name: str) -> None:
    assert check(name, "jobs[0].name") == name


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", MistakeCode.EMPTY),
        ("  ", MistakeCode.EMPTY),
        ("x" * 254, MistakeCode.TOO_LONG),
        ("a\tb", MistakeCode.CONTROL),
        ("a\n", MistakeCode.CONTROL),
        ("a\x00", MistakeCode.CONTROL),
        ("a\x85", MistakeCode.CONTROL),
        ("a\u2028b", MistakeCode.CONTROL),
        ("a\u202eb", MistakeCode.CONTROL),
        ("\ud800", MistakeCode.CONTROL),
        (5, MistakeCode.WRONG_KIND),
        (None, MistakeCode.WRONG_KIND),
    ],
)
def test_what_may_not_be_a_name(name: str, code: MistakeCode) -> None:
    with pytest.raises(Mistake) as caught:
        check(name, "jobs[0].name")
    assert caught.value.code is code
    assert str(caught.value).startswith("jobs[0].name: ")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [("abcdef", 6, "abcdef"), ("abcdef", 5, "ab…ef"), ("abcdef", 4, "ab…f"), ("abcdef", 2, "a…"), ("abcdef", 1, "…"),
     ("abcdef", 0, ""), ("", 3, ""), (SERIES + "a", 20, "experiment…100-run-a"), ("학습실험하나", 5, "학습…하나")],
)  # fmt: skip
def test_a_cut_name_bears_the_mark(name: str, width: int, shown: str) -> None:
    assert shorten(name, width) == shown
    assert len(shorten(name, width)) <= width
