"""The command line. Only what `--help` needs is imported here; each command imports its work when it runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import rich_click as click

from allmende import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

LANGUAGES = ("en", "ko")  # those of allmende.words, which would be slow to import here; a test compares them

click.rich_click.MAX_WIDTH = 100

_FILE = click.Path(dir_okay=False)
_FOLDER = click.Path(file_okay=False)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="allmende", message="%(prog)s %(version)s")
def cli() -> None:
    """Who runs next, where, until when, at whose expense: a GPU cluster orchestrator that explains itself."""


def _language() -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--language",
        type=click.Choice(LANGUAGES),
        default="en",
        envvar="ALLMENDE_LANGUAGE",
        show_default=True,
        help="Language of reasons and of what happens.",
    )


@cli.command()
@click.argument("jobs", type=_FILE)
@click.option("--virtual-gpus", "gpus", required=True, metavar="NxMODEL", help="The machine: 8xH100, 4xA100-40GB+2xT4.")
@click.option("--log", type=_FILE, help="Write every event and decision to this file, a JSON line each.")
@click.option("--output", type=_FOLDER, help="Folder for the output of the jobs (default: a new temporary one).")
@click.option("--plain", is_flag=True, help="Lines instead of a live table, also on a terminal.")
@_language()
@click.pass_context
def run(
    context: click.Context, jobs: str, gpus: str, log: str | None, output: str | None, plain: bool, language: str
) -> None:
    """Run the jobs of a file as real processes on declared GPUs.

    Ends when nothing is left that could run: 0 if all of that ended well, 1 if not, 2 for a mistake in the input.
    """
    from pathlib import Path

    from allmende.cli.run import Options
    from allmende.cli.run import run as run_jobs

    options = Options(Path(log) if log else None, Path(output) if output else None, plain, language)
    context.exit(run_jobs(jobs, gpus, options, sys.stdout))


@cli.group()
def sim() -> None:
    """The same engine in a simulated world: scenes and recorded traces."""


@sim.command("run")
@click.argument("scenes", nargs=-1, required=True, type=_FILE, metavar="SCENE...")
@click.pass_context
def sim_run(context: click.Context, scenes: tuple[str, ...]) -> None:
    """Play scenes and check what they say must hold."""
    from allmende.cli.sim import run_scenes

    context.exit(run_scenes(list(scenes), sys.stdout))


@sim.command("replay")
@click.argument("kind", type=click.Choice(["openb", "philly"]))
@click.argument("folder", type=_FOLDER)
@click.option("--list", "list_name", default="default", show_default=True, help="openb: the pod list.")
@click.option("--speed", type=float, default=1.0, show_default=True, help="philly: jobs arrive so many times faster.")
@click.option("--gpus", type=int, default=1024, show_default=True, help="philly: GPUs of the cluster.")
@click.pass_context
def sim_replay(context: click.Context, kind: str, folder: str, list_name: str, speed: float, gpus: int) -> None:
    """Replay a public trace on the virtual clock."""
    from allmende.cli.replay import replay

    context.exit(replay(kind, folder, list_name=list_name, speed=speed, gpus=gpus, out=sys.stdout))


@cli.command()
@click.option("--check", is_flag=True, help="Do not pace for the eye; check how every part ends.")
@_language()
@click.pass_context
def demo(context: click.Context, check: bool, language: str) -> None:
    """Twelve real jobs on virtual GPUs, then three simulated scenes."""
    from allmende.cli.demo import demo as show

    context.exit(show(check=check, language=language, out=sys.stdout))


@cli.command()
def version() -> None:
    """Print the version."""
    click.echo(f"allmende {__version__}")


def main() -> None:
    """The program. A reader that went away and Ctrl-C end it quietly."""
    try:
        cli(prog_name="allmende")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the flush at exit complains
        sys.exit(141)


if __name__ == "__main__":
    main()
