"""The program: all commands under one name."""

import asyncio
import atexit
import gc
import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from progrl import __version__
from progrl.cli import (
    ablations,
    benchmarks,
    config,
    doctor,
    environments,
    episodes,
    estimate,
    imports,
    models,
    plan,
    play,
    seeds,
    serve,
    stages,
    transfer,
    view,
)
from progrl.cli.command import shown_examples

app = typer.Typer(
    name="",
    help="Train language-model agents that work with a user over many turns while using tools.",
    epilog=shown_examples("config check", "run --output outputs/first"),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
for group in (
    stages,
    estimate,
    ablations,
    seeds,
    transfer,
    episodes,
    play,
    serve,
    plan,
    view,
    environments,
    imports,
    benchmarks,
    config,
    models,
    doctor,
):
    group.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"progrl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    pass


GRACE = 5.0
"""Seconds after SIGTERM within which an event loop must come to hear of it."""


def _cancel(loop: asyncio.AbstractEventLoop) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    for task in asyncio.all_tasks(loop):
        task.cancel()


def main() -> None:
    """Entry point of `progrl`: 0 fine, 1 a fault of ours or found, 2 to be mended by the user.

    SIGTERM ends it by unwinding, so that tracking runs are closed and temporary files removed: 143.
    In an event loop all tasks are cancelled, as asyncio does at Ctrl-C, since an exception in the
    midst of one would be kept there and told as lost. A loop that is blocked, or ends just then, is
    waited for no longer than `GRACE`, or until a second signal.
    """
    # At its end Python looks for cycles, with torch for a second; among frozen objects it does not.
    atexit.register(gc.freeze)
    asked: list[int] = []

    def terminate(number: int, frame: FrameType | None) -> None:
        asked.append(128 + number)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if loop is None or len(asked) > 1:
            raise SystemExit(asked[0])
        signal.setitimer(signal.ITIMER_REAL, GRACE)
        loop.call_soon_threadsafe(_cancel, loop)

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGALRM, terminate)  # the grace is over
    try:
        app(prog_name="progrl")
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(130)
    except (SystemExit, asyncio.CancelledError):
        if not asked:
            raise
        sys.stderr.write("Terminated.\n")
        sys.exit(asked[0])
