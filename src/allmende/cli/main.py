"""The command line. Only what `--help` needs is imported here; each command imports its work when it runs."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

import rich_click as click

from allmende import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

LANGUAGES = ("en", "ko")  # those of allmende.words, which would be slow to import here; a test compares them

click.rich_click.MAX_WIDTH = 100

INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it
MISTAKEN = 2  # exit code for bad input and for places that cannot be written


def _named(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse a place without a name, such as a shell leaves of a variable that is not set."""
    if value is not None and not value.strip():
        raise click.BadParameter("it is empty; write a name, or leave the option out")
    return value


def _exit(context: click.Context, work: Callable[[], int]) -> NoReturn:
    """Do a command's work and exit with its code; Ctrl-C and an output that cannot be written are told in one line."""
    try:
        code = work()
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        code = INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        where = error.filename or "the output"
        click.echo(f"{where}: {error.strerror or error}; choose another place", err=True)
        code = MISTAKEN
    context.exit(code)


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
@click.argument("jobs", metavar="JOBS.yaml")
@click.option("--virtual-gpus", "gpus", required=True, metavar="NxMODEL", help="The machine: 8xH100, 4xA100-40GB+2xT4.")
@click.option(
    "--log", metavar="FILE", callback=_named, help="Write every event and decision to this file, a JSON line each."
)
@click.option(
    "--output",
    metavar="FOLDER",
    callback=_named,
    help="Folder for the output of the jobs (default: a new temporary one).",
)
@click.option("--plain", is_flag=True, help="Lines instead of a live table, also on a terminal.")
@_language()
@click.pass_context
def run(
    context: click.Context, jobs: str, gpus: str, log: str | None, output: str | None, plain: bool, language: str
) -> None:
    """Run the jobs of a file as real processes on declared GPUs.

    Ends when nothing is left that could run: 0 if all of that ended well, 1 if not, 2 for a mistake in the input,
    130 when interrupted; Ctrl-C ends all the processes first. A file to start from:

    \b
    jobs:
      - {name: hello, gpus: 1, command: echo hello}

    docs/running.md tells the rest.
    """

    def work() -> int:
        from pathlib import Path

        from allmende.cli.run import Options
        from allmende.cli.run import run as run_jobs

        options = Options(Path(log) if log else None, Path(output) if output else None, plain, language)
        return run_jobs(jobs, gpus, options, sys.stdout)

    _exit(context, work)


@cli.group()
def sim() -> None:
    """The same engine in a simulated world: scenes and recorded traces."""


@sim.command("run")
@click.argument("scenes", nargs=-1, required=True, metavar="SCENE.yaml...")
@click.pass_context
def sim_run(context: click.Context, scenes: tuple[str, ...]) -> None:
    """Play scenes and check what they say must hold.

    A scene is a YAML file: a cluster, its projects, events in order, and what must hold; docs/scenes.md is its
    reference. Ends with 0 if everything holds, 1 if something does not or could not be judged, 2 for a mistake in a
    file.
    """

    def work() -> int:
        from allmende.cli.sim import run_scenes

        return run_scenes(list(scenes), sys.stdout)

    _exit(context, work)


@sim.command("replay")
@click.argument("kind", type=click.Choice(["openb", "philly"]))
@click.argument("folder")
@click.option("--list", "list_name", default="default", show_default=True, help="openb: the pod list.")
@click.option("--speed", type=float, default=1.0, show_default=True, help="philly: jobs arrive so many times faster.")
@click.option("--gpus", type=int, default=1024, show_default=True, help="philly: GPUs of the cluster, in eights.")
@click.pass_context
def sim_replay(context: click.Context, kind: str, folder: str, list_name: str, speed: float, gpus: int) -> None:
    """Replay a public trace on the virtual clock.

    FOLDER holds its files as upstream has them, plain or gzipped; Allmende ships none, docs/replay.md says where they
    are. Ends with 0, 1 where the books do not balance, 2 for a mistake in the input.
    """

    for name, option, owner in (
        ("list_name", "--list", "openb"),
        ("speed", "--speed", "philly"),
        ("gpus", "--gpus", "philly"),
    ):
        source = context.get_parameter_source(name)
        given = source is not None and source.name != "DEFAULT"
        if given and kind != owner:
            raise click.UsageError(f"{option} is for {owner}; leave it out for {kind}")

    def work() -> int:
        from allmende.cli.replay import replay

        return replay(kind, folder, list_name=list_name, speed=speed, gpus=gpus, out=sys.stdout)

    _exit(context, work)


@cli.command()
@click.option("--check", is_flag=True, help="Do not pace for the eye; check how every part ends.")
@_language()
@click.pass_context
def demo(context: click.Context, check: bool, language: str) -> None:
    """Twelve real jobs on virtual GPUs, then three simulated scenes."""

    def work() -> int:
        from allmende.cli.demo import demo as show

        return show(check=check, language=language, out=sys.stdout)

    _exit(context, work)


@cli.command()
def version() -> None:
    """Print the version."""
    click.echo(f"allmende {__version__}")


def main() -> None:
    """The program. A reader that went away ends it quietly; a terminal that lacks a letter shows '?' in its place."""
    if sys.stdout is None:  # the shell closed it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it lives as long as the program
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        cli(prog_name="allmende")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the flush at exit complains
        sys.exit(141)
    except OSError as error:
        print(f"the output: {error.strerror or error}; choose another place", file=sys.stderr)
        sys.exit(MISTAKEN)


if __name__ == "__main__":
    main()
