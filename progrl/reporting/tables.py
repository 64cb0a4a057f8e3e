"""Tables of an evaluation, as text: for the terminal, artifacts and the report."""

from collections.abc import Mapping, Sequence
from typing import Any

UNDEFINED = "undefined"
AGENT_NAMES = {
    "do_nothing": "do nothing",
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
