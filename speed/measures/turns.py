"""Turns: how their time grows with the conversation, and how much of users' thinking is hidden."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from speed.compare import Reading, Way, compare, kernels, middle
from speed.plan import Found, Plan

LATENCIES = (0.0, 0.05, 0.2, 1.0)
"""Seconds for which a user thinks."""
LONG = 20
"""Turns of the conversations whose growth is measured."""


def growth(plan: Plan, turns: int = LONG) -> Found:
    """`turn_growth_over_bound`: the last turn's time over the second's, over what it would be if
    attention alone grew.

    Each round measures both, so the bound is of the same minute, and attention alone is by the same
    means: the kernels', or torch's with the default keys.
    """
    work, found = plan.work.sized(turns=turns), Found()
    ways = {"": Way("ours.turns", work, kernels()), "_default": Way("ours.turns", work)}
    for name, readings in compare(ways, plan.rounds).items():
        over, details = _grown(readings, turns)
        found.figures[f"turn_growth_over_bound{name}"] = over
        found.details[f"growth{name}"] = details
    return found


def _grown(readings: Sequence[Reading], turns: int) -> tuple[float, dict[str, Any]]:
    """The figure, and what it is made of."""
    grown, bounds = [], []
    for reading in readings:
        second, last = reading["turn_cpu"][1], reading["turn_cpu"][-1]
        near, far = reading["attention"]
        grown.append(last / second)
        bounds.append((second - near + far) / second)
    over = median(g / b for g, b in zip(grown, bounds, strict=True))
    read = readings[0]["turn_read"]
    seconds = [median(turn) for turn in zip(*(r["turn_cpu"] for r in readings), strict=True)]
    details = {
        "turns": turns,
        "last_over_second": median(grown),
        "bound": median(bounds),
        "turn_seconds": seconds,
        "tokens_read_in_second": read[1],
        "tokens_read_in_last": read[-1],
    }
    return over, details


def overlap(plan: Plan) -> Found:
    """`overlap_200ms`: the share of what can be hidden of users' thinking that is hidden.

    Sequential is to ask one user after another while all else stands still; ideal is to take no
    longer than the work alone, or than one conversation alone, whichever is longer. In step is to
    let all wait until the last of them is answered in each turn.
    """
    work = plan.work
    ways = {
        str(wait): Way("ours.rollout", work, {"latency": wait, **kernels()}) for wait in LATENCIES
    }
    ways["alone"] = Way("ours.rollout", work.sized(conversations=1), kernels())
    # Waiting takes the time that it takes: fewer rounds do.
    readings = compare(ways, max(1, plan.rounds - 1))
    busy, alone = middle(readings["0.0"], "wall"), middle(readings["alone"], "wall")
    rows = {}
    for wait in LATENCIES:
        took = middle(readings[str(wait)], "wall")
        thought = wait * (work.turns - 1)
        ideal = max(busy, alone + thought)
        sequential, in_step = busy + thought * work.conversations, busy + thought
        rows[f"{1000 * wait:.0f}"] = {
            "seconds": took,
            "ideal": ideal,
            "in_step": in_step,
            "sequential": sequential,
            "hidden": (sequential - took) / (sequential - ideal) if wait else None,
            "ideal_over_ours": ideal / took,
        }
    details = {"by_ms": rows, "one_conversation_alone": alone}
    return Found({"overlap_200ms": rows["200"]["hidden"]}, {"overlap": details})
