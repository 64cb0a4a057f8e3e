"""From results to the figures of a benchmark, each with interval, episodes and seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from progrl.config.models import EvaluationConfig
from progrl.evaluation.comparison import difference
from progrl.evaluation.interaction import Ratio
from progrl.evaluation.metrics import (
    MEANS,
    PROPORTIONS,
    SHARES,
    Result,
    Value,
    by_task,
    end_shares,
    pass_k,
    success,
    tool_calls,
    tool_consistency,
)
from progrl.evaluation.statistics import (
    Interval,
    mean_interval,
    proportion_interval,
    ratio_interval,
)
from progrl.evaluation.tools import retention, tool_efficiency

Figure = dict[str, float | int | None]
Summary = dict[str, Any]
LABEL = "one seed; interval over tasks"
DIFFERENCES = {"grpo_minus_sft": ("grpo", "sft"), "sft_minus_untrained": ("sft", "untrained")}
"""Differences in success that a benchmark's summary holds, where it has both agents."""


def figure(interval: Interval | None, episodes: int) -> Figure:
    """A figure as it is written; undefined is null, never 0."""
    return {
        "mean": interval.mean if interval else None,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "episodes": episodes,
        "seeds": 1,
    }


@dataclass(frozen=True, slots=True)
class Summariser:
    """Sums up one seed's results.

    Attributes:
        confidence: of all intervals.
        resamples: of bootstraps.
        seed: of bootstraps.
    """

    confidence: float
    resamples: int
    seed: int

    def benchmark(self, results: Mapping[str, Sequence[Result]]) -> Summary:
        """Figures by agent, success by complexity level and by family, differences."""
        agents = {name: self.agent(rows) for name, rows in results.items()}
        for name, rows in results.items():
            agents[name]["tool_consistency"] = self._consistency(rows, results.get("expert", ()))
        return {
            "agents": agents,
            **{
                name: self._difference(results[a], results[b])
                for name, (a, b) in DIFFERENCES.items()
                if a in results and b in results
            },
            "levels": self._split(results, "level"),
            "families": self._split(results, "family"),
            "tool_efficiency": {
                name: self._tool_efficiency({a: results[a], b: results[b]}, results["expert"])
                for name, (a, b) in DIFFERENCES.items()
                if {a, b, "expert"} <= results.keys()
            },
        }

    def compared(self, results: Mapping[str, Sequence[Result]]) -> Summary:
        """Figures of an agent in several conditions, and the first's success less each other's."""
        first, *others = results
        return {
            "agents": {name: self.agent(rows) for name, rows in results.items()},
            **{
                f"{first}_minus_{other}": self._difference(results[first], results[other])
                for other in others
            },
        }

    def agent(self, results: Sequence[Result]) -> Summary:
        """All figures of one agent."""
        summary: Summary = {
            name: self._figure(results, value, binary=True) for name, value in PROPORTIONS.items()
        }
        for name, value in MEANS.items():
            summary[name] = self._figure(results, value, binary=False)
        for name, share in SHARES.items():
            summary[name] = self._pooled(results, share)
        trials = max((result.trial for result in results), default=0) + 1
        if trials > 1:
            summary["pass_k"] = {str(k): self._pass_k(results, k) for k in range(1, trials + 1)}
        summary["ends"] = end_shares(results)
        summary["faults"] = sum(not result.valid for result in results)
        return summary

    def _figure(self, results: Sequence[Result], value: Value, binary: bool) -> Figure:
        groups = list(by_task(results, value).values())
        if not groups:
            return figure(None, 0)
        interval = proportion_interval if binary else mean_interval
        episodes = sum(len(group) for group in groups)
        return figure(interval(groups, self.confidence, self.resamples, self.seed), episodes)

    def _pooled(self, results: Sequence[Result], share: Callable[[Result], Ratio | None]) -> Figure:
        groups = list(by_task(results, share).values())
        if not groups:
            return figure(None, 0)
        interval = ratio_interval(groups, self.confidence, self.resamples, self.seed)
        return figure(interval, sum(map(len, groups)))

    def _consistency(self, results: Sequence[Result], expert: Sequence[Result]) -> Figure:
        """Without an interval: it is made of pairs of tasks, which are not independent."""
        value = tool_consistency(results, expert)
        first = sum(r.valid and r.trial == 0 for r in results)
        return {**figure(None, first if value is not None else 0), "mean": value}

    def _tool_efficiency(
        self, pair: Mapping[str, Sequence[Result]], expert: Sequence[Result]
    ) -> Summary:
        a, b = (tool_calls(rows) for rows in pair.values())
        values = tool_efficiency(a, b, tool_calls(expert))
        return {
            name: figure(
                mean_interval(list(groups.values()), self.confidence, self.resamples, self.seed)
                if groups
                else None,
                sum(map(len, groups.values())),
            )
            for name, groups in zip(pair, values, strict=True)
        }

    def _pass_k(self, results: Sequence[Result], k: int) -> Figure:
        values = pass_k(results, k)
        if not values:
            return figure(None, 0)
        groups = [[value] for value in values.values()]
        episodes = sum(r.valid and r.task in values for r in results)
        return figure(mean_interval(groups, self.confidence, self.resamples, self.seed), episodes)

    def _difference(self, a: Sequence[Result], b: Sequence[Result]) -> Figure:
        interval = difference(a, b, self.confidence, self.resamples, self.seed)
        written = figure(interval, interval.n if interval else 0)
        return {("tasks" if key == "episodes" else key): n for key, n in written.items()}

    def _split(self, results: Mapping[str, Sequence[Result]], key: str) -> Summary:
        """Success by a property of the task, then by agent."""
        values = sorted({getattr(row, key) for rows in results.values() for row in rows})
        return {
            str(value): {
                name: self._figure(
                    [row for row in rows if getattr(row, key) == value], success, binary=True
                )
                for name, rows in results.items()
            }
            for value in values
        }


def retentions(benchmarks: Mapping[str, Summary], held_out: Sequence[str]) -> Summary:
    """Cross-domain retention of success by held-out benchmark and agent; see `tools.retention`."""
    trained = [name for name in benchmarks if name not in held_out]
    found: Summary = {}
    for name in benchmarks:
        if name in held_out:
            agents = benchmarks[name]["agents"]
            kept = {
                agent: retention(
                    _interval(agents[agent]),
                    [i for t in trained if (i := _interval(benchmarks[t]["agents"][agent]))],
                )
                for agent in agents
            }
            found[name] = {agent: asdict(value) if value else None for agent, value in kept.items()}
    return found


def _interval(agent: Summary) -> Interval | None:
    success = agent["success"]
    if success["mean"] is None:
        return None
    return Interval(success["mean"], success["low"], success["high"], success["episodes"])


def evaluation(
    benchmarks: Mapping[str, Summary],
    config: EvaluationConfig,
    seed: int,
    held_out: Sequence[str] = (),
) -> Summary:
    """One seed's benchmarks as metrics/evaluate.json has them.

    Args:
        held_out: names of the benchmarks whose domain was never trained on.
    """
    return {
        "label": LABEL,
        "seed": seed,
        "confidence": config.confidence,
        "horizon": config.horizon,
        "trials": config.trials,
        "retention": retentions(benchmarks, held_out),
        "benchmarks": dict(benchmarks),
    }
