"""PMT's figures of ablations: two charts, distribution, reward design, stacked contribution."""

from collections.abc import Mapping
from typing import Any

from progrl.reporting.charts import bar_chart, dot_chart, steps_chart
from progrl.reporting.figures import Figure
from progrl.reporting.material import Material
from progrl.reporting.paper import Pair, compare, measured, pairs, row
from progrl.reporting.svg import Range, interval_chart, ticks

MISSING = "No sweep with enough seeds was summed up (metrics/ablations.json), so nothing is drawn."
REWARDS = {"full": "learned weights", "fixed_weights": "structured", "binary_reward": "binary"}
DESIGN = {
    "success": "success",
    "learning_efficiency": "learning efficiency",
    "episodes_saved": "episodes saved",
    "tokens_saved": "tokens saved",
    "performance_variance": "spread over seeds",
}
CHAIN = {
    "chain_base": "base",
    "chain_users": "+ users",
    "no_tools": "+ adaptive horizon",
    "full": "+ tools",
}
"""Presets that add one part after the other."""


def sweep_figures(material: Material) -> list[Figure]:
    """All of them, in the paper's order."""
    return [
        success_by_variant(material),
        differences(material),
        distribution(material),
        reward_design(material),
        contributions(material),
    ]


def _variants(material: Material) -> dict[str, Mapping[str, Any]]:
    """Those with enough seeds to be shown, in the order of the table; with `full` alone, none."""
    names = (material.ablations or {}).get("variants", {})
    found = {n: told for n in names if (told := row(material.ablations, n)) is not None}
    return found if found.keys() - {"full"} else {}


def _name(variant: str) -> str:
    return variant.replace("_", " ")


def _colour(variant: str) -> str:
    return "c-grpo" if variant == "full" else "c-1"


def _about(material: Material, *given: Pair) -> dict[str, Any]:
    told = compare(material.ablations, material.headline, *given)
    return {"missing": MISSING, "comparisons": told}


def success_by_variant(material: Material) -> Figure:
    """The first ablation chart: success of each variant."""
    rows = [
        (_name(name), [_range(_name(name), _colour(name), told["success"])])
        for name, told in _variants(material).items()
    ]
    given = [p for p in pairs() if p.ours == "success" and p.table in (1, 3, 6)]
    return Figure(
        "Ablations: success",
        "Mean success over seeds on the training domain, with its t interval.",
        interval_chart("Ablations: success", "success rate", rows, left=118),
        **_about(material, *given),
    )


def differences(material: Material) -> Figure:
    """The second: each variant less `full`, in the four primaries."""
    colours = {"success": "c-1", "held_out": "c-2", "goal_change": "c-3", "probe_area": "c-4"}
    rows = [
        (
            _name(name),
            [
                _range(_name(key), colours[key], found)
                for key, found in told["differences"].items()
                if found["mean"] is not None
            ],
        )
        for name, told in _variants(material).items()
        if "differences" in told
    ]
    bounds = [
        value
        for _, ranges in rows
        for r in ranges
        for value in (r.mean, r.low, r.high)
        if value is not None
    ]
    marks = ticks(min(0.0, *bounds), max(0.0, *bounds), 4) if bounds else (0.0, 1.0)
    chart = interval_chart("Ablations: differences", "variant − full", rows, marks, 118)
    given = [p for p in pairs() if p.variant and p.table in (3, 4)]
    return Figure(
        "Ablations: differences",
        "Variant less the full method, pairs of seeds and tasks, with t intervals over seeds. "
        "An interval that touches 0 decides nothing.",
        chart,
        [(_name(key), colour) for key, colour in colours.items()] if chart else (),
        **_about(material, *given),
    )


def distribution(material: Material) -> Figure:
    """Success of every run, a dot a seed."""
    rows = [
        (_name(name), _colour(name), told["success_by_seed"])
        for name, told in _variants(material).items()
    ]
    given = [p for p in pairs() if p.ours == "performance_variance"]
    return Figure(
        "Distribution over runs",
        "Success on the training domain, a dot a seed; the bar is the mean.",
        dot_chart("Distribution over runs", "success rate", rows),
        wide=True,
        **_about(material, *given),
    )


def reward_design(material: Material) -> Figure:
    """The structured reward beside others, in success and in what it cost to learn."""
    known = {name: label for name, label in REWARDS.items() if row(material.ablations, name)}
    colours = dict(zip(REWARDS, ("c-grpo", "c-1", "c-3"), strict=True))
    groups = [
        (
            label,
            [
                _range(
                    known[name],
                    colours[name],
                    measured(material.ablations, material.headline, name, key),
                )
                for name in known
            ],
        )
        for key, label in DESIGN.items()
    ]
    chart = bar_chart("Reward design", "share", groups) if len(known) > 1 else None
    return Figure(
        "Reward design",
        "Episodes and tokens saved are shares of the budget left when the threshold was reached, "
        "over the runs that reached it. A spread is better the smaller it is.",
        chart,
        [(known[name], colours[name]) for name in known] if chart else (),
        wide=True,
        **_about(material, *(p for p in pairs() if p.table == 5)),
    )


def contributions(material: Material) -> Figure:
    """What each part adds, one after the other; drawn only where all of the chain ran."""
    figures = [(label, row(material.ablations, name)) for name, label in CHAIN.items()]
    steps = [
        (label, float(told["success"]["mean"]))
        for label, told in figures
        if told is not None and told["success"]["mean"] is not None
    ]
    whole = steps if len(steps) == len(CHAIN) else []
    given = [p for p in pairs() if p.variant == "chain_base"]
    return Figure(
        "Stacked contribution",
        "Mean success over seeds as parts are added one after the other; another order would "
        "share it out otherwise.",
        steps_chart("Stacked contribution", "success rate", whole),
        wide=True,
        **_about(material, *given),
    )


def _range(name: str, colour: str, figure: Mapping[str, Any] | None) -> Range:
    if figure is None or figure["mean"] is None:
        return Range(name, colour, None, None, None)
    note = f", seeds: {figure['seeds']}" if "seeds" in figure else ""
    return Range(name, colour, figure["mean"], figure["low"], figure["high"], note)
