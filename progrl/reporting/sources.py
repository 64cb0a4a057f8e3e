"""Gathering what a report is made of from a run's folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from progrl.config import Config, resolved
from progrl.dialogue.trajectories import Trajectory, read_trajectories
from progrl.errors import DataError
from progrl.files import file_digest, read_json, read_jsonl
from progrl.reporting.page import Material, StageTime
from progrl.tracking import provenance

SHOWN = ("sft", "grpo")
"""Agents whose dialogues are shown side by side."""


def gather(
    root: Path,
    project: Path,
    config: Config,
    inputs: Sequence[str],
    times: Sequence[StageTime] = (),
) -> Material:
    """Read the results in `root`.

    The report says nothing of git, times of day or `tracking`: it is a function of its inputs, but
    for the wall times of the stages that made them.

    Args:
        project: the project's folder.
        inputs: files and folders that the report is made from, whose hashes it shows.

    Raises:
        DataError: a file is missing, damaged or of another form.
    """
    evaluate = _evaluation(root / "metrics" / "evaluate.json")
    origin = provenance(project, config)
    tree = resolved(config)
    tree.pop("tracking")
    return Material(
        evaluate=evaluate,
        generate=read_json(root / "metrics" / "generate.json"),
        sft=_rows(root / "metrics" / "sft.jsonl"),
        grpo=_rows(root / "metrics" / "grpo.jsonl"),
        examples=_examples(root / "evaluation", list(evaluate["benchmarks"])),
        config=tree,
        configuration=origin["configuration"],
        versions=origin["versions"],
        hashes={name: file_digest(root / name) for name in inputs},
        times=times,
    )


def stage_time(stage: str, work: Path) -> StageTime | None:
    """The wall time that a stage left in its work folder; None where it left none."""
    done, timings = work / "done.json", work / "timings.json"
    if not done.exists():
        return None
    components = dict(read_json(timings)) if timings.exists() else {}
    # Attempts before an interruption count too: their sum is the timings' total.
    seconds = max(float(read_json(done)["seconds"]), float(components.pop("total", 0.0)))
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


def _examples(folder: Path, benchmarks: Sequence[str]) -> dict[str, dict[str, list[Trajectory]]]:
    return {
        name: {agent: read_trajectories(folder / f"{name}_{agent}.jsonl") for agent in SHOWN}
        for name in benchmarks
    }
