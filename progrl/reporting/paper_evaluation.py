"""PMT's figures of an evaluation: radar, benchmark bars, heat map, interaction quality."""

from collections.abc import Mapping, Sequence
from typing import Any

from progrl.reporting.charts import bar_chart, heat_map, radar_chart
from progrl.reporting.figures import Figure
from progrl.reporting.material import Material
from progrl.reporting.paper import compare, pairs
from progrl.reporting.svg import Range
from progrl.reporting.tables import agent_name

COMPARED = ("untrained", "sft", "grpo")
AXES = {
    "success": "success",
    "progress": "progress",
    "policy_kept": "policy kept",
    "satisfaction": "satisfaction",
    "coherence": "coherence",
    "goal_change_success": "goal changes",
    "recovery": "recovery",
    "selection_accuracy": "tool choice",
}
INTERACTION = {
    "satisfaction": "user satisfaction",
    "coherence": "context coherence",
    "goal_change_success": "goal changes",
    "recovery": "recovery",
    "changed_calls": "calls changed",
}
Agents = Mapping[str, Mapping[str, Any]]


def evaluation_figures(material: Material) -> list[Figure]:
    """All of them, in the paper's order."""
    return [radar(material), bars(material), heat(material), interaction(material)]


def radar(material: Material) -> Figure:
    """The agents on all figures in [0, 1] that are defined for each of them."""
    name, agents = _trained(material)
    title = f"Profile of the agents, {name}"
    axes = {
        key: label
        for key, label in AXES.items()
        if all(_mean(agents[agent], key) is not None for agent in agents)
    }
    series = [
        (agent_name(agent), f"c-{agent}", [float(figures[key]["mean"]) for key in axes])
        for agent, figures in agents.items()
    ]
    chart = radar_chart(title, list(axes.values()), series)
    caption = (
        "Figures between 0 at the centre and 1 at the rim, of the agents without, with the first, "
        "and with both steps of training. A figure that is undefined for one of them has no axis."
    )
    given = [pair for pair in pairs() if pair.table == 2 and pair.other is None]
    return Figure(
        title,
        caption,
        chart,
        [(name, colour) for name, colour, _ in series] if chart else (),
        comparisons=compare(material.ablations, material.headline, *given),
    )


def bars(material: Material) -> Figure:
    """Success by benchmark and agent, with intervals."""
    groups = [
        (name, [_range(agent, figures, "success") for agent, figures in part["agents"].items()])
        for name, part in material.headline["benchmarks"].items()
    ]
    given = [pair for pair in pairs() if pair.table == 1]
    return Figure(
        "Success by benchmark",
        "The success rate of each agent with its interval; the expert and the agent that does "
        "nothing are the bounds.",
        bar_chart("Success by benchmark", "success rate", groups),
        _legend([agent for _, ranges in groups for agent in ranges]),
        wide=True,
        comparisons=compare(material.ablations, material.headline, *given),
    )


def heat(material: Material) -> Figure:
    """Success of each agent on each complexity level of each benchmark."""
    levels = [
        (f"{name} {level}", agents)
        for name, part in material.headline["benchmarks"].items()
        for level, agents in part["levels"].items()
    ]
    names = list(dict.fromkeys(agent for _, agents in levels for agent in agents))
    rows = [(agent_name(agent), [_mean(agents, agent) for _, agents in levels]) for agent in names]
    return Figure(
        "Success by benchmark and complexity",
        "The success rate in each cell: benchmark and complexity level across, agents down.",
        heat_map("Success by benchmark and complexity", [name for name, _ in levels], rows),
        wide=True,
    )


def interaction(material: Material) -> Figure:
    """How the agents treat their user."""
    name, agents = _trained(material)
    title = f"Quality of interaction, {name}"
    groups = [
        (label, [_range(agent, figures, key) for agent, figures in agents.items()])
        for key, label in INTERACTION.items()
        if any(_mean(figures, key) is not None for figures in agents.values())
    ]
    given = [pair for pair in pairs() if pair.ours in ("satisfaction", "goal_change", "coherence")]
    return Figure(
        title,
        "Each with its interval. Goal changes and recovery are success on tasks that scheduled a "
        "change of goal or a failure of a tool; calls changed are failed ones not repeated as "
        "they were.",
        bar_chart(title, "share", groups) if groups else None,
        _legend([bar for _, ranges in groups for bar in ranges]),
        wide=True,
        comparisons=compare(material.ablations, material.headline, *given),
    )


def _trained(material: Material) -> tuple[str, Agents]:
    """The first benchmark, and of its agents those that are compared."""
    name, part = next(iter(material.headline["benchmarks"].items()))
    return name, {agent: part["agents"][agent] for agent in COMPARED if agent in part["agents"]}


def _mean(figures: Mapping[str, Any], key: str) -> float | None:
    found = figures.get(key)
    return None if found is None else found["mean"]


def _range(agent: str, figures: Mapping[str, Any], key: str) -> Range:
    found = figures.get(key)
    if found is None:
        return Range(agent_name(agent), f"c-{agent}", None, None, None)
    bounds = (found["mean"], found["low"], found["high"])
    note = f", {found['episodes']} episodes, seeds: {found['seeds']}"
    return Range(agent_name(agent), f"c-{agent}", *bounds, note)


def _legend(ranges: Sequence[Range]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((r.name, r.colour) for r in ranges if r.mean is not None))
