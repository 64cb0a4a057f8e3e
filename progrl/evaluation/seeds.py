"""From the evaluations of several seeds to one: means over seeds, with Student's t intervals."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from progrl.errors import DataError
from progrl.evaluation.statistics import t_interval
from progrl.files import read_json, write_json

LABEL = "mean over seeds; t interval over seeds"
_SAME = ("confidence", "horizon", "trials")


def merge_seeds(evaluations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One tree of the shape of metrics/evaluate.json over several of them.

    Each figure is the mean over seeds of the seeds' own means, each difference the mean over seeds
    of the task-paired mean of a seed; intervals are t intervals over seeds. A seed in which a
    figure is undefined is not among the figure's `seeds`; with fewer than two there is no interval.

    Raises:
        DataError: fewer than two evaluations, a seed twice, or evaluations made by another
            protocol or over other benchmarks and agents.
    """
    if len(evaluations) < 2:
        raise DataError("Merging needs the evaluations of at least two seeds.")
    seeds = [evaluation["seed"] for evaluation in evaluations]
    if len(set(seeds)) < len(seeds):
        raise DataError(f"The same seed was given twice: {', '.join(map(str, sorted(seeds)))}.")
    first = evaluations[0]
    for evaluation in evaluations[1:]:
        for key in _SAME:
            if evaluation[key] != first[key]:
                raise DataError(
                    f"Seeds {first['seed']} and {evaluation['seed']} were evaluated differently: "
                    f"{key} is {first[key]} and {evaluation[key]}. Evaluate them alike."
                )
    _check_same_agents(evaluations)
    benchmarks = merge([e["benchmarks"] for e in evaluations], float(first["confidence"]))
    return {
        "label": LABEL,
        "seeds": sorted(seeds),
        **{key: first[key] for key in _SAME},
        "benchmarks": benchmarks,
    }


def _check_same_agents(evaluations: Sequence[Mapping[str, Any]]) -> None:
    first, *others = (
        {name: sorted(part["agents"]) for name, part in sorted(evaluation["benchmarks"].items())}
        for evaluation in evaluations
    )
    for other in others:
        if other != first:
            raise DataError(
                f"The evaluations have other benchmarks or agents: {first} and {other}. "
                "Evaluate all seeds with the same configuration."
            )


def merge(trees: Sequence[Any], confidence: float) -> Any:
    """Merge trees that differ in their numbers, and in what a seed's tasks happened to lack.

    Figures become means over seeds with t intervals, counts are added. None of none.
    """
    present = [tree for tree in trees if tree is not None]
    if not present:
        return None
    if isinstance(present[0], Mapping):
        if "mean" in present[0]:
            return _figure(present, confidence)
        names = dict.fromkeys(name for tree in present for name in tree)
        return {name: merge([tree.get(name) for tree in present], confidence) for name in names}
    if isinstance(present[0], str):
        return present[0]
    return sum(present) if isinstance(present[0], int) else fmean(present)


def _figure(figures: Sequence[Mapping[str, Any]], confidence: float) -> dict[str, Any]:
    *bounds, (name, seeds) = over_seeds([figure["mean"] for figure in figures], confidence).items()
    counts = {
        key: sum(figure[key] for figure in figures)
        for key in ("episodes", "tasks")
        if key in figures[0]
    }
    return {**dict(bounds), **counts, name: seeds}


def over_seeds(values: Sequence[float | None], confidence: float) -> dict[str, Any]:
    """The mean over seeds with its t interval, undefined seeds left out.

    Undefined with no seed; with one there is no interval.
    """
    means = [value for value in values if value is not None]
    low = high = None
    if len(means) > 1:
        interval = t_interval(means, confidence)
        low, high = interval.low, interval.high
    return {
        "mean": fmean(means) if means else None,
        "low": low,
        "high": high,
        "seeds": len(means),
    }


def merge_files(files: Sequence[Path], output: Path) -> dict[str, Any]:
    """Merge several metrics/evaluate.json into `output` (metrics/seeds.json).

    Raises:
        DataError: a file is missing or is no evaluation of one seed, or they do not go together.
    """
    evaluations = []
    for file in files:
        value = read_json(file)
        if not isinstance(value, dict) or not {"seed", "benchmarks", *_SAME} <= value.keys():
            raise DataError(f"{file}: not the evaluation of one seed (metrics/evaluate.json).")
        evaluations.append(value)
    merged = merge_seeds(evaluations)
    write_json(output, merged)
    return merged
