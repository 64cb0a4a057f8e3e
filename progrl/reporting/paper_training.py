"""PMT's figures of training: convergence, dynamics, learning rates, improvement, time shares."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from progrl.evaluation.dynamics import read_probe, smoothed, threshold
from progrl.reporting.charts import share_chart
from progrl.reporting.figures import Figure
from progrl.reporting.material import Material, Rows, StageTime
from progrl.reporting.paper import NOT_MEASURED, Comparison, compare, pairs, paper
from progrl.reporting.svg import Series, line_chart
from progrl.reporting.tables import number

WIDTH = 3.0
"""Steps over which a curve of training is smoothed."""

PARTS = {
    "user simulation": "c-1",
    "policy optimisation": "c-2",
    "tool orchestration": "c-3",
    "evaluation": "c-4",
    "sampling and environments": "c-soft",
}
"""Of the time of training; the last has no share of its own in the paper."""


def training_figures(material: Material) -> list[Figure]:
    """All of them, in the paper's order."""
    return [
        convergence(material),
        dynamics(material.grpo),
        time_shares(material.times),
        learning_rates(material),
        improvement(material.grpo),
    ]


def convergence(material: Material) -> Figure:
    """Success of the probe by the episodes trained on, with 90% of the gain marked."""
    probe = read_probe(material.grpo)
    level = threshold(probe.success[0], probe.success[-1]) if probe.success else None
    series = [Series("probe", "c-grpo", list(zip(probe.episodes, probe.success, strict=True)))]
    guides = [] if level is None else [(level, f"90% of the gain: {number(level)}")]
    chart = line_chart("Convergence", "episodes", "success", series, (0.0, 1.0), guides)
    given = [pair for pair in pairs() if pair.table == 5]
    return Figure(
        "Convergence",
        "Greedy success on the fixed validation tasks, by the episodes trained on so far.",
        chart,
        comparisons=compare(material.ablations, material.headline, *given),
    )


def dynamics(rows: Rows) -> Figure:
    """Success of the steps' episodes, smoothed, with the deviation about it."""
    known = [(r["step"], float(r["success"])) for r in rows if r.get("success") is not None]
    series: list[Series] = []
    if known:
        steps = [step for step, _ in known]
        mean, spread = smoothed([value for _, value in known], WIDTH)
        lines = (
            ("smoothed", "c-1", mean),
            ("plus deviation", "c-soft", mean + spread),
            ("less deviation", "c-soft", mean - spread),
        )
        series = [
            Series(name, colour, [(s, float(v)) for s, v in zip(steps, values, strict=True)])
            for name, colour, values in lines
        ]
    return Figure(
        "Training dynamics",
        f"Success of each step's episodes within its horizon, smoothed over {WIDTH:g} steps by a "
        "Gaussian, with one standard deviation either way.",
        line_chart("Training dynamics", "step", "success", series, (0.0, 1.0)),
        [("smoothed", "c-1"), ("standard deviation", "c-soft")] if series else (),
    )


def learning_rates(material: Material) -> Figure:
    """The logged rates of both trainings, as shares of their peaks."""
    series = [
        Series(f"{name}, {_kind(material.config, section)}", colour, _relative(rows))
        for name, section, colour, rows in (
            ("SFT", "sft", "c-sft", [r for r in material.sft if r.get("phase", "sft") == "sft"]),
            ("GRPO", "grpo", "c-grpo", material.grpo),
        )
    ]
    given = [pair for pair in pairs() if pair.table == 6]
    return Figure(
        "Schedules of the learning rate",
        "As logged: share of the peak over the part of the training that is done, in percent.",
        line_chart(
            "Schedules of the learning rate", "% of training", "share of peak", series, (0.0, 1.0)
        ),
        [(s.name, s.colour) for s in series if s.defined],
        comparisons=compare(material.ablations, material.headline, *given),
    )


def _kind(config: Mapping[str, Any], section: str) -> str:
    kind = config.get(section, {}).get("schedule", {}).get("kind", "")
    return str(kind).replace("_", " ")


def _relative(rows: Rows) -> list[tuple[float, float | None]]:
    rates = [float(r["learning_rate"]) for r in rows if r.get("learning_rate") is not None]
    peak = max(rates, default=0.0)
    if not peak:
        return []
    last = max(1, len(rates) - 1)
    return [(100 * i / last, rate / peak) for i, rate in enumerate(rates)]


def improvement(rows: Rows) -> Figure:
    """What the probe gained over its start, and the best so far."""
    probe = read_probe(rows)
    gains = [value - probe.success[0] for value in probe.success]
    best = list(accumulate(gains, max))
    series = [
        Series("gain", "c-1", list(zip(probe.steps, gains, strict=True))),
        Series("best so far", "c-3", list(zip(probe.steps, best, strict=True)), "step"),
    ]
    low, high = paper()["claims"]["success_gain_range"]
    told = [] if not gains else [_gain(low, high, gains[-1])]
    return Figure(
        "Improvement",
        "Success of the probe less that before reinforcement.",
        line_chart("Improvement", "step", "gain in success", series),
        [(s.name, s.colour) for s in series if s.defined],
        comparisons=told,
    )


def _gain(low: float, high: float, gain: float) -> Comparison:
    word = "same" if gain > 0 else "opposite" if gain < 0 else "no difference"
    return Comparison(
        "success gained over the baseline; ours over the warm start",
        f"{low:g} to {high:g} points",
        f"{number(100 * gain, 1, True)} points",
        word if word == "no difference" else f"{word}, without an interval",
    )


def time_shares(times: Sequence[StageTime]) -> Figure:
    """What the time of reinforcement goes to, beside the paper's shares."""
    stated = {name: share / 100 for name, share in paper()["time_shares"].items()}
    ours = shares(times)
    rows = [("paper", stated), ("ours", ours)] if ours else []
    return Figure(
        "Time shares",
        "Of the wall time of stage grpo; its probes are the evaluation. The paper names no share "
        "for the agent's own sampling, which ours has.",
        share_chart("Time shares", rows, PARTS),
        list(PARTS.items()) if rows else (),
        missing="No timings of stage grpo were found beside the results, so nothing is drawn.",
        wide=True,
        comparisons=[
            Comparison(
                name,
                f"{share:.0%}",
                f"{ours[name]:.0%}" if ours else NOT_MEASURED,
                _rank(name, stated, ours),
            )
            for name, share in stated.items()
        ],
    )


def shares(times: Sequence[StageTime]) -> dict[str, float]:
    """Shares of the wall time of stage grpo by `PARTS`, which sum to 1; empty without timings."""
    found = next((time for time in times if time.stage == "grpo"), None)
    if found is None or not found.components or not found.seconds:
        return {}
    seconds = {
        "user simulation": found.components.get("user", 0.0),
        "policy optimisation": found.components.get("update", 0.0),
        "tool orchestration": found.components.get("tools", 0.0),
        "evaluation": found.components.get("probe", 0.0),
    }
    total = max(found.seconds, sum(seconds.values()))
    rest = total - sum(seconds.values())
    return {**{name: s / total for name, s in seconds.items()}, list(PARTS)[-1]: rest / total}


def _rank(name: str, stated: Mapping[str, float], ours: Mapping[str, float]) -> str:
    """Whether a part has the same place among the paper's four."""
    if not ours:
        return NOT_MEASURED
    places = [
        sorted(stated, key=lambda part: (-found[part], part)).index(name)
        for found in (stated, ours)
    ]
    return "same place" if places[0] == places[1] else f"place {places[0] + 1} → {places[1] + 1}"
