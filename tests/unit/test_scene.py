"""Scene files: what is refused, where and with which remedy; what sentences forbid; what checks ask."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from allmende.model.mistake import Mistake, MistakeCode
from allmende.model.span import HOUR, MINUTE, SECOND
from allmende.model.units import GPU
from allmende.scene import settings, works
from allmende.scene.cell import read_yaml
from allmende.scene.events import ACTIONS
from allmende.scene.expect import EXPECT, STATE
from allmende.scene.never import parse
from allmende.scene.read import TOP, read
from allmende.scene.run import Status, play
from allmende.scene.value import Scene, Submit

NO = MistakeCode


def lines(*parts: str) -> str:
    return "version: 1\n" + "\n".join(parts) + "\n"


CLUSTER = "cluster: {nodes: [{name: n1, gpus: 8}]}"

REFUSED: list[tuple[str, MistakeCode, str, str]] = [
    ("", NO.EMPTY, "s.yaml", "docs/scenes.md"),
    ("version: 2\n", NO.UNKNOWN_NAME, "s.yaml:1:10: version", "version: 1"),
    ("name: x\n", NO.MISSING, "s.yaml:1:1", "add version"),
    ("[1, 2]\n", NO.WRONG_KIND, "s.yaml:1:1", "has no fields"),
    ("version: 1\nevents: [}\n", NO.UNREADABLE, "s.yaml:2:10", "mend the YAML"),
    ("version: 1\n---\nversion: 1\n", NO.UNREADABLE, "s.yaml:2:1", "mend the YAML"),
    ("version: 1\n\tx: 1\n", NO.UNREADABLE, "s.yaml:2:1", "indent with spaces"),
    (lines("project: []"), NO.UNKNOWN_FIELD, "s.yaml:2:1", "did you mean projects?"),
    (lines("name: a", "name: b"), NO.DUPLICATE, "s.yaml:3:1: name", "keep one"),
    (lines("cluster: {nodes: [{name: n1, gpu: 8}]}"), NO.UNKNOWN_FIELD, "s.yaml:2:30: cluster.nodes[0]", "gpus?"),
    (lines("cluster: {nodes: [{gpus: 8}]}"), NO.MISSING, "s.yaml:2:19: cluster.nodes[0]", "add name"),
    (lines("cluster: {nodes: [{name: n1, gpus: -8}]}"), NO.NEGATIVE, "s.yaml:2:36: cluster.nodes[0].gpus", ""),
    (lines("cluster: {nodes: [{name: n1, gpus: 1000000}]}"), NO.ABSURD, "s.yaml:2:36", "at most 1024"),
    (lines("cluster: {nodes: [{name: n, count: 1e9}]}"), NO.ABSURD, "s.yaml:2:36", "at most 20000"),
    (lines(CLUSTER, "running: [{name: A, on: n1, on_gpus: {x: 1}}]"), NO.UNREADABLE, "s.yaml:3:39", ""),
    (lines("expect: {checks: [{at: 1, on_gpus: {A: [1, 2]}}]}"), NO.WRONG_KIND, "s.yaml:2:40", "fields"),
    (lines("events: [{every: 1, to: 9, submit: {name: [a]}}]"), NO.WRONG_KIND, "s.yaml:2:43", "one value"),
    (lines("cluster: {nodes: [{name: n1}, {name: n1}]}"), NO.DUPLICATE, "s.yaml:2:31", "name of its own"),
    (lines("cluster: {nodes: [{name: n1, state: redy}]}"), NO.UNKNOWN_NAME, "s.yaml:2:37", "did you mean ready?"),
    (lines("cluster: {nodes: [{name: n1, memory: 16gb}]}"), NO.UNREADABLE, "s.yaml:2:38", "512Mi"),
    (lines("cluster: {nodes: [{name: n1, maintenance: {from: 9, to: 8}}]}"), NO.CONTRADICTION, "s.yaml:2:43", "end"),
    (lines("cluster: {nodes: [{name: n1, gpus: 2, lost_gpus: [5]}]}"), NO.UNKNOWN_NAME, "s.yaml:2:50", "0, 1"),
    (lines("projects: [{name: a}, {name: a}]"), NO.DUPLICATE, "s.yaml:2:23", "name of its own"),
    (lines("projects: [{name: a, parent: b}, {name: b, parent: a}]"), NO.CYCLE, "s.yaml:2:11", "a > b > a"),
    (lines("projects: [{name: a, parent: tpo}, {name: top}]"), NO.UNKNOWN_NAME, "s.yaml:2:11", "did you mean top?"),
    (lines("projects: [{name: a, guarantee: -2}]"), NO.NEGATIVE, "s.yaml:2:33: projects[0].guarantee", "-1 for no"),
    (lines("projects: [{name: a, weight: -1}]"), NO.NEGATIVE, "s.yaml:2:30", "from 0"),
    (lines("policy: {evictions: maybe}"), NO.WRONG_KIND, "s.yaml:2:21: policy.evictions", "true or false"),
    (lines("policy: {reserve_after: -5}"), NO.NEGATIVE, "s.yaml:2:25", ""),
    (lines("policy: {half_life: 0}"), NO.ZERO, "s.yaml:2:21: policy.half_life", ""),
    (lines("policy: {reserve: 5}"), NO.UNKNOWN_FIELD, "s.yaml:2:10", "reserve_after?"),
    (lines("timezone: Mars/Olympus"), NO.UNKNOWN_NAME, "s.yaml:2:11", "Europe/Berlin"),
    (lines("events: [{submit: {name: A}}]"), NO.MISSING, "s.yaml:2:10: events[0]", "add at"),
    (lines("events: [{at: 0}]"), NO.MISSING, "s.yaml:2:10: events[0]", "let something happen"),
    (lines("events: [{at: 0, end: A}]"), NO.UNKNOWN_NAME, "s.yaml:2:23: events[0].end", "write one of"),
    (lines("events: [{at: 3:00, submit: {name: A}}]"), NO.AMBIGUOUS, "s.yaml:2:15: events[0].at", "3h00m"),
    (lines("events: [{at: 0, submit: {name: A, pods: 0}}]"), NO.ZERO, "s.yaml:2:42", "from 1"),
    (lines("events: [{at: 0, submit: {name: A, pods: 2, gang_min: 3}}]"), NO.CONTRADICTION, "s.yaml:2:55", "most 2"),
    (lines("events: [{at: 0, submit: {name: A, pods: {min: 3, max: 2}}}]"), NO.CONTRADICTION, "s.yaml:2:42", "min"),
    (lines("events: [{at: 0, submit: {name: A, gpus: 1.5}}]"), NO.NOT_A_SHARE, "s.yaml:2:42", "1 or 2 whole"),
    (lines("events: [{at: 0, submit: {name: A, gpus: 1, slots: 1}}]"), NO.CONTRADICTION, "s.yaml:2:26", "only one"),
    (lines("events: [{at: 0, submit: {name: A, gpu_memory: 16Gi}}]"), NO.UNIT, "s.yaml:2:48", "16384"),
    (lines("events: [{at: 0, submit: {name: A, same: rack}}]"), NO.UNKNOWN_NAME, "s.yaml:2:42", "write one of node"),
    (lines("events: [{at: 0, submit: {name: A, limit: 0}}]"), NO.ZERO, "s.yaml:2:43", ""),
    (lines('events: [{at: 0, submit: {name: ""}}]'), NO.EMPTY, "s.yaml:2:33", "give a name"),
    (
        lines("events:", "- {at: 0, submit: {name: A}}", "- {at: 1, submit: {name: A}}"),
        NO.DUPLICATE, "s.yaml:4:19", "s.yaml:3:19",
    ),
    (
        lines("events:", "- {at: 0, submit: {name: A, after: B}}", "- {at: 0, submit: {name: B, after: A}}"),
        NO.CYCLE, "s.yaml:3:19", "wait for nobody",
    ),
    (lines("events: [{at: 0, submit: {name: A, after: B}}]"), NO.UNKNOWN_NAME, "s.yaml:2:26", "of the scene"),
    (lines("events: [{every: 0, to: 9, submit: {name: A}}]"), NO.ZERO, "s.yaml:2:18", ""),
    (lines("events: [{every: 1us, to: 9, submit: {name: 'a-{i}'}}]"), NO.ABSURD, "s.yaml:2:18", "at most"),
    (lines(CLUSTER, "running: [{name: A, on: n2}]"), NO.UNKNOWN_NAME, "s.yaml:3:25", "node of the cluster"),
    (lines(CLUSTER, "running: [{name: A}]"), NO.MISSING, "s.yaml:3:11", "add on"),
    (lines("expect: {checks: [{running: []}]}"), NO.MISSING, "s.yaml:2:19", "add at"),
    (lines("expect: {checks: [{at: 1, pending: {A: ['(']}}]}"), NO.UNREADABLE, "s.yaml:2:41", "mend the pattern"),
    (lines("expect: {never: [the moon is blue]}"), NO.UNREADABLE, "s.yaml:2:18", "sentence forms"),
    (lines("expect: {numbers: {phase_of_the_moon: 1}}"), NO.UNKNOWN_NAME, "s.yaml:2:39", "docs/scenes.md"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "where", "says"), REFUSED)
def test_refused_with_its_place(text: str, code: MistakeCode, where: str, says: str) -> None:
    with pytest.raises(Mistake) as refused:
        read("s.yaml", text)
    assert refused.value.code is code
    assert refused.value.where.startswith(where), refused.value.where
    assert says in str(refused.value)


def test_a_missing_file_and_a_binary_one(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="cannot be opened"):
        read(str(tmp_path / "none.yaml"))
    (tmp_path / "binary.yaml").write_bytes(b"version: \xff\xfe")
    with pytest.raises(Mistake, match="UTF-8"):
        read(str(tmp_path / "binary.yaml"))


@pytest.mark.parametrize(
    "text",
    ["[" * 3000, "a: " + "[" * 60 + "]" * 60, "a: &x [*x]", "a: &x {b: *x}", "{a: " * 3000 + "1" + "}" * 3000],
    ids=["lists", "60 lists", "a list in itself", "a mapping in itself", "mappings"],
)
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(Mistake, match="is nested too deeply") as refused:
        read("s.yaml", text)
    assert refused.value.code is NO.ABSURD


def test_aliases_that_multiply_are_read_at_once() -> None:
    layers = [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in pairwise("abcdefghij")]
    with pytest.raises(Mistake, match="version"):
        read("s.yaml", "\n".join(["a: &a [x]", *layers]))


def test_a_field_that_a_reader_needs_is_asked_for_by_name() -> None:
    with pytest.raises(Mistake, match=r"s\.yaml:1:4: a: this mapping has no b; add b"):
        read_yaml("s.yaml", "a: {c: 1}").entries()["a"].entries()["b"]


def test_a_long_chain_of_dependencies_is_no_circle() -> None:
    chain = [f"- {{at: 0, submit: {{name: w{n}, after: w{n + 1}}}}}" for n in range(2000)]
    scene = read("s.yaml", lines("events:", *chain, "- {at: 0, submit: {name: w2000}}"))
    assert len(scene.workloads) == 2001


def test_values_keep_their_spelling() -> None:
    """YAML's own readings (octal, sexagesimal, floats) never get in between."""
    cell = read_yaml("s.yaml", "{a: 010, b: 0.1, c: 1:30:00, d: yes, e: 1e3}").entries()
    assert cell["a"].count() == 10
    assert cell["b"].amount() == GPU // 10
    assert cell["c"].span() == 90 * MINUTE
    assert cell["d"].flag()
    assert cell["e"].count() == 1000


def test_a_scene_in_full() -> None:
    scene = read(
        "s.yaml",
        lines(
            "timezone: Asia/Shanghai",
            "cluster:",
            "  levels: [rack]",
            "  nodes:",
            "    - {name: g, count: 2, gpus: 4, gpu_memory: 81920, cpus: 96, memory: 1Ti, labels: {rack: r1}}",
            "    - {name: s, gpus: 2, slots: 4, taints: team=x}",
            "projects: [{name: top, guarantee: 8}, {name: q, parent: top, guarantee: 2.5, cap: 8, weight: 0.5}]",
            "running: [{name: old, project: q, pods: 2, gpus: 1, on: {g-1: 1, g-2: 1}, started: -1h}]",
            "events:",
            "  - {every: 10m, from: 0, to: 20m, submit: {name: 's-{i}', project: q, gpus: 1/4, runs: 5m}}",
            "  - {at: 1h, submit: {name: many, count: 3, throttle: 2, project: q, gpu_memory: 8000}}",
            "  - {at: 2h, node: {name: g-1, labels: {touched: x}, lost_gpus: [1]}}",
        ),
    )
    assert [node.name for node in scene.nodes] == ["g-1", "g-2", "s"]
    assert scene.policy.utc_offset == 8 * HOUR
    assert scene.projects[1].guarantee == GPU * 5 // 2
    assert scene.running[0].started == -HOUR
    submits = [step for step in scene.steps if isinstance(step, Submit)]
    assert [(step.workload.id, step.at // MINUTE) for step in submits] == [
        ("s-1", 0), ("s-2", 10), ("s-3", 20), ("many-1", 60), ("many-2", 60), ("many-3", 60),
    ]  # fmt: skip
    assert submits[0].runs == 300 * SECOND
    assert submits[3].workload.throttle == 2
    changed = scene.steps[-1]
    assert getattr(changed, "node").labels == (("rack", "r1"), ("touched", "x"))  # noqa: B009
    assert [device.healthy for device in getattr(changed, "node").devices] == [True, False, True, True]  # noqa: B009


SMALL = lines(
    "cluster: {nodes: [{name: n1, gpus: 2}, {name: n2, gpus: 2}]}",
    "projects: [{name: q, guarantee: 4}, {name: r}]",
    "running: [{name: L, project: r, pods: 2, gpus: 1, on: n1, started: -60}]",
    "events:",
    "  - {at: 10, submit: {name: A, project: q, pods: 2, gpus: 1, runs: 20}}",
    "  - {at: 20, submit: {name: B, project: q, pods: 2, gpus: 1, runs: 20}}",
    "  - {at: 25, submit: {name: C, project: r, pods: 1, gpus: 2}}",
)
"""A runs at n2 from 10 to 30, B takes n1 from L at 20, L and C wait: L from 30 on at n2, C from 40 on at n1."""

TRUE = [  # sentences that are true at some moment of SMALL
    "A and B hold a GPU at the same moment",
    "A and B run at the same time",
    "L is evicted",
    "L is pending",
    "L is pending while A is bound",
    "L is pending for more than 9 s",
    "A is bound between 5 and 15",
    "a pod of B is bound to n1",
    "a pod is bound to n1 after 15",
    "B is on n1",
    "B holds n1 after L was evicted",
    "C is bound after A has ended",
    "L is bound after it was evicted",
    "A has exactly two pods bound",
    "a workload has 1 or 2 pods bound",
    "usage of q is above 3",
    "usage of r is below 1",
    "q uses more than 3 GPUs",
    "B causes an eviction",
    "B evicts L",
    "more than 1 GPU is assigned on one node",
    "2 pods of L are evicted",
    "any pod of C is bound, the first included",
    "L is bound before A is bound",
]
FALSE = [  # sentences that are true at no moment of SMALL
    "A is evicted",
    "C is bound before 35",
    "C is bound while B is bound",
    "a pod of A is bound to n1",
    "a pod is bound to n1 before 20",
    "L is pending for more than 10 s",
    "A has fewer than 2 pods bound",
    "A has exactly one pod bound",
    "usage of q is below 0 or above 4",
    "usage of a queue is negative",
    "A causes an eviction",
    "more than 2 GPUs are assigned on one node",
    "a GPU is assigned to two pods",
    "L is evicted more than once",
    "C is ahead of L",
    "B is pending while n2 is free",
    "the reason names priority while no workload is ahead of C",
    "a pod is rejected by n1 for memory",
    "B starts before A starts",
]


def with_never(sentence: str) -> Scene:
    return read("s.yaml", SMALL + f'expect:\n  checks: [{{at: 60}}]\n  never: ["{sentence}"]\n')


@pytest.mark.parametrize("sentence", TRUE)
def test_a_sentence_that_comes_true_is_a_failure(sentence: str) -> None:
    _, verdict = play(with_never(sentence))
    assert verdict.status is Status.FAILED
    assert sentence in verdict.why[0]


@pytest.mark.parametrize("sentence", FALSE)
def test_a_sentence_that_never_comes_true_holds(sentence: str) -> None:
    _, verdict = play(with_never(sentence))
    assert verdict.status is Status.PASSED, verdict.why


@pytest.mark.parametrize(
    "sentence", ["A dreams", "Z is bound", "A is bound to n9", "A is bound after Z", "A is bound while"]
)
def test_a_sentence_that_is_not_understood_is_never_passed_over(sentence: str) -> None:
    with pytest.raises(Mistake, match="sentence"):
        with_never(sentence)


FORMS = [  # each form that docs/scenes.md names, understood whole: (sentence, claims beside the first one)
    ("A is bound to n1 after 5 before 9", 0), ("A is on n1", 0), ("A holds n1", 0), ("A or B runs", 0),
    ("a workload holds a GPU", 0), ("A has fewer than 4 pods bound", 0), ("A runs while 3 pods have a place", 1),
    ("A is on 2 nodes", 0), ("two pods of A are on the same node", 0), ("A and B run at the same time", 0),
    ("A starts on n1 with exactly 2 pods of main", 0), ("A starts twice", 0), ("A ends", 0),
    ("A is evicted again by B", 0),
    ("A is evicted in order to grow", 0), ("3 pods of A are evicted", 0), ("A's first worker (rank 0) is taken", 0),
    ("A causes an eviction", 0), ("A evicts B", 0), ("A is pending without a reason", 0),
    ("the reason of A names priority while no workload is ahead of A", 1), ("B is ahead of A", 0),
    ("usage of q is below 0 or above 4", 0), ("usage of a queue is negative", 0), ("q uses 5 GPUs", 0),
    ("q uses more than its cap", 0), ("usage of q counts A twice (7 + 12)", 0), ("5 GPUs are assigned on n1", 0),
    ("more than 5 GPUs are assigned on one node", 0), ("n1 has more than 3 pods", 0),
    ("a GPU is assigned to two pods", 0),
    ("a pod is rejected by n1 for memory", 0), ("A is pending with n1 free for more than 1 min", 1),
    ("A is pending while 2 GPUs are free on n1", 1), ("free GPUs on n1 are negative", 0),
    ("a pod is on n1 while it is cordoned", 1),
    ("A is bound between 5 and the start of B unless B is pending", 1), ("A is bound after the end of B", 0),
    ("a small job starts between 5 and the start of A, unless its limit ends before A can start", 0),
    ("A is bound after it was evicted, while B is pending", 2), ("A holds n1 after B is bound there", 1),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "beside"), FORMS)
def test_every_documented_form_is_understood_whole(sentence: str, beside: int) -> None:
    found = parse(sentence, read("s.yaml", SMALL))
    assert found is not None
    assert len(found.also) + len(found.once) + len(found.not_yet) + len(found.unless) == beside


def test_every_field_is_documented() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "scenes.md").read_text(encoding="utf-8")
    fields = {*TOP, *settings.NODE, *settings.PROJECT, *settings.POLICY, *works.WORKLOAD, *works.MANY, *works.ROLE}
    fields |= {*ACTIONS, *EXPECT, *STATE}
    missing = sorted(name for name in fields if not re.search(rf"\b{name}\b", text))
    assert missing == []


CHECKS = [
    ("running: [A, L]", ""),
    ("running: [A, B]", "B does not run"),
    ("running: [L]", "A runs"),
    ("pending: {L: []}", "L is not pending"),
    ("placement: {A: {n2: 2}}", ""),
    ("placement: {A: {n2: 1-2}}", ""),
    ("placement: {A: {n1: 2}}", "A is at {'n2': 2}"),
    ("placement: {A: {any: 1}}", "A has 2 pods"),
    ("usage: {q: 2, r: 2}", ""),
    ("usage: {q: 3}", "q uses 2 GPUs, not 3"),
    ("free: 0", ""),
    ("free: 1", "0 GPUs are idle, not 1"),
    ("usage_added: 2", ""),
]


@pytest.mark.parametrize(("check", "says"), CHECKS)
def test_checks(check: str, says: str) -> None:
    _, verdict = play(read("s.yaml", SMALL + f"expect:\n  checks: [{{at: 15, {check}}}]\n"))
    assert (verdict.status is Status.PASSED) == (says == "")
    assert says in " ".join(verdict.why)
