"""A sweep as it lies on disk: what its variants are, and what its cells came to."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from progrl.errors import DataError
from progrl.evaluation.dynamics import Probe, Rows, read_probe
from progrl.evaluation.metrics import Result
from progrl.files import file_digest, read_json, read_jsonl

SETTINGS, NOTE = "sweep.json", "cell.json"
PLAYED = "played"
"""Folder beside the outputs that a seed's cells share: episodes of the agents before training."""
AGENT = "grpo"
"""The agent of a cell that its variant has trained."""


@dataclass(frozen=True)
class Cell:
    """One variant with one seed.

    Attributes:
        seed: of both.
        results: by benchmark and agent, an episode each.
        summary: its metrics/evaluate.json.
        rows: its metrics/grpo.jsonl.
        digest: SHA-256 of its evaluation/results.json.
    """

    seed: int
    results: Mapping[str, Mapping[str, Sequence[Result]]]
    summary: Mapping[str, Any]
    rows: Rows
    digest: str

    @property
    def probe(self) -> Probe:
        """Success on the validation tasks during training."""
        return read_probe(self.rows)

    def spent(self, key: str) -> int:
        """The sum of a figure over the steps."""
        return sum(row.get(key) or 0 for row in self.rows)

    def figure(self, benchmark: str, metric: str, agent: str = AGENT) -> float | None:
        """The mean of a metric of the evaluation; None where it is undefined or not there."""
        found = self.summary["benchmarks"][benchmark]["agents"][agent].get(metric)
        mean = found.get("mean") if isinstance(found, Mapping) else found
        return None if mean is None else float(mean)

    def mean(self, benchmarks: Sequence[str], metric: str, agent: str = AGENT) -> float | None:
        """The mean of a figure over benchmarks, each of the same weight; None where it is
        undefined in all."""
        return mean_over(self.figure(name, metric, agent) for name in benchmarks)


def mean_over(values: Iterable[float | None]) -> float | None:
    """The mean of what is defined; None where nothing is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


@dataclass(frozen=True)
class SweepResults:
    """All that a sweep came to so far.

    Attributes:
        settings: its sweep.json.
        cells: by variant, those done, in the order of seeds; `full` first.
        failed: why, by variant and seed.
    """

    settings: Mapping[str, Any]
    cells: Mapping[str, Sequence[Cell]]
    failed: Mapping[str, Mapping[int, str]]

    @property
    def base(self) -> Mapping[str, Any]:
        """The configuration that all variants differ from, as plain values."""
        found: Mapping[str, Any] = self.settings["base"]
        return found


def read_sweep(root: Path) -> SweepResults:
    """The sweep in a folder; cells that have not ended are left out.

    Raises:
        DataError: the folder holds no sweep, or a finished cell lacks its results.
    """
    path = root / SETTINGS
    if not path.exists():
        raise DataError(f"{root}: no sweep ({SETTINGS} is missing). Run `python -m flows.ablate`.")
    settings = read_json(path)
    cells: dict[str, list[Cell]] = {}
    failed: dict[str, dict[int, str]] = {}
    for name in settings["variants"]:
        for seed in settings["seeds"]:
            folder = root / f"seed-{seed}" / name
            note = read_json(folder / NOTE) if (folder / NOTE).exists() else {}
            if note.get("state") == "done":
                cells.setdefault(name, []).append(_read_cell(folder, seed))
            elif note:
                failed.setdefault(name, {})[seed] = note["message"]
    return SweepResults(settings, cells, failed)


def _read_cell(folder: Path, seed: int) -> Cell:
    path = folder / "evaluation" / "results.json"
    results = {
        benchmark: {agent: [Result.from_json(row) for row in rows] for agent, rows in by.items()}
        for benchmark, by in read_json(path).items()
    }
    rows = [row for _, row in read_jsonl(folder / "metrics" / "grpo.jsonl")]
    summary = read_json(folder / "metrics" / "evaluate.json")
    return Cell(seed, results, summary, rows, file_digest(path))
