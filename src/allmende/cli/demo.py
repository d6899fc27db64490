"""`allmende demo`: twelve real jobs on virtual GPUs, then three simulated scenes; `check` asserts how all end."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.rule import Rule

from allmende.backend.local.devices import virtual_nodes
from allmende.cli.board import summarise
from allmende.cli.jobs_file import read_jobs
from allmende.cli.play import show
from allmende.cli.run import INTERRUPTED, Finished, Options, execute, interruptible
from allmende.control.journal import differences, replay
from allmende.model.decision import Cause, Evict, Start
from allmende.model.mistake import Mistake, MistakeCode
from allmende.scene.read import read
from allmende.scene.run import Status, play
from allmende.words import say, screen

GPUS = "8xH100"
GANGS = {"pretrain": 4, "evaluate": 2}
VICTIM, CLAIMANT, IMPOSSIBLE = "explore", "evaluate", "giant"
JOBS = 12
SCENES = 3
PAUSE = 1.2
"""Seconds for the eye between two instants of a scene."""

Check = tuple[bool, str]


def demo(check: bool, language: str, out: TextIO) -> int:
    """Show it. Returns 0, or 1 where a check fails, 2 where the examples are not there, 130 when interrupted."""
    console = Console(file=out, highlight=False, markup=False)
    try:
        with interruptible(), _in(_examples().parent):
            checks = _real_jobs(console, check, language)
            checks += _scenes(console, check, language)
    except Mistake as mistake:
        print(mistake, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(screen("interrupted", language), file=sys.stderr)
        return INTERRUPTED
    if check:
        console.print(Rule("checks"))
        for held, text in checks:
            console.print(f"{'ok    ' if held else 'FAILED'} {text}", soft_wrap=True)
    return 0 if all(held for held, _ in checks) else 1


def _examples() -> Path:
    folder = Path(__file__).parents[3] / "examples"
    if not (folder / "demo.yaml").is_file():
        wrong = "is not there: it comes with the sources, not with the installed package"
        raise Mistake(MistakeCode.MISSING, str(folder / "demo.yaml"), "demo", "run the demo from a checkout", wrong)
    return folder


@contextmanager
def _in(folder: Path) -> Iterator[None]:
    """The jobs name their scripts from the checkout's root."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


# -- real processes -----------------------------------------------------------------------------------------------


def _real_jobs(console: Console, check: bool, language: str) -> list[Check]:
    console.print(Rule(screen("real_jobs", language, gpus=GPUS, file="examples/demo.yaml")))
    with tempfile.TemporaryDirectory(prefix="allmende-demo-") as folder:
        os.environ["TMPDIR"] = folder  # what the jobs save goes with it
        log = Path(folder) / "events.jsonl"
        options = Options(log, Path(folder) / "output", plain=check, language=language)
        finished = execute(read_jobs("examples/demo.yaml"), virtual_nodes(GPUS), options, console)
        summarise(console, finished.stories, language, finished.remedies)
        return [*_gangs(finished), *_preemption(finished), *_ends(finished, log)]


def _gangs(finished: Finished) -> list[Check]:
    found = []
    for name, pods in GANGS.items():
        starts = [entry for entry in finished.entries if isinstance(entry, Start) and entry.workload == name]
        whole = bool(starts) and all(len(start.pods) == pods for start in starts)
        found.append((whole, f"the gang {name} started with all its {pods} pods at once"))
    return found


def _preemption(finished: Finished) -> list[Check]:
    evictions = [entry for entry in finished.entries if isinstance(entry, Evict)]
    told = [(entry.workload, entry.cause, entry.claimant) for entry in evictions]
    victim = finished.stories.by_name[VICTIM]
    log = finished.logs / VICTIM / "attempt-2.pod-0.0.log"
    first = log.read_text().partition("\n")[0] if log.is_file() else ""
    resumed = victim.ok and victim.attempts == 2 and first.rpartition(" ")[2] not in ("", "0")
    return [
        (
            told == [(VICTIM, Cause.RECLAIM, CLAIMANT)],
            f"{CLAIMANT} took its guarantee back from {VICTIM}, and from it alone",
        ),
        (resumed, f"{VICTIM} resumed where it was ({first or 'no second attempt'}) and ended well"),
    ]


def _ends(finished: Finished, log: Path) -> list[Check]:
    stories = finished.stories.by_name
    giant = stories[IMPOSSIBLE]
    reason = "" if giant.reason is None else say(giant.reason)
    others = [story for name, story in stories.items() if name != IMPOSSIBLE]
    replayed = differences(finished.state, replay(log))
    return [
        (len(stories) == JOBS and all(story.ok for story in others), "the eleven jobs that can run ended well"),
        (giant.never and giant.started is None and "never" in reason, f"{IMPOSSIBLE} was refused: {reason}"),
        (finished.left == 0, f"all processes are gone ({finished.left} left)"),
        (not replayed, f"the event log replays to the same end (differences: {', '.join(replayed) or 'none'})"),
    ]


# -- the simulated world ------------------------------------------------------------------------------------------


def _scenes(console: Console, check: bool, language: str) -> list[Check]:
    paths = sorted(Path("examples/scenes").glob("*.yaml"))
    found: list[Check] = [(len(paths) >= SCENES, f"there are {SCENES} scenes in examples/scenes")]
    pause: Callable[[], None] = _no_pause if check or not console.is_terminal else _pause
    for path in paths[:SCENES]:
        scene = read(str(path))
        console.print(Rule(f"{screen('simulated', language)}: {path}"))
        console.print(f"{scene.name}. {scene.about}".strip(" ."), soft_wrap=True)
        show(scene, console, language, pause)
        _, verdict = play(scene)
        why = "" if verdict.status is Status.PASSED else f": {'; '.join(verdict.why)}"
        found.append((verdict.status is Status.PASSED, f"{path}: {verdict.status.value}{why}"))
    return found


def _no_pause() -> None:
    """Whoever checks does not watch."""


def _pause() -> None:
    threading.Event().wait(PAUSE)
