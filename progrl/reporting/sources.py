"""Gathering what a report is made of from a run's folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from progrl.config import Config, resolved
from progrl.dialogue.trajectories import Trajectory, read_trajectories
from progrl.errors import DataError
from progrl.evaluation.metrics import Result
from progrl.files import file_digest, read_json, read_jsonl
from progrl.reporting import outside
from progrl.reporting.material import Material, StageTime
from progrl.tracking import provenance

GENERATE, SFT, GRPO = "metrics/generate.json", "metrics/sft.jsonl", "metrics/grpo.jsonl"
EVALUATE, KEPT = "metrics/evaluate.json", "evaluation"
RESULTS = f"{KEPT}/results.json"
SEEDS, ABLATIONS = "metrics/seeds.json", "metrics/ablations.json"
INPUTS = (GENERATE, SFT, GRPO, EVALUATE, KEPT)
"""What a report is made from, relative to the run's folder."""
FOUND = (SEEDS, ABLATIONS, outside.FOLDER)
"""What is read too where it is there: made apart from the main path, after hours of runs."""
SHOWN = ("sft", "grpo")
"""Agents whose dialogues are shown side by side."""


def gather(root: Path, project: Path, config: Config, times: Sequence[StageTime] = ()) -> Material:
    """Read the results in `root`.

    The report says nothing of git, times of day or `tracking`: it is a function of its inputs, but
    for the wall times of the stages that made them.

    Args:
        project: the project's folder.

    Raises:
        DataError: a file is missing, damaged or of another form.
    """
    evaluate = _evaluation(root / EVALUATE)
    origin = provenance(project, config)
    tree = resolved(config)
    tree.pop("tracking")
    return Material(
        evaluate=evaluate,
        generate=read_json(root / GENERATE),
        sft=_rows(root / SFT),
        grpo=_rows(root / GRPO),
        examples=_examples(root / KEPT, list(evaluate["benchmarks"])),
        config=tree,
        configuration=origin["configuration"],
        versions=origin["versions"],
        hashes={
            name: file_digest(root / name)
            for name in (*INPUTS, *FOUND)
            if name in INPUTS or (root / name).exists()
        },
        times=times,
        results=_results(root / RESULTS),
        seeds=_evaluation(root / SEEDS) if (root / SEEDS).exists() else None,
        ablations=_ablations(root / ABLATIONS) if (root / ABLATIONS).exists() else None,
        outside=outside.kept(root / outside.FOLDER),
        trained=outside.trained(root / outside.TRAINED),
    )


def stage_times(root: Path, stages: Sequence[str]) -> list[StageTime]:
    """The wall times of the runs that made the outputs which now stand in `root`.

    A run left its times in `runs/<stage>/`, where it ran on this machine; a stage whose outputs
    come from elsewhere (a cache, another machine) has none.
    """
    times = []
    for stage in stages:
        for done in sorted((root / "runs" / stage).glob("*/done.json"), reverse=True):
            record = read_json(done)
            if _stands(root, record["outputs"]):
                times.append(_time(stage, record["seconds"], done.with_name("timings.json")))
                break
    return times


def _stands(root: Path, outputs: Mapping[str, str]) -> bool:
    return all(
        (root / name).exists() and file_digest(root / name) == digest
        for name, digest in outputs.items()
    )


def _time(stage: str, seconds: float, timings: Path) -> StageTime:
    components = dict(read_json(timings)) if timings.exists() else {}
    # Attempts before an interruption count too: their sum is the timings' total.
    seconds = max(seconds, components.pop("total", 0.0))
    ranked = sorted(components.items(), key=lambda item: -item[1])
    return StageTime(stage, seconds, dict(ranked))


def _rows(path: Path) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for number, row in read_jsonl(path):
        if not isinstance(row, dict) or "step" not in row:
            raise DataError(f"{path}, line {number}: not a row of a step. Run the stage again.")
        rows.append(row)
    return rows


def _evaluation(path: Path) -> Mapping[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict) or not isinstance(value.get("benchmarks"), dict):
        raise DataError(f"{path}: not the result of an evaluation. Run `progrl evaluate` again.")
    return value


def _results(path: Path) -> dict[str, dict[str, list[Result]]]:
    tree = read_json(path)
    try:
        return {
            benchmark: {agent: [Result.from_json(r) for r in rows] for agent, rows in by.items()}
            for benchmark, by in tree.items()
        }
    except (AttributeError, TypeError, DataError):
        raise DataError(
            f"{path}: not the results of an evaluation. Run `progrl evaluate` again."
        ) from None


def _ablations(path: Path) -> Mapping[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict) or not isinstance(value.get("variants"), dict):
        raise DataError(f"{path}: not the table of a sweep. Run `progrl ablations` again.")
    return value


def _examples(folder: Path, benchmarks: Sequence[str]) -> dict[str, dict[str, list[Trajectory]]]:
    return {
        name: {agent: read_trajectories(folder / f"{name}_{agent}.jsonl") for agent in SHOWN}
        for name in benchmarks
    }
