"""What each part is worth: the table of a sweep, variant by variant against `full`.

Pairs are of one seed, whose variants share a warm start, and within it of one task. Intervals are
Student's over seeds. A verdict needs `FOR_VERDICT` seeds; the four primaries of a variant share one
error rate by Holm's correction.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from progrl.config.presets import FULL
from progrl.evaluation.comparison import paired
from progrl.evaluation.dynamics import (
    Cost,
    branch_shares,
    cost_to,
    learning_efficiency,
    mean_of,
    optimisation_efficiency,
    performance_variance,
    stability,
    threshold,
)
from progrl.evaluation.metrics import Value, goal_change_success, success
from progrl.evaluation.seeds import merge, over_seeds
from progrl.evaluation.statistics import holm, t_test
from progrl.evaluation.sweep import AGENT, Cell, SweepResults, mean_over

FOR_ROW, FOR_VERDICT = 3, 8
"""Seeds below which a row is not to be shown, and below which nothing is decided."""

PRIMARIES = ("success", "held_out", "goal_change", "probe_area")
"""Named before any sweep: success on the training domain, on the held-out domain, on tasks whose
goal changes, and the mean of the probe over training."""

SECONDARY = (
    "reward", "progress", "turns", "tool_calls", "failed_calls", "policy_kept", "satisfaction",
    "early_leave", "recovery", "coherence", "changed_calls", "selection_accuracy",
    "tool_consistency", "effective_turns", "time_weighted",
)  # fmt: skip
"""Of the evaluation, by benchmark, without a difference or a verdict."""

REFERENCES = ("do_nothing", "expert", "untrained", "sft")

Figure = dict[str, Any]
Difference = Callable[[Cell, Cell], float | None]


def ablations(sweep: SweepResults, confidence: float) -> dict[str, Any]:
    """The content of metrics/ablations.json.

    Args:
        confidence: of all intervals and verdicts.
    """
    domains = sweep.base["domains"]
    benchmarks, held_out = tuple(domains["train"]), tuple(domains["held_out"])
    full = {cell.seed: cell for cell in sweep.cells.get(FULL, ())}
    reference = _reference(sweep)
    variants: dict[str, Any] = {}
    for name, told in sweep.settings["variants"].items():
        described = {key: told[key] for key in ("about", "claim", "expect") if told.get(key)}
        if told.get("not_applicable"):
            variants[name] = {**described, "not_applicable": told["not_applicable"]}
            continue
        cells = sweep.cells.get(name, ())
        row = _Row(cells, full, benchmarks, held_out, confidence)
        compared = {} if name == FULL else row.compared(told["expect"])
        variants[name] = {
            **described,
            "changes": told["changes"],
            "seeds": [cell.seed for cell in cells],
            "failed": dict(sweep.failed.get(name, {})),
            "shown": len(cells) >= FOR_ROW,
            **row.outcome(),
            **compared,
            **row.training(reference, sweep.base["grpo"]["probe_tasks"]),
        }
    return {
        "sweep": sweep.settings["name"],
        "profile": sweep.settings["profile"],
        "benchmark": joint(benchmarks),
        "held_out": joint(held_out) or None,
        "confidence": confidence,
        "primaries": [name for name in PRIMARIES if held_out or name != "held_out"],
        "seeds_for_verdict": FOR_VERDICT,
        "reference": reference,
        "agents": {
            agent: over_seeds(
                [c.mean(benchmarks, "success", agent) for c in full.values()], confidence
            )
            for agent in REFERENCES
        },
        "advice": merge([cell.summary.get("advice") for cell in full.values()], confidence),
        "variants": variants,
        "paper": {n: t["paper"] for n, t in sweep.settings["variants"].items() if t.get("paper")},
    }


def _reference(sweep: SweepResults) -> Figure | None:
    """s_ref: the best final success on the probe of any variant, a mean over its seeds."""
    finals = {
        name: fmean(ends)
        for name, cells in sweep.cells.items()
        if (ends := [cell.probe.success[-1] for cell in cells if cell.probe.success])
    }
    if not finals:
        return None
    best = max(finals, key=lambda name: finals[name])
    return {"variant": best, "probe": finals[best]}


class _Row:
    """One variant's cells beside those of `full`, by seed."""

    def __init__(
        self,
        cells: Sequence[Cell],
        full: Mapping[int, Cell],
        benchmarks: Sequence[str],
        held_out: Sequence[str],
        confidence: float,
    ) -> None:
        self.cells, self.full, self.confidence = cells, full, confidence
        self.benchmarks, self.held_out = benchmarks, held_out
        self.pairs = [(cell, full[cell.seed]) for cell in cells if cell.seed in full]

    def outcome(self) -> dict[str, Any]:
        """Success and the other figures of the evaluation."""
        parts = [self.benchmarks, *([self.held_out] if self.held_out else [])]
        parts += [(name,) for names in parts if len(names) > 1 for name in names]
        metrics = {joint(names): {m: self._mean(names, m) for m in SECONDARY} for names in parts}
        return {
            "success": self._mean(self.benchmarks, "success"),
            "success_by_seed": [c.mean(self.benchmarks, "success") for c in self.cells],
            "results_by_seed": [cell.digest for cell in self.cells],
            "held_out": self._mean(self.held_out, "success") if self.held_out else None,
            "goal_change": self._mean(self.benchmarks, "goal_change_success"),
            "metrics": metrics,
            "episodes": _mean(cell.spent("episodes") for cell in self.cells),
            "tokens": _mean(cell.spent("tokens_sampled") for cell in self.cells),
        }

    def compared(self, expect: str) -> dict[str, Any]:
        """Differences to `full` in the primaries, with verdicts on the variant's claim."""
        measures: dict[str, Difference] = {
            "success": lambda a, b: task_paired(a, b, self.benchmarks, success),
            "goal_change": lambda a, b: task_paired(a, b, self.benchmarks, goal_change_success),
            "probe_area": lambda a, b: _less(_area(a), _area(b)),
        }
        if self.held_out:
            measures["held_out"] = lambda a, b: task_paired(a, b, self.held_out, success)
        by_seed = {
            name: self._differences(measures[name]) for name in PRIMARIES if name in measures
        }
        tests = {name: t_test(d) for name, d in by_seed.items() if len(d) > 1}
        adjusted = holm(tests)
        rows = {}
        for name, values in by_seed.items():
            figure = over_seeds(values, self.confidence)
            p = adjusted.get(name)
            rows[name] = {
                **figure,
                "p": tests.get(name),
                "holm": p,
                "verdict": verdict(figure, p, self.confidence, expect),
            }
        return {
            "minus_full": {key: rows["success"][key] for key in ("mean", "low", "high", "seeds")},
            "verdict": rows["success"]["verdict"],
            "differences": rows,
            "probe_at_equal_tokens_minus_full": self._over(at_equal_tokens),
        }

    def training(self, reference: Figure | None, tasks: int) -> dict[str, Any]:
        """How training went, by the probe and by the rows of the steps."""
        best = reference["probe"] if reference else 0.0
        probes = [cell.probe for cell in self.cells]
        finals = [f for c in self.cells if (f := c.mean(self.benchmarks, "success")) is not None]
        counts = {sum(len(c.results[b][AGENT]) for b in self.benchmarks) for c in self.cells}
        spread = performance_variance(finals, min(counts), self.confidence) if counts else None
        return {
            "probe": {
                "start": self._figure(p.success[0] if p.success else None for p in probes),
                "final": self._figure(p.success[-1] if p.success else None for p in probes),
                "area": self._figure(_area(cell) for cell in self.cells),
            },
            "learning_efficiency": self._figure(
                learning_efficiency(p.success, best) for p in probes
            ),
            "stability": self._figure(stability(p.success, best, tasks) for p in probes),
            "to_threshold": {key: self._cost(key) for key in ("episodes", "tokens")},
            "optimisation_efficiency": self._over(
                lambda a, b: optimisation_efficiency(a.probe, b.probe)
            ),
            "performance_variance": None
            if spread is None
            else {"mean": spread.mean, "low": spread.low, "high": spread.high, "seeds": spread.n},
            "branches": _mean_shares([branch_shares(cell.rows) for cell in self.cells]),
            "policy_deviation": self._figure(mean_of(cell.rows, "kl") for cell in self.cells),
            "gradient_norm": self._figure(mean_of(c.rows, "gradient_norm") for c in self.cells),
        }

    def _mean(self, benchmarks: Sequence[str], metric: str) -> Figure:
        return self._figure(cell.mean(benchmarks, metric) for cell in self.cells)

    def _figure(self, values: Any) -> Figure:
        return over_seeds(list(values), self.confidence)

    def _differences(self, measure: Difference) -> list[float]:
        values = [measure(cell, full) for cell, full in self.pairs]
        return [value for value in values if value is not None]

    def _over(self, measure: Difference) -> Figure:
        return over_seeds(self._differences(measure), self.confidence)

    def _cost(self, key: str) -> Figure:
        """Cost to the threshold of the seed's `full`; runs that missed it count as censored.

        `spent` is a lower bound where any is censored; `saved` is over those that reached it.
        """
        costs: list[Cost] = []
        for cell, full in self.pairs:
            own, other = cell.probe, full.probe
            level = threshold(other.success[0], other.success[-1]) if other.success else None
            cost = cost_to(level, own.success, getattr(own, key))
            costs += [cost] if cost else []
        return {
            "spent": over_seeds([cost.spent for cost in costs], self.confidence),
            "saved": over_seeds([cost.saved for cost in costs], self.confidence),
            "censored": sum(cost.censored for cost in costs),
        }


def joint(benchmarks: Sequence[str]) -> str:
    """The name under which several benchmarks' figures stand together."""
    return " + ".join(benchmarks)


def task_paired(a: Cell, b: Cell, benchmarks: Sequence[str], value: Value) -> float | None:
    """The mean over common tasks of a - b, in [-1, 1], and over benchmarks with such a task; None
    where none has one."""

    def of(benchmark: str) -> float | None:
        own, other = paired(a.results[benchmark][AGENT], b.results[benchmark][AGENT], value)
        return fmean(x - y for x, y in zip(own, other, strict=True)) if own else None

    return mean_over(map(of, benchmarks))


def at_equal_tokens(a: Cell, b: Cell) -> float | None:
    """The probe's success of a - b after as many sampled tokens as the thriftier of both had.

    Between probes success is taken to be linear in tokens. None without probes or tokens.
    """
    own, other = a.probe, b.probe
    if not own.tokens or not other.tokens:
        return None
    budget = min(own.tokens[-1], other.tokens[-1])
    reached = [float(np.interp(budget, run.tokens, run.success)) for run in (own, other)]
    return reached[0] - reached[1] if budget else None


def verdict(difference: Figure, p: float | None, confidence: float, expect: str) -> str:
    """`holds`, `fails` or `undecided`.

    It holds where the variant differs from `full` as the claim expects, and fails where it differs
    the other way: Holm's p below 1 - confidence. With too few seeds nothing is decided.

    Args:
        expect: where the variant lies if the claim holds, `below` or `above`.
    """
    if p is None or difference["seeds"] < FOR_VERDICT or p + confidence >= 1:
        return "undecided"
    return "holds" if (difference["mean"] < 0) == (expect == "below") else "fails"


def _area(cell: Cell) -> float | None:
    points = cell.probe.success
    return fmean(points) if points else None


def _less(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _mean(values: Any) -> float | None:
    found = list(values)
    return fmean(found) if found else None


def _mean_shares(shares: Sequence[Mapping[str, float] | None]) -> dict[str, float] | None:
    """The mean over seeds of each branch's share; a branch that a seed never took counts as 0."""
    known = [share for share in shares if share]
    names = sorted({name for share in known for name in share})
    return {n: fmean(share.get(n, 0.0) for share in known) for n in names} if known else None
