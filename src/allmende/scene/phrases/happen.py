"""Phrases about what happens: starts, evictions, ends."""

from __future__ import annotations

import re

from allmende.model.decision import Evict, Stop
from allmende.scene.claim import Claim
from allmende.scene.moment import Moment, Size
from allmende.scene.phrases.form import Forms, each
from allmende.scene.who import Names

FORMS = Forms()


@FORMS.form(r"(?P<s>.+?) (?:starts?|started|{BE} started|begins?)(?: on (?P<n>\S+))?"
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

    return Claim(each(who, test), event=True)


@FORMS.form(r"(?P<s>.+?) {BE} (?:evicted|preempted|reclaimed|stopped|killed|restarted|taken)"
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

    return Claim(each(who, test), event=True)


@FORMS.form(r"(?P<s>.+?) (?:starts?|{BE} (?:started|bound|placed|admitted)) (?:only )?in part")
def _starts_in_part(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    if who is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        standing = moment.state.standings.get(name)
        return standing is not None and 0 < len(standing.pods) < standing.minimum

    return Claim(each(who, test))


@FORMS.form(r"(?P<s>.+?) (?:starts?|{BE} started) (?:twice|again|more than once)")
def _starts_again(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    if who is None:
        return None

    def test(moment: Moment, name: str) -> bool:
        starts = sum(1 for begun in moment.record.begun if begun.workload == name and not begun.grown)
        return starts > 1 and bool(moment.begun([name]))

    return Claim(each(who, test), event=True)


@FORMS.form(r"(?P<k>{SIZE}) pods of (?P<s>.+?) {BE} (?:evicted|taken)")
def _pods_evicted(found: re.Match[str], names: Names) -> Claim | None:
    who, size = names.who(found["s"]), Size(found["k"])
    return None if who is None else Claim(each(who, lambda m, name: size.fits(m.world.evicted_pods[name])))


@FORMS.form(r"(?P<s>.+?)'s .*\(?rank (?P<rank>\d+)\)?.* {BE} (?:the one )?(?:taken|evicted|stopped)")
def _rank_taken(found: re.Match[str], names: Names) -> Claim | None:
    who, rank = names.who(found["s"]), int(found["rank"])
    test = each(who, lambda m, n: any(p[3] == rank for e in m.evicted([n]) for p in e.pods)) if who else None
    return test and Claim(test, event=True)


@FORMS.form(r"(?P<s>.+?) (?:causes? (?:an|any) evictions?|evicts? (?P<v>.+))")
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

    return Claim(each(who, test), event=True)


@FORMS.form(
    r"(?P<s>.+?) (?:ends?|(?:has |have |had )?(?:ended|finished)|finishes|{BE} (?:over|done|ended|finished|gone))"
)
def _ends(found: re.Match[str], names: Names) -> Claim | None:
    who = names.who(found["s"])
    return (
        None
        if who is None
        else Claim(each(who, lambda m, name: name in m.state.outcomes or m.ended([name])), event=True)
    )
