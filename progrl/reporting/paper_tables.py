"""PMT's tables 1-6, with our runs in their place and the paper's figures beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from progrl.evaluation.dynamics import branch_shares, cost_to, mean_of, read_probe, threshold
from progrl.reporting.figures import signal_share
from progrl.reporting.material import Material, Rows
from progrl.reporting.outside import of_paper
from progrl.reporting.paper import (
    NOT_MEASURED,
    Comparison,
    direction,
    measured,
    minus_full,
    pairs,
    paper,
    percent,
    row,
    shown,
)
from progrl.reporting.tables import number

HEAD = (
    "metric", "variant", "paper: full", "paper: variant", "ours: full", "ours: variant",
    "ours: variant − full", "direction",
)  # fmt: skip
TITLES = {
    2: "Training and interaction",
    3: "What users are worth",
    4: "What an adaptive horizon and learned tools are worth",
    5: "What the structured reward is worth",
    6: "What the schedule of the learning rate is worth",
}
DIFFERENCES_ALONE = ("optimisation_efficiency",)
"""Defined by pairs of runs: a variant has no figure of its own."""
ROWS = {
    "full": "full",
    "chain_base": "baseline",
    "react": "react",
    "toolformer": "toolformer",
    "mua_rl": "mua_rl",
    "no_user": "no_user",
    "constant_lr": "constant_lr",
}
"""Of table 1: our presets, and what the paper calls them."""


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of the paper: our cells and its own.

    Attributes:
        number: in the paper.
        rows: a cell for each name in `head`.
    """

    number: int
    title: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def records(self) -> list[dict[str, str]]:
        """The rows by the names of the columns."""
        return [dict(zip(self.head, row, strict=True)) for row in self.rows]


def paper_tables(material: Material) -> list[PaperTable]:
    """All six; a cell that no run has filled says so."""
    return [_outcomes(material), *(_paired(material, table) for table in TITLES)]


def _outcomes(material: Material) -> PaperTable:
    stated = paper()["benchmarks"]
    benchmarks = list(material.headline["benchmarks"])
    outside = of_paper(material)
    rows = []
    for variant, name in ROWS.items():
        cells = [_success(material, variant, at) for at in range(min(2, len(benchmarks)))]
        cells += [full if variant == "full" else NOT_MEASURED for full, _ in outside.values()]
        cells += [percent(figures.get(name)) for figures in stated.values()]
        rows.append([variant.replace("_", " "), *cells])
    own = [f"ours: {name}" for name in benchmarks[:2]]
    if outside:
        idle = [nothing for _, nothing in outside.values()]
        rows.append(["does nothing", *("" for _ in own), *idle, *("" for _ in stated)])
    own += outside
    return PaperTable(
        1,
        "Success by benchmark",
        "Success rate. The paper's benchmarks are not ours: directions can be compared, sizes "
        "cannot. Its cells that are empty are not known.",
        ["method", *own, *(f"paper: {name}" for name in stated)],
        rows,
    )


def _success(material: Material, variant: str, at: int) -> str:
    reason = (material.ablations or {}).get("variants", {}).get(variant, {}).get("not_applicable")
    if reason:
        return "not applicable"
    name = ("success", "held_out")[at]
    return shown(measured(material.ablations, material.headline, variant, name))


def _paired(material: Material, table: int) -> PaperTable:
    given = (material.ablations, material.headline)
    rows = []
    for pair in (pair for pair in pairs() if pair.table == table):
        full = shown(measured(*given, "full", pair.ours))
        cells = [percent(pair.full), percent(pair.other), full]
        if pair.other is None:
            rows.append([pair.metric, "", *cells, "", "", ""])
            continue
        difference = minus_full(*given, pair.variant, pair.ours)
        own = shown(measured(*given, pair.variant, pair.ours))
        if pair.ours in DIFFERENCES_ALONE:
            cells[-1] = own = ""
        rows.append(
            [
                pair.metric,
                pair.variant.replace("_", " "),
                *cells,
                own,
                shown(difference, signed=True),
                direction(pair.other - pair.full, difference),
            ]
        )
    return PaperTable(table, TITLES[table], _source(material, table), HEAD, rows)


def _source(material: Material, table: int) -> str:
    if row(material.ablations, "full") is None:
        text = "No sweep with enough seeds was summed up: of the full method, this run's figures."
    else:
        text = (
            "From the sweep: means over seeds with t intervals. A difference with an interval is "
            "of pairs, one without of the means."
        )
    if table == 3:
        text += " Beside WebArena stands our held-out domain, beside TAU2-Bench the trained one."
    return text


def claims(material: Material) -> list[Comparison]:
    """What the paper states outside its tables, beside what this run and the sweep have logged."""
    stated = paper()["claims"]
    found = _probed(material.grpo)
    low, high = stated["success_gain_range"]
    gain = minus_full(material.ablations, material.headline, "chain_base", "success")
    gained = None if gain is None else _negated(gain)
    return [
        Comparison(
            "success gained over the baseline",
            f"{low} to {high} points",
            shown(gained, signed=True),
            direction(low, gained),
        ),
        Comparison(
            "better than MUA-RL, relative",
            percent(stated["mua_rl_relative_gain"]),
            *_relative(material),
        ),
        Comparison(
            "fewer episodes to the same success than MUA-RL",
            percent(stated["fewer_episodes"]),
            *_fewer(material.ablations),
        ),
        Comparison(
            "faster training", percent(stated["faster_training"]), NOT_MEASURED, NOT_MEASURED
        ),
        Comparison("90% of the probe's gain", "", f"{found} of this run", "no comparison given"),
        Comparison(
            "loss without users, on average",
            percent(stated["average_loss_without_users"]),
            *_loss(material),
        ),
        Comparison(
            "time saved by asynchronous collection",
            percent(stated["async_collection_saving"]),
            NOT_MEASURED,
            NOT_MEASURED,
        ),
    ]


def _negated(figure: Mapping[str, Any]) -> Mapping[str, Any]:
    low, high = figure["low"], figure["high"]
    return {
        "mean": None if figure["mean"] is None else -figure["mean"],
        "low": None if high is None else -high,
        "high": None if low is None else -low,
    }


def _relative(material: Material) -> tuple[str, str]:
    full = measured(material.ablations, material.headline, "full", "success")
    other = measured(material.ablations, material.headline, "mua_rl", "success")
    minus = minus_full(material.ablations, material.headline, "mua_rl", "success")
    if full is None or other is None or minus is None or not other["mean"]:
        return NOT_MEASURED, NOT_MEASURED
    gain = (full["mean"] - other["mean"]) / other["mean"]
    return f"{number(100 * gain, 1, True)}%", direction(1, _negated(minus))


def _fewer(ablations: Mapping[str, Any] | None) -> tuple[str, str]:
    own, other = row(ablations, "full"), row(ablations, "mua_rl")
    if own is None or other is None:
        return NOT_MEASURED, NOT_MEASURED
    spent, theirs = (told["to_threshold"]["episodes"] for told in (own, other))
    if not spent["spent"]["mean"] or not theirs["spent"]["mean"]:
        return NOT_MEASURED, NOT_MEASURED
    saved = 1 - spent["spent"]["mean"] / theirs["spent"]["mean"]
    censored = spent["censored"] + theirs["censored"]
    bound = f", {censored} runs never reached it" if censored else ""
    told = {"mean": saved, "low": None, "high": None}
    return f"{number(100 * saved, 1, True)}%{bound}", direction(1, told)


def _loss(material: Material) -> tuple[str, str]:
    parts = [
        minus_full(material.ablations, material.headline, "no_user", name)
        for name in ("success", "held_out")
    ]
    lost = [part for part in parts if part is not None and part["mean"] is not None]
    if not lost:
        return NOT_MEASURED, NOT_MEASURED
    return ", ".join(shown(part, signed=True) for part in lost), direction(-1, lost[0])


def _probed(rows: Rows) -> str:
    probe = read_probe(rows)
    if not probe.success:
        return NOT_MEASURED
    level = threshold(probe.success[0], probe.success[-1])
    cost = cost_to(level, probe.success, probe.episodes)
    return "undefined (no gain)" if cost is None else f"{cost.spent:,.0f} episodes"


def theory(rows: Rows) -> list[Comparison]:
    """What the paper's theory predicts, as far as the rows of a run tell."""
    shares = [share for r in rows if (share := signal_share(r)) is not None]
    carrying = number(sum(shares) / len(shares)) if shares else NOT_MEASURED
    found = branch_shares(rows) or {}
    branches = ", ".join(f"{name} {share:.0%}" for name, share in found.items())
    horizons = [r["horizon"] for r in rows if r.get("horizon") is not None]
    grown = f"{horizons[0]:g} to {horizons[-1]:g} turns" if horizons else NOT_MEASURED
    kl = mean_of(rows, "kl")
    return [
        Comparison("share of groups that carry a signal", "", carrying, "no comparison given"),
        Comparison(
            "gradient of the structured to that of the task's reward",
            "above 1", NOT_MEASURED, NOT_MEASURED,
        ),
        Comparison("horizon over training", "2 to 20 turns", grown, _grows(horizons)),
        Comparison(
            "steps by branch of the schedule", "", branches or NOT_MEASURED, "no comparison given"
        ),
        Comparison(
            "failure at the horizon and the next, same weights",
            "no jump", NOT_MEASURED, NOT_MEASURED,
        ),
        Comparison(
            "policy KL a step",
            "",
            NOT_MEASURED if kl is None else f"{number(kl, 5)} nats a token",
            "no comparison given",
        ),
        Comparison("gap between two simulators", "", NOT_MEASURED, NOT_MEASURED),
    ]  # fmt: skip


def _grows(horizons: Sequence[float]) -> str:
    if not horizons:
        return NOT_MEASURED
    return direction(18, {"mean": horizons[-1] - horizons[0], "low": None, "high": None})
