"""What the engine finds, decides and hears, as text. A missing figure is '?': no sentence may stop the loop."""

from collections.abc import Iterable, Mapping
from string import Formatter
from typing import TypeVar, assert_never

from allmende.model import event as events
from allmende.model.cluster import NodeState, Pod, PodId
from allmende.model.decision import Cause, Close, Decision, Evict, Grow, Hold, Release, Start, Stop
from allmende.model.event import Event
from allmende.model.reason import Param, Reason
from allmende.model.remedy import Remedy
from allmende.model.request import units_asked
from allmende.model.workload import Workload
from allmende.words import en, ko
from allmende.words.catalogue import GROWING, UNTOLD, Catalogue
from allmende.words.params import COMMON, PARAMS, REMEDY_PARAMS, Kind

_What = TypeVar("_What")

_CATALOGUES: dict[str, Catalogue] = {"en": en.CATALOGUE, "ko": ko.CATALOGUE}
LANGUAGES = tuple(_CATALOGUES)


def say(reason: Reason, language: str = "en") -> str:
    """A reason as whole sentences: what stands in the way in figures, then whether waiting helps.

    Raises KeyError for a language without a catalogue (see LANGUAGES).
    """
    words = _CATALOGUES[language]
    sentences = _sentences(reason, words, "")
    if reason.code in GROWING:
        sentences.append(words.growing)
    elif reason.code not in UNTOLD:
        sentences.append(words.waiting[reason.waiting])
    return " ".join(sentences)


def _sentences(reason: Reason, words: Catalogue, model: str) -> list[str]:
    """One finding and what it comes from; `model`: the GPU model that the sentence before was about."""
    template = _template(reason.code, reason.params, words.reasons, words.given)
    text = template.format_map(_Figures(reason.params, {**COMMON, **PARAMS[reason.code]}, words))
    about = str(reason.params.get("model") or model)
    if about != model and "model" not in _names(template):
        text = words.on_model.format(model=about, sentence=text)
    return [text, *(sentence for part in reason.parts for sentence in _sentences(part, words, about))]


def _template(
    what: _What,
    params: Mapping[str, Param],
    texts: Mapping[_What, str],
    given: Mapping[tuple[_What, tuple[str, ...]], str],
) -> str:
    for (about, needed), text in given.items():
        if about is what and all(_says_something(params.get(name, "")) for name in needed):
            return text
    return texts[what]


def _says_something(value: Param) -> bool:
    return value > 0 if isinstance(value, int) else bool(value)


class _Figures(dict[str, str]):
    """Params as they are written."""

    def __init__(self, params: Mapping[str, Param], kinds: Mapping[str, Kind], words: Catalogue) -> None:
        super().__init__((name, words.figure(kinds.get(name, Kind.NAME), value)) for name, value in params.items())

    def __missing__(self, name: str) -> str:
        return "?"


def _names(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def say_remedy(remedy: Remedy, language: str = "en") -> str:
    """A change that would start a waiting workload, as one sentence. Raises KeyError as `say` does."""
    words = _CATALOGUES[language]
    template = _template(remedy.change, remedy.params, words.remedies, words.remedies_given)
    return template.format_map(_Figures(remedy.params, REMEDY_PARAMS[remedy.change], words))


def screen(key: str, language: str = "en", **params: object) -> str:
    """One of the words that live output shows besides reasons, decisions and events."""
    return _CATALOGUES[language].screen[key].format(**params)


def say_decision(decision: Decision, language: str = "en") -> str:
    """A decision in one line."""
    words = _CATALOGUES[language]
    texts = words.decisions
    match decision:
        case Start(workload=workload, pods=pods):
            return texts["start"].format(workload=workload, places=_places(pods, words))
        case Grow(workload=workload, pods=pods):
            return texts["grow"].format(
                workload=workload, pods=_count(Kind.PODS, pods, words), places=_places(pods, words)
            )
        case Evict(workload=workload, pods=ids):
            lost = _count(Kind.PODS, ids, words)
            return texts["evict"].format(workload=workload, pods=lost, cause=_cause(decision, words))
        case Hold(workload=workload, pods=pods):
            return texts["hold"].format(workload=workload, places=_places(pods, words))
        case Release(workload=workload):
            return texts["release"].format(workload=workload)
        case Stop(workload=workload, cause=cause):
            return texts["stop"].format(workload=workload, cause=_because(cause, words))
        case Close(node=node, why=why):
            return texts["close"].format(node=node, why=words.figure(Kind.STATE, why))
    assert_never(decision)


def _cause(decision: Evict, words: Catalogue) -> str:
    text = _because(decision.cause, words)
    if decision.detail:
        text = f"{text}, {words.figure(Kind.STATE, decision.detail)}"
    return words.claimed.format(text=text, claimant=decision.claimant) if decision.claimant else text


def _because(cause: Cause, words: Catalogue) -> str:
    return words.causes[cause]


def _count(kind: Kind, things: Iterable[object], words: Catalogue) -> str:
    return words.figure(kind, len(tuple(things)))


def say_places(pods: Iterable[Pod], language: str = "en") -> str:
    """Where pods run: 'n1 (GPU 0, 1), n2'."""
    return _places(pods, _CATALOGUES[language])


def _places(pods: Iterable[Pod], words: Catalogue) -> str:
    """'n1 (GPU 0, 1), n2': the nodes in the order of their names, each with the devices that are used there."""
    devices: dict[str, set[int]] = {}
    for pod in pods:
        devices.setdefault(pod.node, set()).update(part.device for part in pod.slices)
    return ", ".join(
        words.decisions["place"].format(node=node, gpus=", ".join(map(str, sorted(used)))) if used else node
        for node, used in sorted(devices.items())
    )


def say_event(event: Event, language: str = "en") -> str:
    """An event in one line; '' for those that people need not read (time passed, knobs and levels set)."""
    words = _CATALOGUES[language]
    texts = words.events
    match event:
        case events.Submitted(workload=workload):
            return texts["submitted"].format(
                workload=workload.id,
                pods=words.figure(Kind.PODS, workload.pods),
                gpus=words.figure(Kind.UNITS, _units(workload)),
            )
        case events.Up(workload=name):
            return texts["up"].format(workload=name)
        case events.Cancelled(workload=name):
            return texts["cancelled"].format(workload=name)
        case events.Resized(workload=name, pods=pods):
            return texts["resized"].format(workload=name, pods=words.figure(Kind.PODS, pods))
        case events.PodEnded(pod=pod, ok=ok):
            return texts["pod_ok" if ok else "pod_failed"].format(pod=_pod(pod))
        case events.PodGone(pod=pod):
            return texts["pod_gone"].format(pod=_pod(pod))
        case events.PodLost(pod=pod, why=why):
            return texts["pod_lost"].format(pod=_pod(pod), why=words.figure(Kind.STATE, why) or "?")
        case events.Ended(workload=name, ok=ok):
            return texts["ended_ok" if ok else "ended_failed"].format(workload=name)
        case events.Checkpointed(workload=name, made=made):
            return texts["checkpointed"].format(workload=name, made=words.figure(Kind.CLOCK, made))
        case _:
            return _say_setting(event, words)


def _say_setting(
    event: events.NodeSet | events.NodeGone | events.ProjectSet | events.PolicySet | events.LevelsSet | events.Ticked,
    words: Catalogue,
) -> str:
    match event:
        case events.NodeSet(node=node) if node.state is not NodeState.READY:
            state = words.figure(Kind.STATE, node.state.value)
            return words.events["node_state"].format(node=node.name, state=state)
        case events.NodeSet(node=node):
            gpus = words.figure(Kind.GPUS, len(node.devices))
            key = "node" if node.model else "node_plain"
            return words.events[key].format(node=node.name, gpus=gpus, model=node.model)
        case events.NodeGone(node=name):
            return words.events["node_gone"].format(node=name)
        case events.ProjectSet(project=project):
            guarantee = words.figure(Kind.UNITS, project.guarantee)
            return words.events["project"].format(project=project.name, guarantee=guarantee)
        case events.PolicySet() | events.LevelsSet() | events.Ticked():
            return ""
    assert_never(event)


def _pod(pod: PodId) -> str:
    """'train, attempt 1, pod 0.3' would be read in one language only: role and rank after the name say it in all."""
    workload, attempt, role, rank = pod
    return f"{workload}/{attempt}/{role}.{rank}"


def _units(workload: Workload) -> int:
    """GPU units asked in all; slots and memory, whose size depends on the node, count as none."""
    return sum(role.pods * units_asked(role.ask) for role in workload.roles if not role.ask.slots)
