"""The results as a table in Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any

GOALS = {
    "rollout_vs_hf_reread": (8.0, "at least"),
    "rollout_vs_hf_cached": (None, ""),
    "rollout_vs_vllm_cpu": (1.0, "at least"),
    "grpo_step_vs_trl": (5.0, "at least"),
    "training_vs_plain": (None, ""),
    "turn_growth_over_bound": (1.15, "at most"),
    "overlap_200ms": (0.9, "at least"),
    "environment_turns_per_s": (None, ""),
    "simulation_and_tools_share": (0.1, "at most"),
    "pipeline_overhead": (0.05, "at most"),
    "rollout_share_of_bound": (None, ""),
    "matmul_gflops": (None, ""),
    "memory_read_gb_per_s": (None, ""),
}
"""Figures in the order of the table, and what they should reach."""


def met(name: str, value: float | None) -> bool | None:
    """Whether a figure reaches its goal; None where there is no goal, or no figure."""
    goal, which = GOALS.get(name, (None, ""))
    if goal is None or value is None:
        return None
    return value >= goal if which == "at least" else value <= goal


def markdown(results: dict[str, Any]) -> str:
    """The whole page: figures beside their goals, then the details of each measure."""
    details = results["details"]
    parts = ["# Speed", _about(results), "", *_figures(results)]
    if "rollout" in details:
        parts += ["", "## Rollouts", "", *_ways(details["rollout"]["ways"], "tokens_per_s")]
    if "grpo" in details:
        parts += ["", "## A step of GRPO", "", *_ways(details["grpo"]["ways"], "seconds_cpu")]
    if "training" in details:
        parts += ["", "## Updates", "", *_ways(details["training"], "tokens_per_s")]
    if "growth" in details:
        parts += ["", "## Turns", "", _growth(details["growth"])]
    if "overlap" in details:
        parts += ["", "## Users who think", "", *_overlap(details["overlap"]["by_ms"])]
    if "pipeline" in details:
        parts += ["", "## The pipeline", "", _pipeline(details["pipeline"])]
    for axis, rows in details.get("growth_of_rollouts", {}).items():
        parts += ["", f"## Rollouts by {axis}", "", *_ways(rows, "tokens_per_s")]
    parts += ["", *(f"* {note}" for note in results["notes"])] if results["notes"] else []
    return "\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Lines of a Markdown table; numbers with three digits that count."""
    lines = [head, ["---"] * len(head), *([_shown(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _shown(cell: Any) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.3g}"


def _about(results: dict[str, Any]) -> str:
    machine = results["machine"]
    facts = [f"{name} {value}" for name, value in machine.items()]
    return f"\n{results['mode']}; {', '.join(facts)}; {results['seconds']:.0f} s."


def _figures(results: dict[str, Any]) -> list[str]:
    rows = []
    for name, (goal, which) in GOALS.items():
        if name in results:
            wanted = f"{which} {goal:g}" if goal is not None else None
            rows.append([f"`{name}`", results[name], wanted, met(name, results[name])])
    return table(["figure", "measured", "goal", "met"], rows)


def _ways(ways: dict[str, Any], speed: str) -> list[str]:
    rows = [
        [
            name,
            row[speed],
            row.get("times_ours_cpu"),
            row.get("times_ours_wall"),
            row["memory_mib"]["peak"],
            row["memory_mib"]["beyond_idle"],
        ]
        for name, row in ways.items()
    ]
    what = {"tokens_per_s": "tokens/s", "seconds_cpu": "seconds"}[speed]
    head = ["way", what, "times ours (CPU)", "times ours (wall)", "peak MiB", "beyond idle"]
    used = [at for at in range(len(head)) if any(row[at] is not None for row in rows)]
    return table([head[at] for at in used], [[row[at] for at in used] for row in rows])


def _growth(growth: dict[str, Any]) -> str:
    return (
        f"Turn {growth['turns']} took {growth['last_over_second']:.2f} times as long as turn 2; "
        f"with attention alone growing it would be {growth['bound']:.2f}. Tokens read: "
        f"{growth['tokens_read_in_second']:.0f} and {growth['tokens_read_in_last']:.0f}."
    )


def _pipeline(pipeline: dict[str, Any]) -> str:
    return (
        f"The flow took {pipeline['flow_seconds']:.1f} s, the stages' bare commands "
        f"{pipeline['commands_seconds']:.1f} s: {pipeline['added_seconds']:.1f} s more."
    )


def _overlap(rows: dict[str, Any]) -> list[str]:
    names = ("seconds", "ideal", "in_step", "sequential", "hidden", "ideal_over_ours")
    head = ["ms", "seconds", "ideal", "in step", "sequential", "hidden", "ideal/ours"]
    return table(head, [[wait, *(row[name] for name in names)] for wait, row in rows.items()])
