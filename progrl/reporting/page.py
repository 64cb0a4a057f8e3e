"""The report: one HTML file that needs nothing but itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from progrl.dialogue.trajectories import Trajectory
from progrl.reporting.cases import case_studies
from progrl.reporting.figures import (
    Figure,
    grpo_figures,
    horizon_branches,
    level_figure,
    sft_figures,
)
from progrl.reporting.material import Material
from progrl.reporting.outside import outside_table, trained_table
from progrl.reporting.paper import paper
from progrl.reporting.paper_evaluation import evaluation_figures
from progrl.reporting.paper_sweep import sweep_figures
from progrl.reporting.paper_tables import claims, paper_tables, theory
from progrl.reporting.paper_training import training_figures
from progrl.reporting.tables import (
    DIFFERENCE_NAMES,
    advice_table,
    agent_name,
    dynamics_table,
    interaction_table,
    interval,
    number,
    verdict,
)
from progrl.reporting.viewer import Side, side_of


@dataclass(frozen=True, slots=True)
class Example:
    """The same task and user, before and after."""

    family: str
    level: int
    task: str
    change: str
    sides: Sequence[Side]


@dataclass(frozen=True, slots=True)
class BenchmarkPart:
    """What the report says of a benchmark."""

    name: str
    held_out: bool
    agents: Mapping[str, Mapping[str, Any]]
    differences: Sequence[tuple[str, Mapping[str, Any], str]]
    interaction: Sequence[tuple[str, Sequence[str]]]
    levels: Figure
    level_rows: Mapping[str, Mapping[str, Any]]
    family_rows: Mapping[str, Mapping[str, Any]]
    examples: Sequence[Example]


def render(material: Material) -> str:
    """The page, the same bytes for the same material."""
    environment = Environment(
        loader=PackageLoader("progrl.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "interval": interval,
        "agent": agent_name,
        "duration": duration,
        "cells": lambda row: list(row.values()),
        "words": lambda text: str(text).replace("_", " "),
    }
    return environment.get_template("report.html").render(
        evaluate=material.evaluate,
        benchmarks=[_benchmark(name, material) for name in material.evaluate["benchmarks"]],
        curves=grpo_figures(material.grpo),
        branches=horizon_branches(material.grpo),
        dynamics=dynamics_table(material.grpo, material.config["grpo"]["probe_tasks"]),
        warm_start=sft_figures(material.sft),
        **_paper(material),
        generate=material.generate,
        times=material.times,
        seconds=sum(time.seconds for time in material.times),
        config=material.config,
        config_text=yaml.safe_dump(dict(material.config), sort_keys=False, allow_unicode=True),
        configuration=material.configuration,
        versions=material.versions,
        hashes=material.hashes,
    )


def _paper(material: Material) -> dict[str, Any]:
    """What stands beside the paper's tables and figures."""
    advice = material.advice
    return {
        "tables": paper_tables(material),
        "outside": outside_table(material),
        "trained": trained_table(material),
        "figures": paper_figures(material),
        "claims": claims(material),
        "theory": theory(material.grpo),
        "inconsistencies": paper()["inconsistencies"],
        "source": paper()["source"],
        "cases": case_studies(material),
        "advice": advice_table(advice) if advice else [],
        "advised": advice,
        "advised_here": "advice" in material.evaluate,
        "sweep": material.ablations,
    }


def paper_figures(material: Material) -> list[Figure]:
    """All figures of the paper, each made from what the runs have left."""
    return [
        *evaluation_figures(material),
        *training_figures(material),
        *sweep_figures(material),
    ]


def duration(seconds: float) -> str:
    """Seconds as people read them: `0.4 s`, `42 s`, `3 min 05 s`, `1 h 02 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def _benchmark(name: str, material: Material) -> BenchmarkPart:
    summary = material.evaluate["benchmarks"][name]
    differences = [
        (label, summary[key], verdict(summary[key]))
        for key, label in DIFFERENCE_NAMES.items()
        if key in summary
    ]
    return BenchmarkPart(
        name=name,
        held_out=name in material.config["domains"]["held_out"],
        agents=summary["agents"],
        differences=differences,
        interaction=interaction_table(summary, material.evaluate.get("retention", {}).get(name)),
        levels=level_figure(name, summary["levels"]),
        level_rows=summary["levels"],
        family_rows=summary["families"],
        examples=_examples(material.examples.get(name, {})),
    )


def _examples(
    kept: Mapping[str, Sequence[Trajectory]], before: str = "sft", after: str = "grpo"
) -> list[Example]:
    later = {t.task_id: t for t in kept.get(after, ())}
    return [
        Example(
            family=first.family,
            level=first.level,
            task=first.task_id,
            change=_change(first.success, later[first.task_id].success),
            sides=[side_of(before, first), side_of(after, later[first.task_id])],
        )
        for first in kept.get(before, ())
        if first.task_id in later
    ]


def _change(before: bool, after: bool) -> str:
    if before == after:
        return "solved by both" if after else "solved by neither"
    return "gained" if after else "lost"
