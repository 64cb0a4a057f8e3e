"""How training went: pure functions of the probe's success and the rows of metrics/grpo.jsonl.

The probe is success s_k on one fixed validation set. Success in training would compare each run
with its own horizon, difficulty and users. Where there was no gain, most of this is undefined.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from progrl.evaluation.statistics import Interval, chi_square_quantile

THRESHOLD = 0.9
"""Share of the gain at which the threshold lies."""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Probe:
    """The probes of a run, the one before training first.

    Attributes:
        steps: training steps done.
        success: s_k, in [0, 1].
        episodes, tokens: trained on and sampled so far.
        kl: sum of the steps' KL between the policy before and after an update.
    """

    steps: tuple[int, ...]
    success: tuple[float, ...]
    episodes: tuple[int, ...]
    tokens: tuple[int, ...]
    kl: tuple[float, ...]


def read_probe(rows: Rows) -> Probe:
    """The probes in the rows of a run.

    A step's KL is an estimate from samples and can fall below 0, where it counts as 0.
    """
    points = []
    episodes = tokens = 0
    kl = 0.0
    for row in rows:
        episodes += row.get("episodes") or 0
        tokens += row.get("tokens_sampled") or 0
        kl += max(0.0, row.get("kl") or 0.0)
        if row.get("probe") is not None:
            points.append((row["step"], row["probe"], episodes, tokens, kl))
    columns = zip(*points, strict=True) if points else [()] * 5
    return Probe(*(tuple(column) for column in columns))


def learning_efficiency(success: Sequence[float], reference: float) -> float | None:
    """(mean_k s_k - s_0) / (s_ref - s_0): the area under the curve as a share of the best.

    At most 1 where no probe exceeds the reference; negative where the run fell below its start.
    None with fewer than two probes, or where the reference is no gain.

    Args:
        success: s_k, s_0 included.
        reference: s_ref, common to all runs that are compared.
    """
    if len(success) < 2 or reference <= success[0]:
        return None
    return (fmean(success) - success[0]) / (reference - success[0])


def threshold(start: float, final: float, share: float = THRESHOLD) -> float | None:
    """s_0 + share * (s_final - s_0), in [0, 1], with the final success of the run to compare to.

    None where that run gained nothing.
    """
    return start + share * (final - start) if final > start else None


@dataclass(frozen=True, slots=True)
class Cost:
    """What it cost to reach a threshold.

    Attributes:
        spent: episodes, tokens or seconds at the first probe that reached it; of a run that never
            did, its whole budget, which is a lower bound.
        budget: of the whole run.
        censored: the threshold was not reached.
    """

    spent: float
    budget: float
    censored: bool

    @property
    def saved(self) -> float | None:
        """1 - spent / budget, in [0, 1]; None where the threshold was not reached."""
        return None if self.censored or not self.budget else 1 - self.spent / self.budget

    def ratio(self, full: "Cost") -> float | None:
        """spent / full's spent, above 0; None where either was not reached, or full's was free."""
        return None if self.censored or full.censored or not full.spent else self.spent / full.spent


def cost_to(level: float | None, success: Sequence[float], spent: Sequence[float]) -> Cost | None:
    """The cost up to the first probe with s_k >= level.

    None where the level is undefined (see `threshold`) or there is no probe.

    Args:
        spent: at each probe, summed from the start: episodes, tokens or seconds.
    """
    if level is None or not success:
        return None
    reached = [cost for s, cost in zip(success, spent, strict=True) if s >= level]
    return Cost((reached or spent[-1:])[0], spent[-1], not reached)


def isotonic(values: Sequence[float]) -> NDArray[np.float64]:
    """The non-decreasing sequence nearest to `values` in squares: pooling adjacent violators."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        mean, size = float(value), 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    return np.repeat([mean for mean, _ in blocks], [size for _, size in blocks])


def stability(success: Sequence[float], reference: float, tasks: int) -> float | None:
    """1 - sd / (s_ref - s_0), at most 1, with sd the spread about the run's isotonic fit f.

    sd^2 = max(0, mean_k (s_k - f_k)^2 - mean_k f_k (1 - f_k) / tasks): what probes of that many
    independent tasks would differ by anyway is no instability. The same tasks at each probe differ
    by less, so this is the lenient side.

    None with fewer than three probes, or where there was no gain: neither of the reference over the
    start, nor of the run itself. A policy that never moves is not called stable.
    """
    if len(success) < 3 or reference <= success[0] or success[-1] <= success[0]:
        return None
    fit = isotonic(success)
    noise = float(np.mean(fit * (1 - fit))) / tasks
    variance = max(0.0, float(np.mean((np.asarray(success) - fit) ** 2)) - noise)
    return 1 - math.sqrt(variance) / (reference - success[0])


def performance_variance(finals: Sequence[float], tasks: int, confidence: float) -> Interval | None:
    """Standard deviation of final success over seeds, sampling noise subtracted; at least 0.

    sqrt(max(0, v - mean_i p_i (1 - p_i) / tasks)), v the sample's variance; its bounds are those of
    the chi-square interval of v, ((n - 1) v / q), with the same noise subtracted. None with fewer
    than two seeds.

    Args:
        finals: p_i, the final success of each seed.
        tasks: that each was measured on.
    """
    if len(finals) < 2:
        return None
    values = np.asarray(finals, np.float64)
    freedom, variance = len(values) - 1, float(values.var(ddof=1))
    noise = float(np.mean(values * (1 - values))) / tasks
    tail = (1 - confidence) / 2
    high, low = (freedom * variance / chi_square_quantile(q, freedom) for q in (tail, 1 - tail))
    mean, low, high = (math.sqrt(max(0.0, v - noise)) for v in (variance, low, high))
    return Interval(mean, low, high, len(values))


def gain_at(probe: Probe, budget: float) -> float | None:
    """Success gained, s - s_0, where the cumulative KL reaches `budget`; in [-1, 1].

    Between probes success is taken to be linear in KL. None where the run's KL ends earlier, or
    nothing moved at all.
    """
    if not probe.kl or not 0 < budget <= probe.kl[-1]:
        return None
    return float(np.interp(budget, probe.kl, probe.success)) - probe.success[0]


def optimisation_efficiency(run: Probe, full: Probe) -> float | None:
    """Gain at a common budget of cumulative KL, run minus full; in [-2, 2].

    The budget is the smaller of both totals. None where either policy never moved.
    """
    if not run.kl or not full.kl:
        return None
    budget = min(run.kl[-1], full.kl[-1])
    own, other = gain_at(run, budget), gain_at(full, budget)
    return None if own is None or other is None else own - other


def branch_shares(rows: Rows) -> dict[str, float] | None:
    """Share of steps by branch of the horizon's schedule, the commonest first; they sum to 1.

    None where no row names a branch.
    """
    counts = Counter(str(row["branch"]) for row in rows if row.get("branch") is not None)
    if not counts:
        return None
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {name: count / counts.total() for name, count in ranked}


def mean_of(rows: Iterable[Mapping[str, Any]], key: str) -> float | None:
    """The mean of a row's figure over the steps that have it (policy deviation: `kl`)."""
    values = [row[key] for row in rows if row.get(key) is not None]
    return fmean(values) if values else None


def smoothed(
    values: Sequence[float], width: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A curve smoothed by a Gaussian of `width` steps, and the deviation about it, [n] each.

    Weights w_ij = exp(-(i - j)^2 / 2 width^2), normalised for each i, so that the ends are not
    drawn towards 0. The smooth lies within the values' bounds; the deviation is at least 0.
    """
    array = np.asarray(values, np.float64)
    at = np.arange(len(array))
    weights = np.exp(-((at[:, None] - at[None, :]) ** 2) / (2 * width**2))
    weights /= weights.sum(axis=1, keepdims=True)
    mean = weights @ array
    spread = np.sqrt((weights * (array[None, :] - mean[:, None]) ** 2).sum(axis=1))
    return mean, spread
