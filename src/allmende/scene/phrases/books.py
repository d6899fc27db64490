"""Phrases about the books: use, GPUs given out, room, demand."""

from __future__ import annotations

import re

from allmende.scene import view
from allmende.scene.book import book_use, demand, gpu_of_two
from allmende.scene.claim import Claim
from allmende.scene.moment import Moment, Size, gpus, overfull
from allmende.scene.phrases.form import Forms, each
from allmende.scene.who import Names

FORMS = Forms()


@FORMS.form(r"(?:the )?(?:usage|use) of (?P<q>.+?) (?:is|gets|goes|becomes) (?P<how>negative|{SIZE}(?: or {SIZE})*)")
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


@FORMS.form(r"(?:the )?(?:usage|use) of (?P<q>.+?) counts (?P<s>.+?) twice(?: \(.+\))?")
def _twice(found: re.Match[str], names: Names) -> Claim | None:
    project = names.project(found["q"])
    if not project or names.who(found["s"]) is None:
        return None
    return Claim(lambda m: book_use(m.state, project) > view.usage(m.state)[project], rest=True)


@FORMS.form(
    r"(?P<k>{SIZE}) GPUs? {BE} (?:assigned|bound|held|used|booked)(?: (?:on|of) (?P<n>one node|a node|any node|\S+))"
)
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


@FORMS.form(r"(?:a|any|one) GPU {BE} (?:assigned|given|booked|bound) (?:twice|to two (?:pods|workloads|jobs))")
def _double(_found: re.Match[str], _names: Names) -> Claim | None:
    return Claim(lambda m: gpu_of_two(m.state))


@FORMS.form(r"(?:a|any) pod {BE} (?:rejected|refused|turned away) by (?P<n>\S+) for (?P<r>\w+)")
def _rejected(found: re.Match[str], names: Names) -> Claim | None:
    node = names.node(found["n"])
    return Claim(lambda m: overfull(m.state, node, found["r"].casefold())) if node else None


@FORMS.form(r"(?P<s>.+?) (?:lowers?|reduces?) the (?:demand|share)(?: or (?:demand|share))? of (?P<q>.+)")
def _lowers(found: re.Match[str], names: Names) -> Claim | None:
    who, project = names.who(found["s"]), names.project(found["q"])
    if who is None or not project:
        return None

    def test(moment: Moment, name: str) -> bool:
        if name not in moment.state.standings:
            return False
        return demand(moment.state, project) < demand(moment.state, project, without=name)

    return Claim(each(who, test), rest=True)


@FORMS.form(r"a wait for (?P<s>.+?) does not return")
def _wait(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    return None if who is None else Claim(each(who, lambda m, name: name not in m.state.outcomes), rest=True)
