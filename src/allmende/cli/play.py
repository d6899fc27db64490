"""A scene played for the eye: what happens and what is decided at each instant, and who holds which GPU after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from allmende.cli.board import tell, tell_reason
from allmende.engine.explain import explain, growth_reason
from allmende.engine.state import State
from allmende.model.event import PodEnded, PodGone
from allmende.model.reason import Reason
from allmende.scene.record import Record
from allmende.scene.stage import stage
from allmende.scene.value import Scene
from allmende.sim.world import Entry, Observer, World
from allmende.words.figure import clock

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FREE, _LEAVING, _MANY = "·", "-", "+"


def show(scene: Scene, console: Console, language: str, pause: Callable[[], None]) -> None:
    """Play a scene; `pause` is called after each instant at which something happened.

    Raises Mistake where the scene cannot be set up.
    """
    world = stage(scene, Record())
    teller = _Teller(scene, console, language, pause, len(world.log))
    teller.machine(world.state)
    world.observers.append(teller)
    world.run(scene.end + 1)


class _Teller(Observer):
    """Prints each instant."""

    def __init__(self, scene: Scene, console: Console, language: str, pause: Callable[[], None], setup: int) -> None:
        """`setup`: so many entries of the log set the scene up; they are not told."""
        self._console = console
        self._language = language
        self._pause = pause
        self._letters = {name: _LETTERS[i % len(_LETTERS)] for i, name in enumerate(scene.workloads)}
        self._told: dict[str, tuple[object, ...]] = {}
        self._shown = ""
        self._seen = setup

    def settled(self, world: World, entries: Sequence[Entry], until: int) -> None:
        """Print what happened in the instant that is over, and pause if it was anything."""
        lines = [text for entry in world.log[self._seen :] if (text := self._line(entry))]
        self._seen = len(world.log)
        lines += [tell_reason(name, reason, self._language) for name, reason in self._fresh(world)]
        for text in lines:
            self._print(f"  {clock(world.now)}", text)
        changed = self.machine(world.state)
        if lines or changed:
            self._pause()

    def _print(self, moment: str, text: str) -> None:
        """A line; on a terminal it is wrapped beside its moment."""
        if not self._console.is_terminal:
            self._console.print(Text(f"{moment}  {text}"), soft_wrap=True)
            return
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_column(no_wrap=True)
        row.add_column()
        row.add_row(Text(moment), Text(text))
        self._console.print(row)

    def _line(self, entry: Entry) -> str:
        """The entry in words; pods one by one are too much for the eye."""
        return "" if isinstance(entry, PodGone | PodEnded) else tell(entry, self._language)

    def _fresh(self, world: World) -> list[tuple[str, Reason]]:
        """Reasons of another kind than last time."""
        found = []
        for name, standing in world.state.standings.items():
            reason = explain(world.state, name, world.now) or growth_reason(world.state, name, world.now)
            key = () if reason is None else (reason.code, reason.waiting, standing.attempt)
            if reason is not None and self._told.get(name) != key:
                self._told[name] = key
                found.append((name, reason))
        return found

    def machine(self, state: State) -> bool:
        """Print who holds which GPU, a letter for each workload; whether it differs from the last time."""
        held: dict[tuple[str, int], str] = {}
        legend: dict[str, str] = {}
        for name, standing in state.standings.items():
            letter = self._letters.setdefault(name, _LETTERS[len(self._letters) % len(_LETTERS)])
            for pod in standing.pods:
                legend[letter] = name
                for part in pod.slices:
                    place = (pod.node, part.device)
                    held[place] = letter if held.get(place, letter) == letter else _MANY
        for leaving in state.leaving.values():
            for part in leaving.pod.slices:
                held[leaving.pod.node, part.device] = _LEAVING
        nodes = [
            f"{node.name} {''.join(held.get((node.name, device.index), _FREE) for device in node.devices)}"
            for node in state.nodes.values()
            if node.devices
        ]
        names = ", ".join(f"{letter} {name}" for letter, name in sorted(legend.items()))
        shown = "   ".join(nodes) + (f"   ({names})" if names else "")
        if shown == self._shown:
            return False
        self._shown = shown
        self._console.print(Text(f"            {shown}", style="cyan"), soft_wrap=True)
        return True
