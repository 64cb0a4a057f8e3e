"""The report's figures, from the rows of metrics/*.jsonl and metrics/evaluate.json."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from progrl.evaluation.dynamics import branch_shares
from progrl.reporting.material import Rows
from progrl.reporting.paper import Comparison
from progrl.reporting.svg import Range, Series, interval_chart, line_chart
from progrl.reporting.tables import agent_name

NO_DATA = "There is no data for this figure."


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its words; `chart` is None where there is nothing to draw.

    Attributes:
        legend: names and colours.
        missing: said in the chart's place.
        wide: it takes the page's whole width, and scrolls in its own box where there is less.
        comparisons: the paper's figures beside ours.
    """

    title: str
    caption: str
    chart: Markup | None
    legend: Sequence[tuple[str, str]] = ()
    missing: str = NO_DATA
    wide: bool = False
    comparisons: Sequence[Comparison] = ()


def _series(rows: Rows, key: str, name: str, colour: str, mark: Any = "line") -> Series:
    return Series(name, colour, [(row["step"], row.get(key)) for row in rows], mark)


def _figure(
    title: str,
    caption: str,
    y_label: str,
    series: Sequence[Series],
    y_range: tuple[float, float] | None = None,
    guides: Sequence[tuple[float, str]] = (),
) -> Figure:
    chart = line_chart(title, "step", y_label, series, y_range, guides)
    drawn = [(s.name, s.colour) for s in series if s.defined]
    return Figure(title, caption, chart, drawn if len(drawn) > 1 else ())


def grpo_figures(rows: Rows) -> list[Figure]:
    """The learning curves of GRPO: what came out of it, then how it was optimised."""
    return [*_outcomes(rows), *_optimisation(rows), *_weights(rows)]


def _outcomes(rows: Rows) -> list[Figure]:
    return [
        _figure(
            "Success",
            "Of the step's episodes and of the window (p_t) within the horizon of the day; the "
            "probe is greedy, on fixed validation tasks with the full horizon.",
            "success",
            [
                _series(rows, "success", "this step", "c-soft"),
                _series(rows, "success_window", "window p_t", "c-1"),
                _series(rows, "probe", "probe", "c-2", "dots"),
            ],
            (0.0, 1.0),
            [(0.8, "0.8"), (0.6, "0.6")],
        ),
        _figure(
            "Horizon",
            "Most agent turns of an episode: the real h, and floor(h), which episodes get.",
            "turns",
            [
                _series(rows, "horizon", "h", "c-soft"),
                _series(rows, "turns", "floor(h)", "c-1", "step"),
            ],
        ),
        _figure(
            "Reward",
            "Mean structured reward of the step's episodes, with its unweighted parts.",
            "reward",
            [
                _series(rows, "reward", "reward", "c-1"),
                _series(rows, "progress", "progress", "c-2"),
                _series(rows, "efficiency", "efficiency", "c-3"),
            ],
        ),
        _figure(
            "Complexity",
            "Mean complexity level of the step's tasks.",
            "level",
            [_series(rows, "level_mean", "mean level", "c-1")],
            (1.0, 5.0),
        ),
    ]


def _optimisation(rows: Rows) -> list[Figure]:
    return [
        _figure(
            "Entropy",
            "Mean entropy of the policy over sampled tokens.",
            "nats a token",
            [_series(rows, "entropy", "entropy", "c-1")],
        ),
        _figure(
            "Groups with a signal",
            "Share of groups whose episodes differ in score; the others teach nothing.",
            "share",
            [Series("groups with a signal", "c-1", [(r["step"], signal_share(r)) for r in rows])],
            (0.0, 1.0),
        ),
        _figure(
            "Gradient norm",
            "Before clipping.",
            "norm",
            [_series(rows, "gradient_norm", "gradient norm", "c-1")],
        ),
        _figure(
            "Clip share",
            "Share of sampled tokens whose ratio was clipped.",
            "share",
            [_series(rows, "clip_share", "clip share", "c-1")],
        ),
    ]


def _weights(rows: Rows) -> list[Figure]:
    """Two figures a domain whose weights were learned; none where they were fixed."""
    domains = sorted({name for row in rows for name in row.get("weights") or {}})
    return [figure for name in domains for figure in (_shares(rows, name), _foresight(rows, name))]


def _within(rows: Rows, key: str, domain: str) -> Rows:
    """Steps with what they say under `key` of a domain."""
    return [{"step": row["step"], **(row.get(key) or {}).get(domain, {})} for row in rows]


def _shares(rows: Rows, domain: str) -> Figure:
    parts = (("task", "c-1"), ("progress", "c-2"), ("efficiency", "c-3"), ("domain", "c-4"))
    told = _within(rows, "weights", domain)
    return _figure(
        f"Learned weights, {domain}",
        "What the reward's components were worth to training, mean over the step's episodes. "
        "'Declared' is r_domain, which the environment declares. Evaluation has the fixed weights.",
        "weight",
        [
            _series(told, part, "declared" if part == "domain" else part, colour)
            for part, colour in parts
        ],
        (0.0, 1.0),
    )


def _foresight(rows: Rows, domain: str) -> Figure:
    told = _within(rows, "calibration", domain)
    return _figure(
        f"Success foreseen, {domain}",
        "Success of the step's episodes beside what was foreseen from a random turn before their "
        "end, by the fit of the steps before; the error is the mean distance of both in ten bins "
        "of probability.",
        "probability",
        [
            _series(told, "observed", "success", "c-1"),
            _series(told, "predicted", "foreseen", "c-2"),
            _series(told, "error", "calibration error", "c-soft"),
        ],
        (0.0, 1.0),
    )


def signal_share(row: Mapping[str, Any]) -> float | None:
    """Share of a step's groups whose episodes differ in score; None where it had no group."""
    groups = row.get("groups")
    if not groups:
        return None
    idle = row.get("groups_zero_variance", 0) + row.get("groups_invalid", 0)
    return float((groups - idle) / groups)


def sft_figures(rows: Rows) -> list[Figure]:
    """The learning curves of the warm start."""
    return [
        _figure(
            "Warm start: loss",
            "Negative log-probability of the expert's tokens. Where a copy warm-up comes first, "
            "its loss is that of repeated random sequences.",
            "nats a token",
            [
                *(
                    Series(
                        "copy warm-up" if phase == "copy" else "training dialogues",
                        "c-soft" if phase == "copy" else "c-1",
                        [(r["step"], r["loss"]) for r in rows if r.get("phase", "sft") == phase],
                    )
                    for phase in ("copy", "sft")
                ),
                _series(rows, "validation_loss", "validation dialogues", "c-2", "dots"),
            ],
        ),
        _figure(
            "Warm start: learning rate",
            "Of AdamW.",
            "rate",
            [_series(rows, "learning_rate", "learning rate", "c-1")],
        ),
    ]


@dataclass(frozen=True, slots=True)
class Branches:
    """How often each branch of the horizon's schedule was taken."""

    shares: Sequence[tuple[str, float, str]]
    sentence: str


def horizon_branches(rows: Rows) -> Branches | None:
    """Shares of training steps by branch, with a colour each; None without rows."""
    found = branch_shares(rows)
    if not found:
        return None
    colours = ("c-1", "c-2", "c-3", "c-4", "c-soft")
    shares = [
        (name, share, colours[i % len(colours)]) for i, (name, share) in enumerate(found.items())
    ]
    updates = [name for name in found if name != "hold"]
    if len(updates) > 1:
        sentence = "The horizon adapted: its speed followed the success rate."
    elif updates:
        sentence = f"The horizon did not adapt: every update took the branch {updates[0]!r}."
    else:
        sentence = "The horizon never moved: too few episodes were counted."
    return Branches(shares, sentence)


def level_figure(benchmark: str, levels: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Success by complexity level and agent, with intervals."""
    rows = [
        (f"level {level}", [_range(agent, figure) for agent, figure in agents.items()])
        for level, agents in levels.items()
    ]
    legend = list(
        dict.fromkeys(
            (agent_name(agent), f"c-{agent}") for agents in levels.values() for agent in agents
        )
    )
    title = f"Success by complexity, {benchmark}"
    return Figure(
        title,
        "The success rate on the tasks of each complexity level, with its interval over tasks.",
        interval_chart(title, "success rate", rows),
        legend,
    )


def _range(agent: str, figure: Mapping[str, Any]) -> Range:
    note = f", {figure['episodes']} episodes"
    bounds = (figure["mean"], figure["low"], figure["high"])
    return Range(agent_name(agent), f"c-{agent}", *bounds, note)
