"""What `progrl evaluate --benchmark NAME --keep` has left: figures of benchmarks of others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from progrl.errors import DataError
from progrl.files import read_json
from progrl.reporting.material import Material
from progrl.reporting.tables import Row, agent_name, interval, number

FOLDER = "metrics/benchmarks"
"""A file for each benchmark and agent, relative to a run's folder."""
TRAINED = f"{FOLDER}/training"
"""Evaluations of runs that trained in such a benchmark, `metrics/evaluate.json` of each under its
name."""
IN_PAPER = ("webarena", "tau_bench_retail", "tau_bench_airline", "bfcl_v3_multi_turn", "babyai")
"""Those that the paper's table 1 has too."""
STUDIED = "grpo"
"""The folder of the model of the full method."""
_FIGURES = ("n", "success", "low", "high", "do_nothing", "faults")


def kept(folder: Path) -> list[Mapping[str, Any]]:
    """The figures in `folder`, by benchmark and agent; none where it is not there.

    Raises:
        DataError: a file has another form.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        value = read_json(path)
        named = isinstance(value, dict) and {"benchmark", "agent", "licence"} <= value.keys()
        if not named or not all(isinstance(value.get(key), int | float) for key in _FIGURES):
            raise DataError(f"{path}: no figures of a benchmark. Measure again, with --keep.")
        found.append(value)
    return sorted(found, key=lambda row: (row["benchmark"], row["agent"]))


def outside_table(material: Material) -> list[Row]:
    """Rows with the same keys, one for each benchmark and agent."""
    return [
        {
            "benchmark": row["benchmark"],
            "agent": row["agent"],
            "episodes": str(row["n"]),
            "success": _success(row),
            "agent that does nothing": number(row["do_nothing"]),
            "faults": str(row["faults"]),
            "licence": row["licence"],
        }
        for row in material.outside
    ]


def trained(folder: Path) -> list[Mapping[str, Any]]:
    """The evaluations in `folder`, by name of the file; none where it is not there.

    Raises:
        DataError: a file has another form.
    """
    found: list[Mapping[str, Any]] = []
    for path in sorted(folder.glob("*.json")):
        value = read_json(path)
        try:
            first = next(iter(value["benchmarks"].items()))
            found.append({"benchmark": first[0], "label": value["label"], **first[1]})
            _trained_row(found[-1])
        except (TypeError, KeyError, AttributeError, StopIteration):
            raise DataError(f"{path}: no evaluation of a run. Evaluate again.") from None
    return found


def trained_table(material: Material) -> list[Row]:
    """Rows with the same keys, one for each benchmark that was trained in."""
    return [_trained_row(row) for row in material.trained]


def _trained_row(row: Mapping[str, Any]) -> Row:
    agents, difference = row["agents"], row["grpo_minus_sft"]
    return {
        "benchmark": row["benchmark"],
        "tasks": str(difference["tasks"]),
        **{
            agent_name(name): interval(agents[name]["success"])
            for name in ("do_nothing", "untrained", "sft", "grpo")
        },
        "GRPO minus SFT": interval(difference, signed=True),
        "intervals": row["label"],
    }


def of_paper(material: Material) -> dict[str, tuple[str, str]]:
    """Of the benchmarks in the paper's table 1 that were measured: the success of the full method,
    and of an agent that does nothing."""
    rows = {r["benchmark"]: r for r in material.outside if Path(r["agent"]).name == STUDIED}
    return {
        f"ours: {name}, n={rows[name]['n']}": (
            _success(rows[name]),
            number(rows[name]["do_nothing"]),
        )
        for name in IN_PAPER
        if name in rows
    }


def _success(row: Mapping[str, Any]) -> str:
    return interval({"mean": row["success"], "low": row["low"], "high": row["high"]})
