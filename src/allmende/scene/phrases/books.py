"""Phrases about the books: use, GPUs given out, room, demand."""

from __future__ import annotations

import re

from allmende.model.tenancy import Project
from allmende.scene import view
from allmende.scene.book import book_use, demand
from allmende.scene.claim import Claim
from allmende.scene.moment import Moment, Size, gpus
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


@FORMS.form(r"(?P<q>.+?) (?:uses?|holds?|has) more than its (?P<what>max|cap|limit|guarantee)")
def _above_own(found: re.Match[str], names: Names) -> Claim | None:
    return _beyond(names.project(found["q"]), found["what"])


@FORMS.form(r"(?:the )?(?:usage|use) of (?P<q>.+?) is above its (?P<what>max|cap|limit|guarantee)")
def _use_above_own(found: re.Match[str], names: Names) -> Claim | None:
    return _beyond(names.project(found["q"]), found["what"])


def _beyond(name: str | None, what: str) -> Claim | None:
    """Use above a project's own cap or guarantee, whatever it is at that moment."""
    if not name:
        return None

    def test(moment: Moment) -> bool:
        project = moment.state.projects.get(name) or Project(name)
        bound = project.guarantee if what == "guarantee" else project.cap
        return bound is not None and view.usage(moment.state)[name] > bound

    return Claim(test)


@FORMS.form(r"(?P<k>{SIZE}) (?:workloads|jobs|pods) of (?P<u>\S+) (?:run|are running)(?: at the same (?:time|moment))?")
def _of_user(found: re.Match[str], names: Names) -> Claim | None:
    size, user = Size(found["k"]), found["u"]
    if user not in names.users:
        return None

    def test(moment: Moment) -> bool:
        mine = (s for s in moment.state.standings.values() if s.workload.user == user)
        return size.fits(sum(view.runs(standing) for standing in mine))

    return Claim(test)


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
