"""The paper's own figures, and whether ours point the same way.

`paper.json` restates all figures that PMT's text gives, its contradictions too; cells of its tables
that the text leaves out stay empty. Nothing here was measured by us.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from progrl.reporting.tables import UNDEFINED, interval

Figure = Mapping[str, Any]
NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of the paper's statements beside ours.

    Attributes:
        what: it is about.
        paper: its figure, as shown.
        ours: our figure, as shown.
        direction: whether both point the same way, in words.
    """

    what: str
    paper: str
    ours: str
    direction: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of the paper's full method, and of a variant if it gives one; in percent.

    Attributes:
        table: where it stands.
        metric: its name.
        variant: our preset that comes nearest, "" if there is none.
        ours: the name under which we measure it.
    """

    table: int
    metric: str
    variant: str
    full: float
    other: float | None
    ours: str


@cache
def paper() -> Mapping[str, Any]:
    """The content of paper.json."""
    text = files("progrl.reporting").joinpath("paper.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


@cache
def pairs() -> tuple[Pair, ...]:
    """All pairs, in the order of the tables."""
    return tuple(Pair(**pair) for pair in paper()["pairs"])


def direction(stated: float, ours: Figure | None) -> str:
    """Whether our difference has the sign of the paper's, and whether its interval excludes 0.

    Args:
        stated: the paper's difference; its sign counts alone.
        ours: a figure with mean, low and high; None or without a mean it was not measured.
    """
    if ours is None or ours["mean"] is None:
        return NOT_MEASURED
    if ours["mean"] == 0:
        return "no difference"
    word = "same" if (ours["mean"] > 0) == (stated > 0) else "opposite"
    low, high = ours["low"], ours["high"]
    if low is None or high is None:
        return f"{word}, without an interval"
    return word if low > 0 or high < 0 else f"{word}, undecided"


def shown(figure: Figure | None, signed: bool = False) -> str:
    """A figure of ours as text: what was never measured, and what is undefined, says so."""
    if figure is None:
        return NOT_MEASURED
    return UNDEFINED if figure["mean"] is None else interval(figure, 2, signed)


def percent(value: float | None) -> str:
    """A figure of the paper; "" where it gives none."""
    return "" if value is None else f"{value:g}%"


def measured(
    ablations: Mapping[str, Any] | None, headline: Mapping[str, Any], variant: str, name: str
) -> Figure | None:
    """Our figure of a variant, from the sweep; None where there is none.

    Without a sweep that shows `full`, its figures are those of the agent `grpo` in the headline
    evaluation. Rows of fewer seeds than a row needs are not shown.

    Args:
        name: as in `Pair.ours`.
    """
    told = row(ablations, variant)
    if told is not None and ablations is not None:
        return _of_variant(told, str(ablations["benchmark"]), name)
    return _of_run(headline, name) if variant == "full" else None


def row(ablations: Mapping[str, Any] | None, variant: str) -> Mapping[str, Any] | None:
    """A variant's row of the sweep, if it ran and has enough seeds to be shown."""
    told: Mapping[str, Any] | None = (ablations or {}).get("variants", {}).get(variant)
    return told if told is not None and told.get("shown") else None


def _of_variant(told: Mapping[str, Any], benchmark: str, name: str) -> Figure | None:
    match name:
        case "episodes_saved" | "tokens_saved":
            saved: Figure = told["to_threshold"][name.partition("_")[0]]["saved"]
            return saved
        case "retention":
            return _retention(told["success"], told["held_out"])
        case "optimisation_efficiency":
            return None  # defined as a difference alone
    found: Figure | None = told["metrics"][benchmark].get(name, told.get(name))
    return found


def _of_run(headline: Mapping[str, Any], name: str) -> Figure | None:
    train, *others = headline["benchmarks"].values()
    if name == "held_out":
        return others[0]["agents"]["grpo"]["success"] if others else None
    key = {"goal_change": "goal_change_success"}.get(name, name)
    found: Figure | None = train["agents"]["grpo"].get(key)
    return found


def _retention(success: Figure, held_out: Figure | None) -> Figure | None:
    """Held-out by training-domain success, where the latter's lower bound exceeds 0.2."""
    if held_out is None or held_out["mean"] is None or (success["low"] or 0.0) <= 0.2:
        return None
    return {"mean": held_out["mean"] / success["mean"], "low": None, "high": None}


def minus_full(
    ablations: Mapping[str, Any] | None, headline: Mapping[str, Any], variant: str, name: str
) -> Figure | None:
    """Our difference of a variant to `full`: paired where the sweep has it so, else of the means.

    None where either is missing.
    """
    told = row(ablations, variant)
    if told is None:
        return None
    differences = told.get("differences", {})
    paired: Figure | None = told[name] if name == "optimisation_efficiency" else None
    paired = paired or differences.get(name)
    if paired is not None:
        return paired
    own = measured(ablations, headline, variant, name)
    full = measured(ablations, headline, "full", name)
    if own is None or full is None or own["mean"] is None or full["mean"] is None:
        return None
    return {"mean": own["mean"] - full["mean"], "low": None, "high": None}


def compare(
    ablations: Mapping[str, Any] | None, headline: Mapping[str, Any], *pairs_shown: Pair
) -> list[Comparison]:
    """The paper's pairs beside our differences."""
    made = []
    for pair in pairs_shown:
        if pair.other is None:
            ours = shown(measured(ablations, headline, "full", pair.ours))
            made.append(Comparison(pair.metric, percent(pair.full), ours, "no comparison given"))
            continue
        difference = minus_full(ablations, headline, pair.variant, pair.ours)
        stated = f"{percent(pair.full)} → {percent(pair.other)}"
        what = f"{pair.metric}, full → {pair.variant.replace('_', ' ')}"
        told = shown(difference, signed=True)
        made.append(Comparison(what, stated, told, direction(pair.other - pair.full, difference)))
    return made
