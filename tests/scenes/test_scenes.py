"""Every scene of this folder and of examples/scenes is played and must hold; a scene is a test by being a file."""

from pathlib import Path

import pytest

from allmende.scene.judge import judge
from allmende.scene.run import Status

HERE = Path(__file__).resolve().parent
SCENES = sorted([*HERE.glob("*.yaml"), *(HERE.parents[1] / "examples" / "scenes").glob("*.yaml")])


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.stem)
def test_scene(path: Path) -> None:
    verdict = judge(str(path)).verdict
    assert verdict.status is Status.PASSED, "\n".join(verdict.why)
