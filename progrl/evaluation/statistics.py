"""Intervals and tests: pure functions of numbers, deterministic for a seed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with the bounds of its confidence interval, over `n` independent units."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def excludes_zero(self) -> bool:
        """0 lies outside of the interval."""
        return self.low > 0 or self.high < 0


def _bootstrap(
    values: NDArray[np.float64], confidence: float, resamples: int, seed: int
) -> Interval:
    """Percentile bootstrap of the mean of `values` [n].

    Resampling n values with replacement is drawing how often each distinct value comes, so one
    multinomial draw a resample gives the same distribution at a fraction of the work.
    """
    distinct, counts = np.unique(values, return_counts=True)
    draws = np.random.default_rng(seed).multinomial(
        len(values), counts / len(values), size=resamples
    )
    means = draws @ distinct / len(values)
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(values.mean()), float(low), float(high), len(values))


def _array(values: Sequence[float]) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise ValueError("an interval needs at least one value")
    if not np.isfinite(array).all():
        raise ValueError("an interval needs finite values")
    return array


def task_means(groups: Sequence[Sequence[float]]) -> list[float]:
    """The mean over a task's trials, for each task that has any."""
    return [math.fsum(group) / len(group) for group in groups if len(group)]


def mean_interval(
    groups: Sequence[Sequence[float]], confidence: float, resamples: int, seed: int
) -> Interval:
    """Mean over tasks of the mean over a task's trials, with a bootstrap interval over tasks.

    Trials of a task are not independent of each other, so tasks are resampled, never trials.

    Args:
        groups: the values of each task's trials.
        confidence: of the interval, in (0, 1).
        resamples: number of bootstrap samples.
        seed: of the resampling.

    Raises:
        ValueError: no task has a value.
    """
    return _bootstrap(_array(task_means(groups)), confidence, resamples, seed)


def proportion_interval(
    groups: Sequence[Sequence[float]], confidence: float, resamples: int, seed: int
) -> Interval:
    """As `mean_interval`, for values 0 and 1.

    Where no task has more than one trial it is Wilson's score interval, and so it is where all
    task means are equal: the bootstrap of equal values has no width, though they are a sample.

    Raises:
        ValueError: no task has a value.
    """
    means = _array(task_means(groups))
    if all(len(group) <= 1 for group in groups) or np.ptp(means) == 0:
        return wilson(float(means.sum()), len(means), confidence)
    return _bootstrap(means, confidence, resamples, seed)


def ratio_interval(
    groups: Sequence[Sequence[tuple[int, int]]], confidence: float, resamples: int, seed: int
) -> Interval:
    """Cases of a kind over all cases, with a bootstrap interval over tasks.

    sum part / sum of, so a task counts by its number of cases. Where all tasks have the same share
    it is Wilson's interval over as many cases as there are tasks: cases of a task depend on each
    other, and the bootstrap of equal values has no width.

    Args:
        groups: for each task the (part, of) of its trials.

    Raises:
        ValueError: no task has a case.
    """
    sums = [(sum(p for p, _ in group), sum(of for _, of in group)) for group in groups]
    counts = np.array([pair for pair in sums if pair[1]], np.float64).reshape(-1, 2)
    if not len(counts):
        raise ValueError("a ratio needs at least one case")
    part, of = counts.T
    mean = float(part.sum() / of.sum())
    if np.ptp(part / of) == 0:
        return wilson(mean * len(counts), len(counts), confidence)
    draws = np.random.default_rng(seed).multinomial(
        len(counts), np.full(len(counts), 1 / len(counts)), size=resamples
    )
    tail = (1 - confidence) / 2
    low, high = np.quantile((draws @ part) / (draws @ of), [tail, 1 - tail])
    return Interval(mean, float(low), float(high), len(counts))


def wilson(successes: float, n: int, confidence: float) -> Interval:
    """Wilson's score interval of a proportion.

    (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), with p = successes / n.

    Raises:
        ValueError: n is 0, or successes lie outside of [0, n].
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} are no proportion")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p = successes / n
    centre = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # The bounds meet p exactly at 0 and 1; rounding must not put p outside of them.
    low = min(max(0.0, (centre - spread) / scale), p)
    high = max(min(1.0, (centre + spread) / scale), p)
    return Interval(p, low, high, n)


def paired_difference(
    a: Sequence[float], b: Sequence[float], confidence: float, resamples: int, seed: int
) -> Interval:
    """Mean of a - b over tasks, with a bootstrap interval over the tasks' differences.

    Args:
        a: one value a task.
        b: one value a task, of the same tasks in the same order.
        confidence: of the interval, in (0, 1).
        resamples: number of bootstrap samples.
        seed: of the resampling.

    Raises:
        ValueError: the two differ in length, or are empty.
    """
    if len(a) != len(b):
        raise ValueError(f"pairs need equally many values, not {len(a)} and {len(b)}")
    return _bootstrap(_array(a) - _array(b), confidence, resamples, seed)


def t_interval(values: Sequence[float], confidence: float) -> Interval:
    """Mean of a few independent values (seeds), with Student's t interval.

    mean +- t_{(1+confidence)/2, n-1} * s / sqrt(n), s the sample's standard deviation.

    Raises:
        ValueError: there are fewer than two values: their spread is then undefined.
    """
    array = _array(values)
    if len(array) < 2:
        raise ValueError("a t interval needs at least two values")
    mean = float(array.mean())
    half = t_quantile((1 + confidence) / 2, len(array) - 1) * float(array.std(ddof=1))
    half /= math.sqrt(len(array))
    return Interval(mean, mean - half, mean + half, len(array))


def t_probability(t: float, df: int) -> float:
    """P(T <= t) for Student's t with `df` degrees of freedom: the finite sums for whole df.

    With theta = atan(t / sqrt(df)): for odd df the two-sided probability is
    2/pi (theta + sin cos (1 + 2/3 cos^2 + 2*4/(3*5) cos^4 + ...)), for even df it is
    sin (1 + 1/2 cos^2 + 1*3/(2*4) cos^4 + ...).
    """
    if df < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    theta = math.atan2(t, math.sqrt(df))
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = df % 2
    term, total = 1.0, 0.0
    for k in range(odd, df - 1, 2):
        total += term
        term *= (k + 1) / (k + 2) * cosine * cosine
    both = (theta + sine * cosine * total) * 2 / math.pi if odd else sine * total
    return (1 + both) / 2


def t_quantile(probability: float, df: int) -> float:
    """The t for which `t_probability` is `probability`, by bisection."""
    if not 0 < probability < 1:
        raise ValueError("a quantile's probability lies between 0 and 1")
    if probability < 0.5:
        return -t_quantile(1 - probability, df)
    return _bisect(lambda t: t_probability(t, df), probability)


def _bisect(distribution: Callable[[float], float], probability: float) -> float:
    """The x >= 0 at which a distribution function reaches a probability."""
    high = 1.0
    while distribution(high) < probability:
        high *= 2
    low = 0.0
    while (middle := (low + high) / 2) not in (low, high):
        if distribution(middle) < probability:
            low = middle
        else:
            high = middle
    return high


def chi_square_probability(x: float, df: int) -> float:
    """P(X <= x) for chi-square with `df` degrees of freedom: the finite sums for whole df.

    With y = x / 2: 1 - exp(-y) sum_{j < df/2} y^j / j! for even df; for odd df
    erf(sqrt(y)) - exp(-y) sum_{j=1}^{(df-1)/2} y^(j-1/2) / Gamma(j + 1/2).
    """
    if df < 1 or x < 0:
        raise ValueError("chi-square needs at least one degree of freedom and no negative value")
    y = x / 2
    if y == 0:
        return 0.0
    shift = 0.5 if df % 2 else 0.0
    tail = math.fsum(
        math.exp((j + shift) * math.log(y) - y - math.lgamma(j + shift + 1)) for j in range(df // 2)
    )
    return (math.erf(math.sqrt(y)) if df % 2 else 1.0) - tail


def chi_square_quantile(probability: float, df: int) -> float:
    """The x for which `chi_square_probability` is `probability`, by bisection."""
    if not 0 < probability < 1:
        raise ValueError("a quantile's probability lies between 0 and 1")
    return _bisect(lambda x: chi_square_probability(x, df), probability)


def t_test(values: Sequence[float]) -> float:
    """Two-sided p of the hypothesis that the values' mean is 0.

    Raises:
        ValueError: there are fewer than two values.
    """
    array = _array(values)
    if len(array) < 2:
        raise ValueError("a t test needs at least two values")
    mean, deviation = float(array.mean()), float(array.std(ddof=1))
    if deviation == 0:
        return 1.0 if mean == 0 else 0.0
    return 2 * t_probability(-abs(mean) * math.sqrt(len(array)) / deviation, len(array) - 1)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's adjusted p-values: the i-th smallest (from 0) of m times m - i, made monotone.

    Rejecting all that stay below alpha keeps the chance of any false rejection below alpha.
    """
    adjusted: dict[str, float] = {}
    highest = 0.0
    ranked = sorted(p_values.items(), key=lambda item: (item[1], item[0]))
    for i, (name, p) in enumerate(ranked):
        highest = min(1.0, max(highest, (len(ranked) - i) * p))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


def pass_hat_k(successes: int, n: int, k: int) -> float:
    """pass^k of one task: the chance that k trials all succeed, unbiased from n trials.

    C(c, k) / C(n, k), for c successes.

    Raises:
        ValueError: k is not in 1..n, or successes not in 0..n.
    """
    if not 1 <= k <= n or not 0 <= successes <= n:
        raise ValueError(f"pass^{k} is undefined for {successes} successes of {n} trials")
    return math.comb(successes, k) / math.comb(n, k)
