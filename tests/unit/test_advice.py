"""Settings: what is refused, and what is only warned about."""

import pytest

from allmende.model.advice import (
    HALF_LIFE,
    UNLIMITED,
    check_projects,
    guarantee,
    half_life,
    one_unit,
    resolved,
    settings_advice,
)
from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.tenancy import Project
from allmende.model.units import GPU


def project(name: str, sure: int = 0, parent: str = "", cap: int | None = None) -> Project:
    units = sure if sure < 0 else sure * GPU
    return Project(name, parent, guarantee=units, cap=None if cap is None else cap * GPU)


REFUSED = [
    ([project("a"), project("a")], MistakeCode.DUPLICATE, "projects.a:"),
    ([project("a", parent="tpo"), project("top")], MistakeCode.UNKNOWN_NAME, "did you mean top"),
    ([project("a", parent="b"), project("b", parent="a")], MistakeCode.CYCLE, "a > b > a"),
    ([project("a", parent="a")], MistakeCode.CYCLE, "a > a"),
    ([project("a", -2)], MistakeCode.NEGATIVE, "'-2'"),
    ([project("a", cap=-1)], MistakeCode.NEGATIVE, "cap"),
    (
        [project("top", 10), project("a", UNLIMITED, "top")],
        MistakeCode.CONTRADICTION,
        "top, which is limited to 10 GPUs",
    ),
    ([project("top", cap=4), project("a", UNLIMITED, "top")], MistakeCode.CONTRADICTION, "top"),
]


@pytest.mark.parametrize(("projects", "code", "says"), REFUSED)
def test_refused(projects: list[Project], code: MistakeCode, says: str) -> None:
    with pytest.raises(Mistake) as refused:
        check_projects(projects)
    assert refused.value.code is code
    assert says in str(refused.value)


def test_unlimited_is_resolved_before_anything_is_added() -> None:
    projects = [project("top"), project("a", UNLIMITED, "top"), project("b", 5, "top")]
    check_projects(projects)
    assert [p.guarantee > 1000 * GPU for p in resolved(projects)] == [False, True, False]
    assert settings_advice(projects, 8 * GPU, {}) == ()


@pytest.mark.parametrize(("written", "units"), [("-1", UNLIMITED), (-1, UNLIMITED), (2.5, GPU * 5 // 2), ("0", 0)])
def test_guarantees_are_read(written: str | float, units: int) -> None:
    assert guarantee(written) == units


def test_numbers_without_a_meaning_are_refused() -> None:
    for value in (-2, "-0.5"):
        with pytest.raises(Mistake, match=str(value)):
            guarantee(value)
    for value in (0, -5, "0s"):
        with pytest.raises(Mistake, match="half_life"):
            half_life(value)
    assert half_life(None) == HALF_LIFE


def test_siblings_state_one_unit() -> None:
    with pytest.raises(Mistake) as refused:
        one_unit({"a": {"gpu.memory": "20096Mi"}, "b": {"gpu.memory": "1"}})
    assert refused.value.code is MistakeCode.UNIT
    assert all(word in str(refused.value) for word in ("of its sibling a", "projects.b", "gpu.memory", "Mi"))
    one_unit({"a": {"gpu.memory": "20096Mi"}, "b": {"gpu.memory": "20Gi", "gpu": "1"}, "c": {"gpu.memory": "0"}})


ADVICE = [
    ([project("q", 16, cap=16)], {}, ["q is guaranteed 16 GPUs, the cluster has 8"]),
    ([project("a", 5), project("b", 5)], {}, ["guaranteed 10 GPUs together, the cluster has 8"]),
    ([project("q", 2, cap=4)], {"q": 6 * GPU}, ["q uses 6 GPUs and may use 4"]),
    ([project("q", 4, cap=2)], {}, ["q is guaranteed 4 GPUs and may use 2"]),
    ([project("top", 6), project("a", 4, "top"), project("b", 4, "top")], {}, ["below top are guaranteed 8"]),
    ([project("top"), project("a", 4, "top"), project("b", 4, "top")], {}, []),
    ([project("q", 8)], {"q": 8 * GPU}, []),
]


@pytest.mark.parametrize(("projects", "use", "says"), ADVICE)
def test_warned(projects: list[Project], use: dict[str, int], says: list[str]) -> None:
    found = [str(advice) for advice in settings_advice(projects, 8 * GPU, use)]
    assert len(found) == len(says)
    assert all(text in line for text, line in zip(says, found, strict=True))
