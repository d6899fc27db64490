"""The demo's parts that need no 20 seconds of real jobs: its file, its scenes, and the commands that play them."""

import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from allmende.cli import demo
from allmende.cli.jobs_file import read_jobs
from allmende.cli.main import cli
from allmende.cli.play import show
from allmende.model.mistake import Mistake
from allmende.scene.read import read

EXAMPLES = Path(__file__).parents[2] / "examples"
SCENES = sorted((EXAMPLES / "scenes").glob("*.yaml"))


def test_the_jobs_are_the_ones_that_are_checked() -> None:
    jobs = {workload.id: workload for _, workload in read_jobs(str(EXAMPLES / "demo.yaml")).jobs}
    assert len(jobs) == demo.JOBS
    assert {name: jobs[name].gang_min for name in demo.GANGS} == demo.GANGS
    assert {demo.VICTIM, demo.CLAIMANT, demo.IMPOSSIBLE} <= set(jobs)
    assert len(SCENES) == demo.SCENES


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_a_scene_is_played_instant_by_instant(path: Path, language: str) -> None:
    out = io.StringIO()
    pauses: list[int] = []
    show(read(str(path)), Console(file=out, width=200), language, lambda: pauses.append(1))
    assert len(pauses) >= 3
    assert "?" not in out.getvalue()
    assert "   (A " in out.getvalue()  # the legend beside the machine


def test_scenes_and_traces_are_reached_from_the_command_line(tmp_path: Path) -> None:
    played = CliRunner().invoke(cli, ["sim", "run", str(SCENES[0])])
    assert played.exit_code == 0, played.output
    replayed = CliRunner().invoke(cli, ["sim", "replay", "openb", str(tmp_path / "nothing")])
    assert replayed.exit_code == 2
    assert "nothing' is no folder" in replayed.stderr
    assert CliRunner().invoke(cli, ["version"]).output.startswith("allmende ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sim", "replay", "openb", ".", "--speed", "3"], "--speed is for philly"),
        (["sim", "replay", "philly", ".", "--list", "default"], "--list is for openb"),
        (["sim", "replay", "philly", ".", "--speed", "nan"], "'nan' is no speed"),
        (["sim", "replay", "philly", ".", "--speed", "1e-300"], "write a number from 0.001 to 1000000"),
        (["sim", "replay", "philly", ".", "--gpus", "12"], "a multiple of 8"),
        (["sim", "replay", "philly", ".", "--gpus", "800000000000"], "write at most 131072"),
        (["sim", "run", "."], ".: this file is a folder; name a file in it"),
        (["sim", "run", "none.yaml"], "none.yaml: this file cannot be opened: No such file"),
        (["sim", "run", str(EXAMPLES / "jobs.yaml")], "allmende run "),
        (["run", str(SCENES[0]), "--virtual-gpus", "2xT4"], "allmende sim run "),
        (["run", "."], "--virtual-gpus"),
    ],
)
def test_a_mistake_ends_with_2_and_is_told_in_full(words: list[str], says: str) -> None:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 2
    assert says in done.output
    assert not isinstance(done.exception, Mistake)


@pytest.mark.parametrize("command", [["run"], ["sim"], ["sim", "run"], ["sim", "replay"], ["demo"], ["version"]])
def test_every_command_explains_itself(command: list[str]) -> None:
    shown = CliRunner().invoke(cli, [*command, "--help"])
    assert shown.exit_code == 0
    assert "Usage: cli" in shown.output


def test_a_layout_of_cases_is_no_case(tmp_path: Path) -> None:
    (tmp_path / "layout.yaml").write_text("id: '000'\nkind: layout\n")
    done = CliRunner().invoke(cli, ["sim", "run", str(tmp_path / "layout.yaml")])
    assert done.exit_code == 2
    assert "describes a layout and is no case" in done.output
