"""`progrl estimate`: what a run will take, before it starts."""

from typing import Annotated, Any

import typer
from rich.table import Table

from progrl.cli.command import Result, Shared, command
from progrl.cli.stages import PANEL, stay_local


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(
        app,
        "estimate",
        "estimate",
        "estimate --profile qwen3-4b --no-trial --json",
        panel=PANEL,
    )(estimate)


def estimate(
    shared: Shared,
    trial: Annotated[
        bool, typer.Option(help="Compute for some seconds, to tell the time too.")
    ] = True,
) -> Result:
    """Say how much memory and time a run will take on this machine."""
    config = shared.config()
    stay_local(config)
    from progrl.stages.estimate import estimate as estimated

    told = estimated(config, shared.project, trial)
    return Result(told, _table(told))


def _table(told: dict[str, Any]) -> Table:
    table = Table("what", "", box=None, pad_edge=False)
    if told["model"]:
        table.add_row("weights", f"{told['model']['weights']:,}")
        table.add_row("  of which trained", f"{told['model']['trained']:,}")
    table.add_row("threads", f"{told['threads']}")
    for name, value in (told["memory"] or {}).items():
        shown = str(value) if name == "processes" else f"{value / 2**30:,.2f} GiB"
        table.add_row(f"memory: {name.replace('_', ' ')}", shown)
    for name, value in told["tokens"].items():
        table.add_row(f"tokens: {name.replace('_', ' ')}", f"{value:,.0f}")
    for name, value in (told["rates"] or {}).items():
        table.add_row(
            f"tokens: {name}" + ("" if name == "dialogue" else " a second"), f"{value:,.0f}"
        )
    for name, value in (told["seconds"] or {}).items():
        table.add_row(f"time: {name}", f"{value / 60:,.1f} min")
    for name, reason in told["unknown"].items():
        table.add_row(f"{name}: not known", reason)
    return table
