"""Phrases about workloads, pods, nodes and projects: each pattern becomes a claim about a moment."""

from __future__ import annotations

import re
from collections.abc import Callable

from allmende.model.decision import Evict, Stop
from allmende.scene import view
from allmende.scene.book import book_use, demand, gpu_of_two, node_free, position
from allmende.scene.claim import Claim
from allmende.scene.moment import SIZE, Moment, Size, gpus, overfull
from allmende.scene.who import Names, Who

Build = Callable[["re.Match[str]", Names], Claim | None]
BE = r"(?:is|are|was|were|has been|have been|gets?|becomes?)(?: ever| still)?"
FORMS: list[tuple[re.Pattern[str], Build]] = []


def form(pattern: str) -> Callable[[Build], Build]:
    """Register a phrase by the pattern of its whole text."""
    whole = re.compile(pattern.replace("{BE}", BE).replace("{SIZE}", SIZE), re.IGNORECASE)

    def register(build: Build) -> Build:
        FORMS.append((whole, build))
        return build

    return register


def claim(text: str, names: Names) -> Claim | None:
    """The claim that a phrase makes; None where no form has it."""
    for pattern, build in FORMS:
        found = pattern.fullmatch(text.strip().rstrip("."))
        if found is not None and (made := build(found, names)) is not None:
            return made
    return None


def _each(who: Who, test: Callable[[Moment, str], bool]) -> Callable[[Moment], bool]:
    """A test over the workloads that are meant: all of 'A and B', one of 'A or B' or of 'a workload'."""

    def run(moment: Moment) -> bool:
        found = who.among(moment)
        results = (test(moment, name) for name in found)
        return all(results) and bool(found) if who.all else any(results)

    return run


# -- where pods are ---------------------------------------------------------------------------------------------------


@form(r"(?P<s>.+?) {BE} (?:bound|placed|assigned|scheduled)(?: (?:to|on|onto|at) (?P<n>\S+))?(?:, .+ included)?")
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
    return Claim(_each(who, test), event=event)


@form(r"(?P<s>.+?) (?:{BE} (?:recorded |booked |kept |running |shown )?(?:on|at)|runs? on|holds?) (?P<n>\S+)")
def _on(found: re.Match[str], names: Names) -> Claim | None:
    who, node = names.who(found["s"]), names.node(found["n"])
    if who is None or not node:
        return None
    return Claim(_each(who, lambda m, name: any(pod.node == node for pod in view.placed_pods(m.state, name))))


@form(r"(?P<s>.+?) (?:runs?|{BE} (?:shown as )?running|{BE} up)(?: at the same (?:time|moment))?")
def _runs(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    return None if who is None else Claim(_each(who, lambda m, name: view.runs(m.state.standings.get(name))))


@form(r"(?P<s>.+?) (?:holds?|uses?|keeps?|has|have) (?P<k>{SIZE}) (?:whole )?GPUs?(?: at the same (?:time|moment))?")
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
        return size.fits(units) or (size.op == "at least" and units > 0)

    return Claim(_each(who, test))


@form(r"(?P<s>.+?) (?:has|have|keeps?|runs? with|{BE} running with|{BE} left with) (?P<k>{SIZE}) (?:bound |running )?"
      r"pods?(?: (?:bound|placed|running|left))?(?: of (?P<r>\S+))?")  # fmt: skip
def _has_pods(found: re.Match[str], names: Names) -> Claim | None:
    who, size = names.who(found["s"]), Size(found["k"])
    if who is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        count = len(view.bound_pods(moment.state, name, found["r"] or who.role))
        return size.fits(count) and (count > 0 or 0 in size.numbers)

    return Claim(_each(who, test))


@form(r"(?P<k>{SIZE}) pods?(?: of (?P<s>.+?))? (?:have a place|has a place|{BE} (?:bound|placed|running))")
def _pods_have(found: re.Match[str], names: Names) -> Claim | None:
    who, size = names.who(found["s"] or names.main), Size(found["k"])
    return None if who is None else Claim(_each(who, lambda m, name: size.fits(len(view.placed_pods(m.state, name)))))


@form(r"(?:the )?(?:pods of )?(?P<s>.+?) {BE} (?:on|in|across|over|spread over|split over|split across) "
      r"(?P<k>{SIZE}) (?P<l>\w+?)s?")  # fmt: skip
def _spread(found: re.Match[str], names: Names) -> Claim | None:
    who, size, level = names.who(found["s"]), Size(found["k"]), found["l"]
    if who is None or level not in (*names.levels, "node"):
        return None

    def test(moment: Moment, name: str) -> bool:
        nodes = (moment.state.nodes.get(pod.node) for pod in view.bound_pods(moment.state, name))
        return size.fits(len({view.domain(node, level) for node in nodes if node is not None}))

    return Claim(_each(who, test))


# -- what happens -----------------------------------------------------------------------------------------------------


@form(r"(?P<s>.+?) (?:starts?|started|{BE} started|begins?)(?: on (?P<n>\S+))?"
      r"(?: with (?P<k>{SIZE}) pods?(?: of (?P<r>\S+))?)?")  # fmt: skip
def _starts(found: re.Match[str], names: Names) -> Claim | None:
    who, node = names.who(found["s"]), names.node(found["n"])
    size = Size(found["k"]) if found["k"] else None
    if who is None or node is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        for _, pods in moment.begun([name], node):
            roles = moment.world.specs[name].roles
            counted = [pod for pod in pods if not found["r"] or roles[pod.role].name == found["r"]]
            if size is None or size.fits(len(counted)):
                return True
        return False

    return Claim(_each(who, test), event=True)


@form(r"(?P<s>.+?) {BE} (?:evicted|preempted|reclaimed|stopped|killed|restarted|taken)"
      r"(?P<again> again| twice| more than once)?(?: in order to \w+)?(?: (?:by|for) (?P<by>.+))?")  # fmt: skip
def _evicted(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    by = names.who(found["by"]) if found["by"] else None
    if who is None or (found["by"] and by is None):
        return None

    def test(moment: Moment, name: str) -> bool:
        evicts = [e for e in moment.evicted([name]) if by is None or e.claimant in by.among(moment)]
        stopped = any(isinstance(entry, Stop) and entry.workload == name for entry in moment.entries)
        enough = 2 if found["again"] else 1
        return bool(evicts or (stopped and by is None)) and moment.world.evictions[name] >= enough - stopped

    return Claim(_each(who, test), event=True)


@form(r"(?P<k>{SIZE}) pods of (?P<s>.+?) {BE} (?:evicted|taken)")
def _pods_evicted(found: re.Match[str], names: Names) -> Claim | None:
    who, size = names.who(found["s"]), Size(found["k"])
    return None if who is None else Claim(_each(who, lambda m, name: size.fits(m.world.evicted_pods[name])))


@form(r"(?P<s>.+?)'s .*\(?rank (?P<rank>\d+)\)?.* {BE} (?:the one )?(?:taken|evicted|stopped)")
def _rank_taken(found: re.Match[str], names: Names) -> Claim | None:
    who, rank = names.who(found["s"]), int(found["rank"])
    test = _each(who, lambda m, n: any(p[3] == rank for e in m.evicted([n]) for p in e.pods)) if who else None
    return test and Claim(test, event=True)


@form(r"(?P<s>.+?) (?:causes? (?:an|any) evictions?|evicts? (?P<v>.+))")
def _causes(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    loose = found["v"] is None or re.fullmatch(r"any(?:thing|body|one)|a pod|a workload|(?:any )?work", found["v"])
    victims = None if loose else names.who(found["v"])
    if who is None or not (loose or victims):
        return None

    def test(moment: Moment, name: str) -> bool:
        return any(
            isinstance(entry, Evict)
            and entry.claimant == name
            and (victims is None or entry.workload in victims.among(moment))
            for entry in moment.entries
        )

    return Claim(_each(who, test), event=True)


@form(r"(?P<s>.+?) (?:ends?|(?:has |have |had )?(?:ended|finished)|finishes|{BE} (?:over|done|ended|finished|gone))")
def _ends(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    return (
        None
        if who is None
        else Claim(_each(who, lambda m, name: name in m.state.outcomes or m.ended([name])), event=True)
    )


# -- who waits --------------------------------------------------------------------------------------------------------


@form(r"(?P<s>.+?) (?:waits?|stays? pending|{BE} (?:kept )?(?:pending|waiting))")
def _pending(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    return None if who is None else Claim(_each(who, lambda m, name: view.is_pending(m.state, name)), rest=True)


@form(r"(?:(?:the )?nodes? )?(?P<n>\S+) (?:{BE} )?(?:free|idle|empty)")
def _free(found: re.Match[str], names: Names) -> Claim | None:
    node = names.node(found["n"])
    return Claim(lambda m: node_free(m.state, node), rest=True) if node else None


@form(r"the reason(?: (?:of|for|shown for) (?P<s>.+?))? (?:names?|mentions?|says?|is|speaks of) (?P<word>.+)")
def _reason(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"]) if found["s"] else Who.anybody()
    word = found["word"].strip("'\"")
    if who is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        return view.is_pending(moment.state, name) and word.casefold() in moment.reason(name).casefold()

    return Claim(_each(who, test), rest=True)


@form(r"(?P<none>no(?: other)? (?:workload|job|gang)|nothing|nobody|.+?) {BE} ahead of (?P<s>.+)")
def _ahead(found: re.Match[str], names: Names) -> Claim | None:
    who, other = names.who(found["s"]), names.who(found["none"])
    if who is None:
        return None
    if re.match(r"no", found["none"]):
        return Claim(_each(who, lambda m, name: position(m.state, name) == 1), rest=True)
    if other is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        mine = position(moment.state, name)
        return any(0 < position(moment.state, each) < mine for each in other.among(moment))

    return Claim(_each(who, test), rest=True)


@form(r"(?P<s>.+?) shows any reason before it was (?:looked at|considered|tried), other than '(?P<but>[^']+)'")
def _early_reason(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    if who is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        new = any(getattr(getattr(e, "workload", None), "id", "") == name for e in moment.entries)
        reason = moment.reason(name) if new and view.is_pending(moment.state, name) else ""
        return bool(reason) and not _alike(found["but"], reason)

    return Claim(_each(who, test), fresh=True)


def _alike(said: str, reason: str) -> bool:
    """Whether a reason says the same as some words: each word of them, 'yet' and 'not' aside, is in it."""
    words = [word for word in re.findall(r"\w+", said.casefold()) if word not in ("not", "yet", "been")]
    return all(word in reason.casefold() for word in words)


# -- the books --------------------------------------------------------------------------------------------------------


@form(r"(?:the )?(?:usage|use) of (?P<q>.+?) (?:is|gets|goes|becomes) (?P<how>negative|{SIZE}(?: or {SIZE})*)")
def _usage(found: re.Match[str], names: Names) -> Claim | None:
    some = re.fullmatch(r"(?:a|any|some) (?:queue|project)", found["q"])
    project = "" if some else names.project(found["q"])
    if project is None:
        return None
    how = "below 0" if found["how"] == "negative" else found["how"]
    sizes = [Size(part) for part in re.split(r" or (?=[a-z])", how)]

    def test(moment: Moment) -> bool:
        used = view.usage(moment.state)
        for name in [project] if project else set(used) | set(moment.state.projects):
            low, high = sorted((gpus(used[name]), gpus(book_use(moment.state, name))))
            if any(size.fits(low if size.op in ("below", "less than", "under") else high) for size in sizes):
                return True
        return False

    return Claim(test)


@form(r"(?:the )?(?:usage|use) of (?P<q>.+?) counts (?P<s>.+?) twice(?: \(.+\))?")
def _twice(found: re.Match[str], names: Names) -> Claim | None:
    project = names.project(found["q"])
    if not project or names.who(found["s"]) is None:
        return None
    return Claim(lambda m: book_use(m.state, project) > view.usage(m.state)[project], rest=True)


@form(r"(?P<k>{SIZE}) GPUs? {BE} (?:assigned|bound|held|used|booked)(?: (?:on|of) (?P<n>one node|a node|any node|\S+))")
def _assigned(found: re.Match[str], names: Names) -> Claim | None:
    size = Size(found["k"])
    some = found["n"] in ("one node", "a node", "any node")
    node = "" if some else names.node(found["n"])
    if node is None or not (some or node):
        return None

    def test(moment: Moment) -> bool:
        held: dict[str, int] = {}
        for (name, _), units in view.held_by_device(moment.state).items():
            held[name] = held.get(name, 0) + units
        return any(size.fits(gpus(units)) for name, units in held.items() if not node or name == node)

    return Claim(test)


@form(r"(?:a|any|one) GPU {BE} (?:assigned|given|booked|bound) (?:twice|to two (?:pods|workloads|jobs))")
def _double(_found: re.Match[str], _names: Names) -> Claim | None:
    return Claim(lambda m: gpu_of_two(m.state))


@form(r"(?:a|any) pod {BE} (?:rejected|refused|turned away) by (?P<n>\S+) for (?P<r>\w+)")
def _rejected(found: re.Match[str], names: Names) -> Claim | None:
    node = names.node(found["n"])
    return Claim(lambda m: overfull(m.state, node, found["r"].casefold())) if node else None


@form(r"(?P<s>.+?) (?:lowers?|reduces?) the (?:demand|share)(?: or (?:demand|share))? of (?P<q>.+)")
def _lowers(found: re.Match[str], names: Names) -> Claim | None:
    who, project = names.who(found["s"]), names.project(found["q"])
    if who is None or not project:
        return None

    def test(moment: Moment, name: str) -> bool:
        if name not in moment.state.standings:
            return False
        return demand(moment.state, project) < demand(moment.state, project, without=name)

    return Claim(_each(who, test), rest=True)


@form(r"a wait for (?P<s>.+?) does not return")
def _wait(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    return None if who is None else Claim(_each(who, lambda m, name: name not in m.state.outcomes), rest=True)
