"""What a pipeline came to: the table, and where everything is."""

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from progrl.cli.output import grid
from progrl.files import read_json
from progrl.reporting import results_table
from progrl.tracking import page, tracking_uri
from tasks.job import Job
from tasks.stage import registration


def summarise(job: Job, run: str | None, experiment: str) -> dict[str, Any]:
    """Results and places, as plain values.

    Args:
        run, experiment: ids of the pipeline's tracking run and its experiment.
    """
    noted = registration(job) or {}
    return {
        "rows": results_table(read_json(job.root / "metrics" / "evaluate.json")),
        "report": str(job.root / "reports" / "index.html"),
        "tracking": page(job.project, experiment, run) if run else None,
        "store": tracking_uri(job.project) if run else None,
        "model": noted.get("model"),
        "version": noted.get("version"),
        "gate": noted.get("reason"),
    }


def show(summary: Mapping[str, Any], console: Console) -> None:
    """Print the table and the places."""
    table = grid(summary["rows"], "benchmark")
    for column in table.columns:
        column.no_wrap = True
    console.print(table)
    console.print()
    for name, text in places(summary).items():
        console.print(f"{name + ':':<9}{text}", soft_wrap=True, highlight=False, markup=False)


def wide() -> Console:
    """Standard output; wide enough where it is no terminal."""
    return Console(width=None if sys.stdout.isatty() else 120)


def places(summary: Mapping[str, Any]) -> dict[str, str]:
    """Where report, tracking page and model are, in words."""
    found = {"Report": str(summary["report"])}
    if summary["tracking"]:
        found["MLflow"] = f"{summary['tracking']} (start its server by `make serve`)"
    if summary["version"]:
        found["Model"] = f"models:/{summary['model']}/{summary['version']}"
    if summary["gate"]:
        found["Gate"] = str(summary["gate"])
    return found
