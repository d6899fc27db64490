"""Phrases about where pods are: bound, on a node, holding GPUs, so many pods, over so many domains."""

from __future__ import annotations

import re
from collections import Counter

from allmende.scene import view
from allmende.scene.claim import Claim
from allmende.scene.moment import Moment, Size, gpus
from allmende.scene.phrases.form import Forms, each
from allmende.scene.who import Names, Who

FORMS = Forms()


@FORMS.form(r"(?P<s>.+?) {BE} (?:bound|placed|assigned|scheduled)(?: (?:to|on|onto|at) (?P<n>\S+))?(?:, .+ included)?")
def _bound(found: re.Match[str], names: Names) -> Claim | None:
    who, node = names.who(found["s"]), names.node(found["n"])
    if who is None or node is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        if moment.begun([name], node):
            return True
        lasting = view.bound_pods(moment.state, name, who.role)
        return not event and any(not node or pod.node == node for pod in lasting)

    event = who.generic and bool(node)
    return Claim(each(who, test), event=event)


@FORMS.form(r"(?P<s>.+?) (?:{BE} (?:recorded |booked |kept |running |shown )?(?:on|at)|runs? on|holds?) (?P<n>\S+)")
def _on(found: re.Match[str], names: Names) -> Claim | None:
    who, node = names.who(found["s"]), names.node(found["n"])
    if who is None or not node:
        return None
    return Claim(each(who, lambda m, name: any(pod.node == node for pod in view.placed_pods(m.state, name))))


@FORMS.form(r"(?P<s>.+?) (?:runs?|{BE} (?:shown as )?running|{BE} up)(?: at the same (?:time|moment))?")
def _runs(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    return None if who is None else Claim(each(who, lambda m, name: view.runs(m.state.standings.get(name))))


@FORMS.form(
    r"(?P<s>.+?) (?:holds?|uses?|keeps?|has|have) (?P<k>{SIZE}) (?:whole )?GPUs?(?: at the same (?:time|moment))?"
)
def _holds_gpus(found: re.Match[str], names: Names) -> Claim | None:
    size = Size(found["k"])
    project = names.project(found["s"])
    if project:
        return Claim(lambda m: size.fits(gpus(view.usage(m.state)[project])))
    who = names.who(found["s"])
    if who is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        own = [pod for pod in view.present_pods(moment.state) if pod.workload == name]
        units = gpus(view.units_of(own))
        return size.fits(units) or (size.op == "at least" and size.numbers[0] <= 1 and units > 0)

    return Claim(each(who, test))


@FORMS.form(
    r"(?P<s>.+?) (?:has|have|keeps?|runs? with|{BE} (?:running|left) with) (?P<k>{SIZE}) (?:bound |running )?pods?"
    r"(?: (?:bound|placed|running|left))?(?: of (?P<r>\S+))?"
)
def _has_pods(found: re.Match[str], names: Names) -> Claim | None:
    who, size = names.who(found["s"]), Size(found["k"])
    return None if who is None else _bound_pods(who, size, found["r"] or who.role)


def _bound_pods(who: Who, size: Size, role: str) -> Claim:
    """So many pods of a workload run; one that has none at all is spoken of only by 'no pods'."""

    def test(moment: Moment, name: str) -> bool:
        count = len(view.bound_pods(moment.state, name, role))
        return size.fits(count) and (count > 0 or 0 in size.numbers)

    return Claim(each(who, test))


@FORMS.form(
    r"(?P<k>{SIZE}) pods?(?: of (?P<s>.+?))? (?P<v>have a place|has a place|runs?|{BE} (?:bound|placed|running))"
)
def _pods_have(found: re.Match[str], names: Names) -> Claim | None:
    who, size = names.who(found["s"] or names.main), Size(found["k"])
    if who is None:
        return None
    if "place" not in found["v"]:
        return _bound_pods(who, size, who.role)
    return Claim(each(who, lambda m, name: size.fits(len(view.placed_pods(m.state, name)))))


@FORMS.form(r"(?:the )?(?:pods of )?(?P<s>.+?) {BE} (?:on|in|across|over|spread over|split over|split across) "
      r"(?P<k>{SIZE}) (?P<l>\w+?)s?")  # fmt: skip
def _spread(found: re.Match[str], names: Names) -> Claim | None:
    who, size, level = names.who(found["s"]), Size(found["k"]), found["l"]
    if who is None or level not in (*names.levels, "node"):
        return None

    def test(moment: Moment, name: str) -> bool:
        nodes = (moment.state.nodes.get(pod.node) for pod in view.bound_pods(moment.state, name))
        return size.fits(len({view.domain(node, level) for node in nodes if node is not None}))

    return Claim(each(who, test))


@FORMS.form(r"(?P<s>.+?) {BE} (?:in|on|inside) (?:the )?(?P<l>\w+) (?P<d>\S+)")
def _in_domain(found: re.Match[str], names: Names) -> Claim | None:
    who, level, name = names.who(found["s"]), found["l"], found["d"]
    if who is None or level not in names.levels:
        return None

    def test(moment: Moment, workload: str) -> bool:
        nodes = (moment.state.nodes.get(pod.node) for pod in view.bound_pods(moment.state, workload))
        return any(node is not None and view.domain(node, level) == name for node in nodes)

    return Claim(each(who, test))


@FORMS.form(r"(?P<k>{SIZE}) pods? of (?P<s>.+?) {BE} (?:on|in) (?:the same|one) (?P<l>\w+)")
def _together(found: re.Match[str], names: Names) -> Claim | None:
    who, level, size = names.who(found["s"]), found["l"], Size(found["k"])
    if who is None or level not in (*names.levels, "node"):
        return None
    if size.op == "exactly":
        size.op = "at least"  # 'two pods on one node': so many, or more

    def test(moment: Moment, workload: str) -> bool:
        nodes = [moment.state.nodes.get(pod.node) for pod in view.bound_pods(moment.state, workload)]
        counts = Counter(view.domain(node, level) for node in nodes if node is not None)
        return any(size.fits(count) for count in counts.values())

    return Claim(each(who, test))
