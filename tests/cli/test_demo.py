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
    assert CliRunner().invoke(cli, ["version"]).output.startswith("allmende ")
