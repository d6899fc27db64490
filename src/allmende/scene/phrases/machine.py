"""Phrases about machines: what is free on them, how much they hold, what state they are in."""

from __future__ import annotations

import re

from allmende.model.cluster import NodeState
from allmende.scene import view
from allmende.scene.book import gpu_of_two, node_free, raw_free
from allmende.scene.claim import Claim
from allmende.scene.moment import Moment, Size, gpus, overfull
from allmende.scene.phrases.form import Forms
from allmende.scene.who import Names

FORMS = Forms()
_ANY_NODE = ("one node", "a node", "any node")


@FORMS.form(r"(?:(?:the )?nodes? )?(?P<n>\S+) (?:{BE} )?(?:free|idle|empty)")
def _free(found: re.Match[str], names: Names) -> Claim | None:
    node = names.node(found["n"])
    return Claim(lambda m: node_free(m.state, node), rest=True) if node else None


@FORMS.form(r"(?P<k>{SIZE}) (?:whole )?GPUs? (?:{BE} )?(?:free|idle)(?: on (?P<n>\S+))?")
def _gpus_free(found: re.Match[str], names: Names) -> Claim | None:
    size, node = Size(found["k"]), names.node(found["n"])
    if node is None:
        return None
    if size.op == "exactly" and found["k"][0].isdigit():
        size.op = "at least"  # '4 GPUs free': so many, or more

    def test(moment: Moment) -> bool:
        machine = moment.state.nodes.get(node)
        if node:
            return machine is not None and size.fits(gpus(view.idle_on(moment.state, machine)))
        return size.fits(gpus(view.idle(moment.state)))

    return Claim(test, rest=True)


@FORMS.form(r"(?:the )?free (?:GPUs|capacity|room)(?: (?:on|of) (?P<n>\S+))? (?:is|are) (?P<how>negative|{SIZE})")
def _free_is(found: re.Match[str], names: Names) -> Claim | None:
    node = names.node(found["n"])
    size = Size("below 0" if found["how"] == "negative" else found["how"])
    if node is None:
        return None
    wanted = node

    def test(moment: Moment) -> bool:
        nodes = [wanted] if wanted else list(moment.state.nodes)
        return any(size.fits(raw_free(moment.state, name)) for name in nodes)

    return Claim(test)


@FORMS.form(
    r"(?P<k>{SIZE}) GPUs? {BE} (?:assigned|bound|held|used|booked|given out)"
    r"(?: (?:on|of) (?P<n>one node|a node|any node|\S+))"
)
def _assigned(found: re.Match[str], names: Names) -> Claim | None:
    return _held(found["k"], found["n"], "GPUs", names)


@FORMS.form(
    r"(?P<n>one node|a node|any node|\S+) (?:has|holds|runs) (?P<k>{SIZE}) (?P<what>GPU|pod)s?(?: in use| bound)?"
)
def _node_holds(found: re.Match[str], names: Names) -> Claim | None:
    return _held(found["k"], found["n"], f"{found['what']}s", names)


def _held(how: str, where: str, what: str, names: Names) -> Claim | None:
    size, some = Size(how), where in _ANY_NODE
    node = "" if some else names.node(where)
    if node is None or not (some or node):
        return None

    def test(moment: Moment) -> bool:
        held: dict[str, float] = {}
        for pod in view.present_pods(moment.state):
            held[pod.node] = held.get(pod.node, 0) + (1 if what == "pods" else gpus(pod.units))
        return any(size.fits(value) for name, value in held.items() if not node or name == node)

    return Claim(test)


@FORMS.form(
    r"(?:a|any|one|the same) GPU {BE} (?:assigned|given|booked|bound|used|held)"
    r"(?: out)? (?:twice|(?:to|by) (?:two|several|more than one) (?:pods|workloads|jobs))"
)
def _double(_found: re.Match[str], _names: Names) -> Claim | None:
    return Claim(lambda m: gpu_of_two(m.state))


@FORMS.form(r"(?:a|any) pod {BE} (?:rejected|refused|turned away) by (?P<n>\S+) for (?P<r>\w+)")
def _rejected(found: re.Match[str], names: Names) -> Claim | None:
    node = names.node(found["n"])
    return Claim(lambda m: overfull(m.state, node, found["r"].casefold())) if node else None


@FORMS.form(r"(?P<n>\S+) {BE} (?P<not>not[_ ])?(?P<s>ready|cordoned|closed|gone|silent|unreachable)")
def _state(found: re.Match[str], names: Names) -> Claim | None:
    node, word = names.node(found["n"]), found["s"].casefold()
    if not node:
        return None

    def test(moment: Moment) -> bool:
        machine = moment.state.nodes.get(node)
        if machine is None or word == "gone":
            return (machine is None and word == "gone") != bool(found["not"])
        states = {"ready": NodeState.READY, "cordoned": NodeState.CORDONED}
        holds = bool(machine.closed) if word == "closed" else machine.state is states.get(word, NodeState.NOT_READY)
        return holds != bool(found["not"])

    return Claim(test)
