"""`progrl ablations`: a sweep's cells as one table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from progrl.cli.command import Result, Shared, command
from progrl.cli.output import grid
from progrl.files import write_json


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(
        app,
        "ablations",
        "ablations --root outputs/sweeps/ablations --output metrics/ablations.json",
        panel="Pipeline",
        configured=False,
    )(ablations)


def ablations(
    shared: Shared,
    root: Annotated[Path, typer.Option(help="Folder of a sweep, as flows.ablate has left it.")],
    output: Annotated[Path, typer.Option(help="Where the table goes.")] = Path(
        "metrics/ablations.json"
    ),
    confidence: Annotated[
        float, typer.Option(help="Of intervals and verdicts.", min=0.5, max=0.999)
    ] = 0.95,
) -> Result:
    """Sum up a sweep: each variant against `full`, with intervals over seeds and verdicts."""
    from progrl.evaluation.ablations import ablations as table
    from progrl.evaluation.sweep import read_sweep
    from progrl.tracking.provenance import machine

    found = {**table(read_sweep(root), confidence), "machine": machine()}
    write_json(output, found)
    rows = [_row(name, variant) for name, variant in found["variants"].items()]
    return Result(found, grid(rows, ""))


def _row(name: str, variant: Mapping[str, Any]) -> dict[str, str]:
    reason = variant.get("not_applicable")
    return {
        "": name,
        "seeds": "" if reason else str(len(variant["seeds"])),
        "success": f"not applicable: {reason}" if reason else _shown(variant["success"]),
        "− full": _shown(variant.get("minus_full"), sign=True),
        "verdict": variant.get("verdict", ""),
    }


def _shown(figure: Mapping[str, Any] | None, sign: bool = False) -> str:
    if figure is None or figure["mean"] is None:
        return ""
    form = "+.3f" if sign else ".3f"
    text = format(figure["mean"], form)
    if figure["low"] is None:
        return text
    return f"{text} [{figure['low']:{form}}, {figure['high']:{form}}]"
