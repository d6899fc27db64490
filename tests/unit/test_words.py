"""The catalogues: complete in both languages, whole sentences, and the words that people look for."""

import inspect
import re
from string import Formatter
from typing import get_args

import pytest

from allmende.engine.apply import apply
from allmende.engine.explain import explain, growth_reason
from allmende.engine.plan import plan
from allmende.engine.state import State
from allmende.model import reason as reason_module
from allmende.model import remedy as remedy_module
from allmende.model.cluster import Device, Node, NodeState, Pod, Slice
from allmende.model.decision import Cause, Close, Decision, Evict, Grow, Hold, Release, Start, Stop
from allmende.model.event import (
    Cancelled,
    Checkpointed,
    Ended,
    Event,
    LevelsSet,
    NodeGone,
    NodeSet,
    PodEnded,
    PodGone,
    PodLost,
    PolicySet,
    ProjectSet,
    Resized,
    Submitted,
    Ticked,
    Up,
)
from allmende.model.policy import Policy
from allmende.model.reason import Code, Param, Reason, Waiting
from allmende.model.remedy import Change, Remedy
from allmende.model.request import Ask
from allmende.model.span import HOUR, MINUTE, SECOND
from allmende.model.tenancy import Project
from allmende.model.units import GPU
from allmende.model.workload import Role, Workload
from allmende.words import LANGUAGES, en, ko, say, say_decision, say_event, say_remedy
from allmende.words.catalogue import Catalogue
from allmende.words.figure import clock, gpu_hours
from allmende.words.params import COMMON, PARAMS, REMEDY_PARAMS, Kind
from tests.property import states

CATALOGUES = {"en": en.CATALOGUE, "ko": ko.CATALOGUE}
GIVEN = {code for code, _ in en.CATALOGUE.given}
HANGUL = re.compile(r"[가-힣]")
CHANGING = re.compile(r"\{(\w+)\}(은|는|이|가|을|를|과|와|으로|로|이라|라)(?=[\s,.)]|$)")


def names(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def example(code: Code) -> dict[str, Param]:
    """Params of every kind with figures one can find again."""
    figure: dict[Kind, Param] = {
        Kind.UNITS: 4 * GPU,
        Kind.MIB: 20_000,
        Kind.CPUS: 6_000,
        Kind.BYTES: 2**34,
        Kind.SPAN: 86_340 * SECOND,
        Kind.CLOCK: 86_400 * SECOND,
        Kind.WHEN: "afterok",
        Kind.GPU_HOURS: 5 * GPU * HOUR // 2,
    }
    return {name: figure.get(kind, f"a-{name}" if kind is Kind.NAME else 3) for name, kind in PARAMS[code].items()}


def test_every_code_has_its_params_named_in_the_comment_beside_it() -> None:
    line = r'^    [A-Z_]+ = (?:\(\n +)?"(\w+)"(?:  # (.*))?$'
    lines = re.findall(line, inspect.getsource(reason_module.Code), re.MULTILINE)
    comments = {Code(value): comment for value, comment in lines}
    assert set(comments) == set(Code) == set(PARAMS)
    for code, kinds in PARAMS.items():
        said = set(re.findall(r"\w+", comments[code]))
        assert set(kinds) <= said, code


def test_every_change_has_its_params_named_in_the_comment_beside_it() -> None:
    line = r'^    [A-Z_]+ = (?:\(\n +)?"(\w+)"  # (.*)$'
    lines = re.findall(line, inspect.getsource(remedy_module.Change), re.MULTILINE)
    comments = {Change(value): comment for value, comment in lines}
    assert set(comments) == set(Change) == set(REMEDY_PARAMS)
    for change, kinds in REMEDY_PARAMS.items():
        assert set(kinds) <= set(re.findall(r"\w+", comments[change])), change


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_is_complete_and_uses_only_documented_params(language: str) -> None:
    words = CATALOGUES[language]
    assert set(words.reasons) == set(Code)
    assert set(words.waiting) == set(Waiting)
    assert set(words.causes) == set(Cause)
    assert set(words.given) == set(en.CATALOGUE.given)
    assert set(words.decisions) == set(en.CATALOGUE.decisions)
    assert set(words.events) == set(en.CATALOGUE.events)
    for code, template in words.reasons.items():
        assert names(template) <= set(PARAMS[code]), code
    for (code, given), template in words.given.items():
        assert set(given) <= set(PARAMS[code]), code
        assert names(template) <= set(PARAMS[code]), code
    assert names(words.on_model) == {"model", "sentence"}
    assert set(words.remedies) == set(Change)
    assert set(words.remedies_given) == set(en.CATALOGUE.remedies_given)
    for change, template in words.remedies.items():
        assert names(template) <= set(REMEDY_PARAMS[change]), change
    for (change, given), template in words.remedies_given.items():
        assert set(given) <= names(template) == set(REMEDY_PARAMS[change]), change


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("part", ["decisions", "events", "screen"])
def test_both_languages_tell_the_rest_with_the_same_params(language: str, part: str) -> None:
    for key, template in getattr(en.CATALOGUE, part).items():
        assert names(getattr(CATALOGUES[language], part)[key]) == names(template), key


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("code", Code)
def test_every_reason_is_whole_sentences_with_all_its_figures(code: Code, language: str) -> None:
    text = say(Reason(code, example(code), Waiting.NEEDS_CHANGE), language)
    assert "?" not in text
    assert "{" not in text
    assert text.endswith(".")
    assert text.isprintable()
    assert bool(HANGUL.search(text)) == (language == "ko")
    for name in names(CATALOGUES[language].reasons[code]):
        assert PARAMS[code][name] is not Kind.NAME or f"a-{name}" in text or code in GIVEN, name


def test_no_korean_particle_that_changes_follows_a_name() -> None:
    for code, template, kinds in [*_korean_reasons(ko.CATALOGUE), *_korean_remedies(ko.CATALOGUE)]:
        for name, particle in CHANGING.findall(template):
            kind = kinds[name]
            assert kind in {Kind.UNITS, Kind.PODS, Kind.NODES, Kind.GPUS, Kind.CPUS, Kind.SLOTS, Kind.POD_SLOTS}, (
                code,
                name,
            )
            assert particle in {"를", "가", "는", "와", "로", "라"}, (code, name)  # after '개', which ends in a vowel
    for key, template in (*ko.CATALOGUE.decisions.items(), *ko.CATALOGUE.events.items()):
        for name, _ in CHANGING.findall(template):
            assert name in {"pods", "gpus"}, key


def _korean_reasons(words: Catalogue) -> list[tuple[str, str, dict[str, Kind]]]:
    texts = [*words.reasons.items(), *((code, text) for (code, _), text in words.given.items())]
    return [(code, text, {**COMMON, **PARAMS[code]}) for code, text in texts]


def _korean_remedies(words: Catalogue) -> list[tuple[str, str, dict[str, Kind]]]:
    texts = [*words.remedies.items(), *((change, text) for (change, _), text in words.remedies_given.items())]
    return [(change, text, REMEDY_PARAMS[change]) for change, text in texts]


@pytest.mark.parametrize(
    ("remedy", "english", "korean"),
    [
        (
            Remedy(Change.FEWER_PODS, {"asked": 4, "pods": 1}),
            "With 1 pod instead of 4 it could start now.",
            "파드 4개 대신 파드 1개만",
        ),
        (
            Remedy(Change.FEWER_GPUS, {"asked": 9, "gpus": 8}),
            "With 8 GPUs for each pod instead of 9 it could start now.",
            "GPU 9개 대신 GPU 8개만",
        ),
        (
            Remedy(Change.FEWER_CPUS, {"asked": 6500, "cpus": 4000}),
            "With 4 CPUs for each pod instead of 6.5 CPUs it could start now.",
            "CPU 6.5개 대신 CPU 4개만",
        ),
        (
            Remedy(Change.OTHER_MODEL, {"asked": "H100/H200", "model": "A100"}),
            "On GPUs of model A100 instead of H100/H200 it could start now.",
            "H100/H200 대신 A100 모델",
        ),
        (
            Remedy(Change.WIDER_LEVEL, {"asked": "rack", "level": "zone"}),
            "Spread within one zone, not one rack, it could start now.",
            "zone 하나 안에",
        ),
        (
            Remedy(Change.WIDER_LEVEL, {"asked": "rack", "level": ""}),
            "Spread anywhere, not within one rack, it could start now.",
            "어디에나",
        ),
        (
            Remedy(Change.SHORTER_LIMIT, {"asked": 90 * MINUTE, "limit": HOUR}),
            "With a time limit of at most 3600 s (1 h) instead of 5400 s (1 h 30 min) it could start now.",
            "5400초(1시간 30분) 대신 3600초(1시간) 이하로",
        ),
        (
            Remedy(Change.SHORTER_LIMIT, {"asked": -1, "limit": HOUR}),
            "With a time limit of at most 3600 s (1 h) it could start now.",
            "시간 제한을 3600초(1시간) 이하로",
        ),
        (
            Remedy(Change.PREEMPTIBLE, {"project": "nlp", "guarantee": 4 * GPU}),
            "As preemptible work, above the guarantee of 4 GPUs of project nlp, it could start now.",
            "보장량 GPU 4개를",
        ),
    ],
)
def test_remedies_in_one_sentence(remedy: Remedy, english: str, korean: str) -> None:
    assert say_remedy(remedy) == english
    said = say_remedy(remedy, "ko")
    assert korean in said
    assert said.endswith("지금 시작할 수 있습니다.")
    assert "?" not in said


def test_every_change_has_an_example_above() -> None:
    examples = test_remedies_in_one_sentence.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {remedy.change for remedy, _, _ in examples} == set(Change)


@pytest.mark.parametrize(
    ("unit_time", "text"),
    [
        (0, "0"),
        (24 * GPU * HOUR, "24"),
        (5 * GPU * HOUR // 2, "2.5"),
        (GPU * HOUR // 3, "0.33"),
        (2 * GPU * HOUR // 3, "0.67"),
        (GPU * HOUR // 1000, "0.001"),
        (24 * GPU * HOUR - 1, "24"),
        (1, "0"),
        (-1, "0"),
        (-5 * GPU * HOUR // 2, "-2.5"),
    ],
)
def test_gpu_hours_are_rounded(unit_time: int, text: str) -> None:
    assert gpu_hours(unit_time) == text


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "00:00:00"),
        (93_784 * SECOND, "1-02:03:04"),
        (-60 * SECOND, "-00:01:00"),
        (10**15, "11574-01:46:40"),
        (1_788_883_200 * SECOND + 999_999, "2026-09-08T16:00:00Z"),
        (10**18, "11574074-01:46:40"),
    ],
)
def test_moments_of_the_calendar_are_dates_and_others_a_clock(us: int, text: str) -> None:
    assert clock(us) == text


NEVER, CHANGE = Waiting.NEVER, Waiting.NEEDS_CHANGE


@pytest.mark.parametrize(
    ("reason", "patterns"),
    [
        (Reason(Code.GANG, {"needed": 4, "placeable": 3}), ["gang|all.or.nothing|together", r"\b4\b", r"\b3\b"]),
        (
            Reason(Code.CAP_NEVER, {"asked": 5 * GPU, "cap": 4 * GPU, "project": "q"}, NEVER),
            [r"\b5\b", r"\b4\b", "limit", "never"],
        ),
        (
            Reason(Code.CAP, {"asked": 2 * GPU, "used": 3 * GPU, "cap": GPU, "left": 0, "project": "q"}),
            [r"\b3\b", r"\b1\b", "limit"],
        ),
        (
            Reason(Code.CAP, {"asked": GPU, "used": 2 * GPU, "cap": 2 * GPU, "left": 0, "project": "q", "model": "P4"}),
            ["P4", r"\b2\b", "limit"],
        ),
        (Reason(Code.CPU, {"asked": 6000, "most": 4000, "node": "g1"}), ["cpu", r"\b6\b", r"\b4\b", "g1"]),
        (Reason(Code.RAM, {"asked": 10 * 2**30, "most": 5 * 2**30, "node": "n1"}), ["memory", r"\b10\b", r"\b5\b"]),
        (Reason(Code.POD_SLOTS, {"asked": 2, "free": 1}), ["pod slot", r"\b1\b"]),
        (Reason(Code.POD_SLOTS, {"asked": 1, "free": 0, "node": "n1"}), ["1 pod slot,", "such as n1,", "0 pod slots"]),
        (Reason(Code.ONE_NODE, {"asked": 8, "most": 4, "free": 8}), [r"\b8\b", r"\b4\b", "one node"]),
        (
            Reason(
                Code.ONE_NODE,
                {"asked": 8, "most": 4, "free": 8, "model": "H100"},
                parts=(Reason(Code.BORROWING, {"project": "pre", "used": 12 * GPU, "guarantee": 8 * GPU}),),
            ),
            [r"^H100: .*\b8\b", r"\b4\b", "one node", "Project pre uses 12 GPUs .* guarantee of 8 GPUs"],
        ),
        (
            Reason(
                Code.GANG,
                {"needed": 4, "placeable": 2, "model": "H100"},
                parts=(Reason(Code.GPUS, {"asked": 2, "free": 1, "model": "H100"}),),
            ),
            [r"^H100: Its 4 pods .* A pod asks for 2 GPUs"],
        ),
        (
            Reason(Code.NOTHING_TO_RECLAIM, {"project": "vip", "used": 0, "guarantee": 0}),
            ["guarantee of 0 GPUs", "would not make room"],
        ),
        (Reason(Code.NODES_CLOSED, {"nodes": 0, "node": "", "why": "no node"}), ["There is no node"]),
        (
            Reason(Code.NODES_CLOSED, {"nodes": 2, "node": "n1", "why": "not_ready"}),
            ["2 nodes, such as n1: not ready"],
        ),
        (Reason(Code.NODES_CLOSED, {"nodes": 1, "node": "n1", "why": ""}), [r"1 node, such as n1\)"]),
        (Reason(Code.EXCLUSIVE, {"node": "n1", "by": "A"}), ["exclusive.*n1.*A runs"]),
        (Reason(Code.RESERVED, {"workload": "big"}), ["reserved for big"]),
        (
            Reason(Code.TOTAL_NEVER, {"pods": 5, "asked": 15, "total": 16, "places": 4}, NEVER),
            ["15 GPUs", "5 pods", "16 GPUs", "places for 4", "never"],
        ),
        (
            Reason(Code.MAINTENANCE, {"node": "n1", "start": 0, "end": 60 * SECOND, "limit_needed": 0, "limit": -1}),
            ["maintenance from 00:00:00 until 00:01:00"],
        ),
        (
            Reason(
                Code.MAINTENANCE,
                {"node": "n1", "start": 86_400 * SECOND, "limit_needed": 86_340 * SECOND, "limit": -1},
                CHANGE,
            ),
            ["maintenance", "limit", "86400|24|23", r"\b86340 s\b", "until somebody changes"],
        ),
        (
            Reason(
                Code.MAINTENANCE,
                {"node": "n1", "start": 86_400 * SECOND, "limit_needed": 100 * SECOND, "limit": 90_000 * SECOND},
            ),
            ["maintenance", r"limit of 90000 s", "100 s"],
        ),
        (
            Reason(Code.TAINT, {"taint": "own=lab", "node": "a1"}, CHANGE),
            ["taint", "own=lab", "a1"],
        ),
        (Reason(Code.EVICTING, {"pods": 2, "nodes": "n1, n2"}), ["waiting for evicted pods", "2 pods", "n1, n2"]),
        (Reason(Code.LEAVING, {"pods": 1}), ["last attempt", "1 pod"]),
        (
            Reason(Code.EVICTIONS_OFF, {"project": "q", "used": 0, "guarantee": 2 * GPU, "asked": GPU}),
            ["evictions are switched off", "asks for 1 GPU,", "0 GPUs of its guarantee of 2 GPUs"],
        ),
        (
            Reason(Code.NO_BORROWING, {"project": "q", "used": 4 * GPU, "guarantee": 4 * GPU, "asked": GPU // 4}),
            ["guarantee of 4", r"0\.25 GPU\b"],
        ),
        (
            Reason(
                Code.DAILY_LIMIT,
                {"project": "q", "spent": 8 * GPU * HOUR + 1, "limit": GPU * HOUR, "until": 86_400 * SECOND},
            ),
            ["daily", r"\b8 GPU-hours", r"limit of 1 GPU-hour;", "begins at 1-00:00:00"],
        ),
        (
            Reason(Code.DAILY_LIMIT, {"project": "q", "spent": 0, "limit": 0, "until": 1_788_883_200 * SECOND}),
            ["begins at 2026-09-08T16:00:00Z"],
        ),
        (Reason(Code.AHEAD, {"workload": "big"}), ["big is ahead"]),
        (Reason(Code.MODEL, {"model": "B300"}, CHANGE), ["B300"]),
        (Reason(Code.GPU_MEMORY_NEVER, {"asked": 20_000, "largest": 16_384}, NEVER), ["20000", "16384", "never"]),
        (Reason(Code.GPU_MEMORY_UNKNOWN, {"node": "spark1"}), ["spark1", "memory", "unknown"]),
        (Reason(Code.DISTINCT, {"asked": 2, "have": 1}), ["GPU", "different", r"\b2\b", r"\b1\b"]),
        (
            Reason(Code.GROWTH_CAP, {"missing": 5, "project": "q", "used": 7 * GPU, "cap": 7 * GPU}),
            [r"\b5\b", r"\b7\b"],
        ),
        (
            Reason(
                Code.ALL_MODELS,
                parts=(
                    Reason(Code.GPUS, {"model": "H100", "asked": 2, "free": 1}),
                    Reason(Code.TAINT, {"model": "A100", "taint": "x", "node": "a1"}),
                ),
            ),
            ["H100: .*2 GPUs.*1 GPU", "A100: .*taint x", "Waiting helps"],
        ),
        (Reason(Code.NOT_CONSIDERED), ["^It was .* not yet considered.$"]),
    ],
)
def test_english_says_what_people_look_for(reason: Reason, patterns: list[str]) -> None:
    text = say(reason)
    for pattern in patterns:
        assert re.search(pattern, text, re.IGNORECASE), (pattern, text)


def test_a_missing_figure_does_not_raise() -> None:
    assert "?" in say(Reason(Code.GANG))


@pytest.mark.parametrize("seed", range(40))
def test_every_reason_the_engine_gives_is_said_with_all_its_figures(seed: int) -> None:
    for sample in (states.single(seed), states.several(seed)):
        state = State()
        for entry in sample.entries:
            apply(state, entry)
        for decision in plan(state, sample.now).decisions:
            apply(state, decision)
        for name in state.standings:
            for reason in (explain(state, name, sample.now), growth_reason(state, name, sample.now)):
                for language in LANGUAGES:
                    assert reason is None or "?" not in say(reason, language), reason
                for found in [] if reason is None else [reason, *reason.parts]:
                    assert set(found.params) <= {*PARAMS[found.code], *COMMON}, found


PODS = (Pod("train", 1, 0, 0, "n1", (Slice(0, GPU), Slice(1, GPU))), Pod("train", 1, 0, 1, "n0", (Slice(3, GPU),)))
IDS = tuple(pod.id for pod in PODS)
WORK = Workload("train", "nlp", (Role("w", 2, Ask(whole=2)),), 2)


@pytest.mark.parametrize(
    ("decision", "english"),
    [
        (Start(0, "train", PODS), "train starts on n0 (GPU 3), n1 (GPU 0, 1)"),
        (Grow(0, "train", PODS[:1]), "train grows by 1 pod on n1 (GPU 0, 1)"),
        (
            Evict(0, "train", IDS, Cause.RECLAIM, "prod"),
            "train loses 2 pods: a project takes its guarantee back (for prod)",
        ),
        (Hold(0, "train", (Pod("train", 1, 0, 0, "n1"),)), "train gets room kept on n1"),
        (Release(0, "train"), "train gives up the room kept for it"),
        (Stop(0, "train", Cause.TIME_LIMIT), "train is stopped: its time limit is reached"),
        (Close(0, "n1", "a GPU is lost"), "node n1 is closed to new work: a GPU is lost"),
    ],
)
def test_decisions_in_one_line(decision: Decision, english: str) -> None:
    assert say_decision(decision) == english
    korean = say_decision(decision, "ko")
    assert HANGUL.search(korean)
    assert "\n" not in korean


def test_what_the_engine_names_in_english_is_said_in_korean() -> None:
    assert say_decision(Close(0, "n1", "GPU 3, 4 lost"), "ko") == "노드 n1: 새 작업을 받지 않습니다 - GPU 3, 4 고장"
    evicted = Evict(0, "train", IDS, Cause.GPU_LOST, detail="n1 GPU 3 lost")
    assert say_decision(evicted, "ko").endswith("n1 GPU 3 고장")
    assert say_event(PodLost(0, IDS[0], "its node is drained"), "ko").endswith("노드를 비웁니다")
    assert say_event(PodLost(0, IDS[0], "lost in space"), "ko").endswith("lost in space")


EVENTS: list[Event] = [
    PolicySet(0, Policy()),
    LevelsSet(0, ("rack",)),
    ProjectSet(0, Project("nlp", guarantee=4 * GPU)),
    NodeSet(0, Node("n1", (Device(0), Device(1)), "H100")),
    NodeSet(0, Node("n1", (Device(0),))),
    NodeSet(0, Node("n1", state=NodeState.NOT_READY)),
    NodeGone(0, "n1"),
    Submitted(0, WORK),
    Cancelled(0, "train"),
    Resized(0, "train", 0, 3),
    Up(0, "train"),
    PodEnded(0, IDS[0], True),
    PodEnded(0, IDS[0], False),
    PodGone(0, IDS[0]),
    PodLost(0, IDS[0], "node drained"),
    Ended(0, "train"),
    Ended(0, "train", False),
    Checkpointed(0, "train", 0),
    Ticked(0),
]


def test_every_event_is_told_in_both_languages() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(Event))
    for event in EVENTS:
        english, korean = say_event(event), say_event(event, "ko")
        assert bool(english) == bool(korean)
        assert not HANGUL.search(english)
        assert not korean or HANGUL.search(korean)
    assert say_event(EVENTS[5]) == "node n1 is not ready"
    assert say_event(EVENTS[7]) == "train is submitted: 2 pods, 4 GPUs in all"
