"""Tables of an evaluation, as text: for the terminal, artifacts and the report."""

from collections.abc import Mapping, Sequence
from typing import Any

from progrl.evaluation.dynamics import (
    Cost,
    cost_to,
    learning_efficiency,
    mean_of,
    read_probe,
    stability,
    threshold,
)

UNDEFINED = "undefined"
AGENT_NAMES = {
    "do_nothing": "do nothing",
    "random": "random",
    "expert": "expert",
    "untrained": "untrained",
    "sft": "SFT",
    "grpo": "GRPO",
}
DIFFERENCE_NAMES = {"grpo_minus_sft": "GRPO − SFT", "sft_minus_untrained": "SFT − untrained"}
Row = dict[str, str]


def number(value: float | None, digits: int = 2, signed: bool = False) -> str:
    """A number as it is shown; what is undefined says so."""
    if value is None:
        return UNDEFINED
    shown = f"{value:{'+' if signed else ''}.{digits}f}"
    # Rounding to zero leaves a sign behind that means nothing.
    return f"{0:.{digits}f}" if float(shown) == 0 else shown.replace("-", "−")


def interval(figure: Mapping[str, Any], digits: int = 2, signed: bool = False) -> str:
    """A figure with its interval, as `0.71 [0.66, 0.76]`."""
    mean, low, high = (figure[key] for key in ("mean", "low", "high"))
    if mean is None or low is None or high is None:
        return number(mean, digits, signed)
    bounds = f"[{number(low, digits, signed)}, {number(high, digits, signed)}]"
    return f"{number(mean, digits, signed)} {bounds}"


def agent_name(agent: str) -> str:
    """An agent's name for people."""
    return AGENT_NAMES.get(agent, agent)


def results_table(evaluate: Mapping[str, Any]) -> list[Row]:
    """The results by benchmark and agent, then the differences in success.

    Args:
        evaluate: of metrics/evaluate.json or metrics/seeds.json.

    Returns:
        Rows with the same keys: benchmark, agent, success, reward, turns, episodes, seeds.
    """
    rows: list[Row] = []
    for benchmark, summary in evaluate["benchmarks"].items():
        for agent, metrics in summary["agents"].items():
            rows.append(
                {
                    "benchmark": benchmark,
                    "agent": agent_name(agent),
                    "success": interval(metrics["success"]),
                    "reward": interval(metrics["reward"]),
                    "turns": number(metrics["turns"]["mean"], 1),
                    "episodes": str(metrics["success"]["episodes"]),
                    "seeds": str(metrics["success"]["seeds"]),
                }
            )
        for key, name in DIFFERENCE_NAMES.items():
            if key in summary:
                rows.append(
                    {
                        "benchmark": benchmark,
                        "agent": name,
                        "success": interval(summary[key], 3, signed=True),
                        "reward": "",
                        "turns": "",
                        "episodes": f"{summary[key]['tasks']} pairs",
                        "seeds": str(summary[key]["seeds"]),
                    }
                )
    return rows


INTERACTION = {
    "satisfaction": "user satisfaction",
    "coherence": "context coherence",
    "changed_calls": "failed calls that were changed",
    "goal_change_success": "success after a goal change",
    "recovery": "success after a tool failure",
    "selection_accuracy": "tool is the expert's",
    "tool_consistency": "tool consistency (expert: 1)",
    "effective_turns": "effective turns",
    "informative_turns": "informative turns",
    "time_weighted": "time-weighted performance",
}
"""Names for people of the figures of interaction and tools, as metrics/evaluate.json has them."""


def interaction_table(
    summary: Mapping[str, Any], retention: Mapping[str, Any] | None = None
) -> list[tuple[str, list[str]]]:
    """Name and a cell an agent for each figure of interaction and tools.

    Args:
        summary: of a benchmark; figures that it lacks are left out, as an older version wrote it.
        retention: of the benchmark, if its domain is held out.
    """
    agents = summary["agents"]
    rows = [
        (label, [interval(figures[name]) for figures in agents.values()])
        for name, label in INTERACTION.items()
        if all(name in figures for figures in agents.values())
    ]
    for pair in summary.get("tool_efficiency", {}).values():
        cells = [interval(pair[agent]) if agent in pair else "" for agent in agents]
        of = " and ".join(agent_name(agent) for agent in pair)
        rows.append((f"tool efficiency where {of} both succeed", cells))
    if retention:
        rows.append(("retention of success", [retained(retention.get(a)) for a in agents]))
    return rows


def retained(value: Mapping[str, Any] | None) -> str:
    """Retention on a held-out domain: a ratio, or an absolute success that is said to be one."""
    if value is None:
        return UNDEFINED
    shown = number(value["value"])
    return shown if value["kind"] == "ratio" else f"{shown} (absolute)"


def advice_table(advice: Mapping[str, Any]) -> list[Row]:
    """What advice on tools is worth: the trained agent with each kind, then the differences.

    Args:
        advice: of metrics/evaluate.json, written where the configuration has advice.

    Returns:
        Rows with the same keys: benchmark, advice, success, reward, turns, failed calls, tool is
        the expert's, verdict.
    """
    columns = {
        "success": "success",
        "reward": "reward",
        "turns": "turns",
        "failed_calls": "failed calls",
        "selection_accuracy": "tool is the expert's",
    }
    rows: list[Row] = []
    for benchmark, summary in advice["benchmarks"].items():
        for kind, figures in summary["agents"].items():
            cells = {
                label: interval(figures[key]) if key in figures else ""
                for key, label in columns.items()
            }
            rows.append({"benchmark": benchmark, "advice": kind, **cells, "verdict": ""})
        for key, value in summary.items():
            if key != "agents":
                name = key.replace("_minus_", " − ")
                blank = dict.fromkeys(columns.values(), "")
                told = {**blank, "success": interval(value, 3, signed=True)}
                word = verdict(value)
                rows.append({"benchmark": benchmark, "advice": name, **told, "verdict": word})
    return rows


def dynamics_table(rows: Sequence[Mapping[str, Any]], tasks: int) -> list[tuple[str, str, str]]:
    """Name, value and meaning of the figures of training; none where it was never probed.

    One run has nothing to be compared to: its reference is its own best probe, its threshold lies
    in its own gain.

    Args:
        rows: of metrics/grpo.jsonl.
        tasks: of the probe.
    """
    probe = read_probe(rows)
    if not probe.success:
        return []
    success = probe.success
    start, best, final = success[0], max(success), success[-1]
    level = threshold(start, final)
    told = f"to {number(level)}, which is 90% of the way from start to end"
    return [
        (
            "probe: start, best, end",
            ", ".join(number(value) for value in (start, best, final)),
            f"greedy success on {tasks} validation tasks",
        ),
        (
            "learning efficiency",
            number(learning_efficiency(success, best)),
            f"mean gain over all probes, as a share of the gain to {number(best)}",
        ),
        ("episodes to threshold", _cost(cost_to(level, success, probe.episodes)), told),
        ("tokens to threshold", _cost(cost_to(level, success, probe.tokens)), "sampled ones"),
        (
            "stability",
            number(stability(success, best, tasks)),
            "1 less the spread about a rising curve, sampling noise subtracted, over the gain",
        ),
        ("gain", number(final - start, 3, signed=True), "success of the probe, end less start"),
        ("policy KL in all", number(probe.kl[-1], 3), "nats a token, summed over steps"),
        ("policy KL a step", number(mean_of(rows, "kl"), 5), "before and after an update"),
        ("gradient norm", number(mean_of(rows, "gradient_norm")), "mean over steps, unclipped"),
    ]


def _cost(cost: Cost | None) -> str:
    if cost is None:
        return UNDEFINED
    if cost.censored:
        return f"not reached in {cost.budget:,.0f}"
    saved = "" if cost.saved is None else f" ({cost.saved:.0%} of the budget left)"
    return f"{cost.spent:,.0f}{saved}"


def markdown(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows with the same keys as a Markdown table; "" where there are none."""
    if not rows:
        return ""
    head = list(rows[0])
    lines = [head, ["---"] * len(head)]
    lines += [[row[key].replace("|", "\\|") for key in head] for row in rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def verdict(difference: Mapping[str, Any]) -> str:
    """Whether a difference is better, worse or undecided, in a word.

    An interval that touches 0, or is missing, decides nothing.
    """
    low, high = difference["low"], difference["high"]
    if low is None or high is None:
        return "undecided"
    return "better" if low > 0 else "worse" if high < 0 else "undecided"
