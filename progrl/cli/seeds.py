"""`progrl seeds`: the evaluations of several seeds as one table."""

from pathlib import Path
from typing import Annotated

import typer

from progrl.cli.command import Result, Shared, command
from progrl.cli.output import grid


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(
        app,
        "seeds",
        "seeds outputs/seed-1 outputs/seed-2 outputs/seed-3 --output metrics/seeds.json",
        panel="Pipeline",
        configured=False,
    )(seeds)


def seeds(
    shared: Shared,
    folders: Annotated[list[Path], typer.Argument(help="Roots of evaluated runs, a seed each.")],
    output: Annotated[Path, typer.Option(help="Where the merged figures go.")] = Path(
        "metrics/seeds.json"
    ),
) -> Result:
    """Merge the evaluations of several seeds: means over seeds with t intervals."""
    from progrl.evaluation.seeds import merge_files
    from progrl.reporting import results_table

    merged = merge_files([folder / "metrics" / "evaluate.json" for folder in folders], output)
    return Result(merged, grid(results_table(merged), "benchmark"))
