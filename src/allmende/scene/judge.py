"""A file judged: a scene of our own or a case of the neutral layout, by its shape and kind, never by its name or id."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from allmende.model.mistake import Mistake, MistakeCode
from allmende.scene.cases import CaseReader
from allmende.scene.cell import THIS_FILE, Cell, read_yaml
from allmende.scene.forms.daily import daily
from allmende.scene.forms.named import names
from allmende.scene.forms.settled import policies, projects
from allmende.scene.forms.then import Then
from allmende.scene.forms.values import annotated, values
from allmende.scene.forms.windows import windows
from allmende.scene.measure import Played
from allmende.scene.read import scene
from allmende.scene.rule import Refused
from allmende.scene.run import Status, Verdict, play

LAYOUT = "layout"
"""The kind of a file that describes the layout of the cases beside it."""
CAPABILITY = {
    "budget": "budgets",
    "spot": "bought capacity and recovery",
    "checkpoint": "stop signals and recovery from checkpoints",
    "mig": "MIG layouts",
    "chargeback": "charges and statements",
    "procurement": "procurement",
    "telemetry": "telemetry",
    "idle": "idle detection",
    "slurm-file": "reading Slurm files",
    "file": "reading workload manifests",
    "kubeconfig": "reading kubeconfig files",
}
"""What a kind needs where the product does not have it yet."""

Form = Callable[[Cell, dict[str, Cell], Then], None]


class Judged(Struct):
    """One file's verdict. `kind` is 'scene' for our own layout; `played` None where nothing was run."""

    path: str
    id: str
    kind: str
    about: str
    verdict: Verdict
    played: Played | None = None


def judge(path: str) -> Judged:
    """Read, run and judge a file. Raises Mistake for what is neither a scene nor a case, and for a broken scene."""
    top = read_yaml(path)
    fields = top.entries()
    if "version" in fields:
        read = scene(top, path)
        played, verdict = play(read)
        return Judged(path, read.name, "scene", read.about, verdict, played)
    if "id" not in fields or "kind" not in fields:
        do = "begin a scene with version: 1, or a case with id and kind"
        if "jobs" in fields:
            do = f"run a file of jobs with: allmende run {path} --virtual-gpus 8xH100"
        raise top.mistake(MistakeCode.MISSING, do, "is neither a scene nor a case", what=THIS_FILE)
    kind = fields["kind"].text()
    if kind == LAYOUT:
        raise top.mistake(MistakeCode.WRONG_KIND, "name a case", "describes a layout and is no case", what=THIS_FILE)
    about = fields["symptom"].text() if "symptom" in fields else ""
    played, verdict = _case(top, fields, path, kind)
    return Judged(path, fields["id"].text(), kind, about, verdict, played)


def is_layout(path: str) -> bool:
    """Whether a file of a case folder describes the layout instead of being a case."""
    fields = read_yaml(path).entries()
    return "kind" in fields and fields["kind"].text() == LAYOUT


def _case(top: Cell, fields: dict[str, Cell], path: str, kind: str) -> tuple[Played | None, Verdict]:
    """Judge a case; what cannot be read for want of a whole part of the product is 'not yet'."""
    played: Played | None = None
    try:
        form = None if "file" in fields else _form(fields)
        if form is not None:
            then = Then(fields.get("then"))
            form(top, fields["given"].entries(), then)
            verdict = then.verdict()
        else:
            played, verdict = _run(top, fields, path)
    except Refused as refused:
        status = Status.REFUSED if refused.allowed else Status.FAILED
        return None, Verdict(status, (str(refused),))
    except Mistake as mistake:
        verdict = _unreadable(mistake, fields, kind)
    if verdict.status is Status.NOT_YET and kind in CAPABILITY:
        verdict = Verdict(
            Status.NOT_YET, (CAPABILITY[kind], *(line for line in verdict.why if line != CAPABILITY[kind]))
        )
    return played, verdict


def _unreadable(mistake: Mistake, fields: dict[str, Cell], kind: str) -> Verdict:
    """The verdict on a case that the product refuses to read: right where the case expects just that."""
    then = Then(fields.get("then"))
    wanted = then.take("verdict")
    if wanted is None or kind in CAPABILITY:
        return Verdict(Status.NOT_YET if kind in CAPABILITY else Status.FAILED, (str(mistake),))
    then.outcome(wanted.text(), mistake, [], "the case")
    then.matches(str(mistake), then.take("message"), "the refusal")
    then.take("evicted")  # nothing ran
    return then.verdict()


def _run(top: Cell, fields: dict[str, Cell], path: str) -> tuple[Played | None, Verdict]:
    read = CaseReader(top, path).scene()
    unread = [f"field {name}" for name in fields if name not in _CASE_FIELDS]
    if unread:
        return None, Verdict(Status.NOT_YET, (*unread, *read.gaps))
    return play(read)


_CASE_FIELDS = ("id", "kind", "source", "symptom", "rules", "given", "when", "then", "why")


def _form(fields: dict[str, Cell]) -> Form | None:
    """The form of a case that does not play out in time; None where it does."""
    given = fields["given"].entries() if "given" in fields else {}
    if "values" in given and "field" in given:
        return values
    if "pods" in given and all("annotations" in item.entries() for item in given["pods"].items()):
        return annotated
    if "jobs" in given and all(item.is_text for item in given["jobs"].items()):
        return names
    if "settings" in given and given["settings"].is_list:
        return policies
    if "queue" in given and "spent" in given:
        return daily
    if "window" in given or ("job" in given and {"start_local", "start"} & set(given["job"].entries())):
        return windows
    if "queues" in given and "when" not in fields and "running" not in given:
        return projects
    return None
