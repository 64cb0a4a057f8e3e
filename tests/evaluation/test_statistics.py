import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.evaluation.statistics import (
    Interval,
    chi_square_probability,
    chi_square_quantile,
    holm,
    mean_interval,
    paired_difference,
    pass_hat_k,
    proportion_interval,
    ratio_interval,
    t_interval,
    t_probability,
    t_quantile,
    t_test,
    wilson,
)


def test_wilson_by_hand():
    # 8 of 10 at 95%: z = 1.959964, centre 0.71664, half width 0.22666.
    interval = wilson(8, 10, 0.95)
    assert interval.mean == 0.8
    assert interval.low == pytest.approx(0.49016, abs=1e-5)
    assert interval.high == pytest.approx(0.94331, abs=1e-5)


def test_wilson_has_width_at_the_ends():
    none, all_ = wilson(0, 20, 0.95), wilson(20, 20, 0.95)
    assert none.low == 0 and none.high == pytest.approx(0.16113, abs=1e-5)
    assert all_.high == 1 and all_.low == pytest.approx(1 - none.high)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_proportion(case):
    interval = wilson(*case, 0.95)
    assert 0 <= interval.low <= interval.mean <= interval.high <= 1


def test_t_quantiles_of_the_printed_tables():
    table = {1: 12.7062, 2: 4.3027, 4: 2.7764, 7: 2.3646, 30: 2.0423}
    for df, value in table.items():
        assert t_quantile(0.975, df) == pytest.approx(value, abs=5e-5)
        assert t_quantile(0.025, df) == pytest.approx(-value, abs=5e-5)


def test_t_probability_by_hand():
    # One degree of freedom is Cauchy: 1/2 + atan(t)/pi. Two: 1/2 + t / (2 sqrt(2 + t^2)).
    assert t_probability(1.0, 1) == pytest.approx(0.75)
    assert t_probability(2.0, 2) == pytest.approx(0.5 + 1 / math.sqrt(6))
    assert t_probability(0.0, 9) == 0.5


@given(st.floats(0.001, 0.999), st.integers(1, 60))
def test_t_quantile_inverts_the_probability(probability, df):
    assert t_probability(t_quantile(probability, df), df) == pytest.approx(probability, abs=1e-9)


def test_t_interval_by_hand():
    # 0.1, 0.2, 0.3: s = 0.1, half width 4.3027 * 0.1 / sqrt(3).
    interval = t_interval([0.1, 0.2, 0.3], 0.95)
    assert interval.mean == pytest.approx(0.2)
    assert interval.high - interval.mean == pytest.approx(0.24841, abs=1e-5)
    assert not interval.excludes_zero


def test_one_seed_has_no_t_interval():
    with pytest.raises(ValueError, match="two values"):
        t_interval([0.3], 0.95)
    with pytest.raises(ValueError, match="two values"):
        t_test([0.3])


def test_t_test_agrees_with_the_interval():
    values = [0.05, 0.12, 0.02, 0.09]
    p = t_test(values)
    assert t_interval(values, 1 - p).low == pytest.approx(0.0, abs=1e-9)
    assert t_test([0.0, 0.0]) == 1 and t_test([0.1, 0.1]) == 0


def test_holm_by_hand():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx(
        {"a": 0.03, "b": 0.06, "c": 0.06}
    )
    assert holm({"x": 0.7, "y": 0.8}) == {"x": 1.0, "y": 1.0}


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=8))
def test_holm_never_lowers_and_keeps_the_order(p_values):
    adjusted = holm(p_values)
    assert list(adjusted) == list(p_values)
    assert all(p_values[name] <= adjusted[name] <= 1 for name in adjusted)
    ranked = sorted(p_values, key=lambda name: p_values[name])
    assert [adjusted[n] for n in ranked] == sorted(adjusted.values())


def test_pass_hat_k_by_hand():
    # 3 of 4: C(3,2)/C(4,2) = 3/6.
    assert pass_hat_k(3, 4, 1) == 0.75
    assert pass_hat_k(3, 4, 2) == 0.5
    assert pass_hat_k(3, 4, 4) == 0
    with pytest.raises(ValueError, match=r"pass\^5"):
        pass_hat_k(3, 4, 5)


def test_pass_hat_k_is_unbiased():
    # Over all outcomes of n = 5 trials of chance p, its mean is p^k.
    p, n, k = 0.3, 5, 3
    mean = sum(
        math.comb(n, c) * p**c * (1 - p) ** (n - c) * pass_hat_k(c, n, k) for c in range(n + 1)
    )
    assert mean == pytest.approx(p**k)


def test_bootstrap_is_a_function_of_its_seed():
    values = [[float(i % 7)] for i in range(50)]
    first = mean_interval(values, 0.95, 2000, seed=4)
    assert first == mean_interval(values, 0.95, 2000, seed=4)
    assert first != mean_interval(values, 0.95, 2000, seed=5)


def test_bootstrap_width_is_the_normal_one_for_many_values():
    values = [[float(i % 10)] for i in range(400)]
    interval = mean_interval(values, 0.95, 20_000, seed=0)
    half = 1.96 * np.std([v[0] for v in values]) / 20
    assert interval.mean == 4.5
    assert interval.high - interval.low == pytest.approx(2 * half, rel=0.05)


def test_trials_of_a_task_are_one_unit():
    once = [[1.0]] * 10 + [[0.0]] * 10
    eight_times = [group * 8 for group in once]
    assert mean_interval(once, 0.9, 1000, 0) == mean_interval(eight_times, 0.9, 1000, 0)


def test_means_are_over_tasks_where_trials_were_lost():
    assert mean_interval([[1.0, 1.0, 1.0], [0.0], []], 0.95, 200, 0).mean == 0.5


def test_equal_proportions_still_have_a_width():
    assert proportion_interval([[1.0, 1.0]] * 30, 0.95, 200, 0) == wilson(30, 30, 0.95)
    assert proportion_interval([[1.0], [0.0], [1.0]], 0.95, 200, 0) == wilson(2, 3, 0.95)
    mixed = [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 10
    assert proportion_interval(mixed, 0.95, 500, 0) == mean_interval(mixed, 0.95, 500, 0)


def test_paired_difference_uses_the_pairs():
    # a beats b by 0.1 on every task, whatever the task's difficulty.
    b = [i / 100 for i in range(100)]
    a = [value + 0.1 for value in b]
    interval = paired_difference(a, b, 0.95, 1000, 0)
    assert interval.low == pytest.approx(0.1) and interval.high == pytest.approx(0.1)
    assert interval.excludes_zero and interval.n == 100
    unpaired = paired_difference(a, b[::-1], 0.95, 1000, 0)
    assert unpaired.mean == pytest.approx(0.1) and not unpaired.excludes_zero


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
@settings(max_examples=50, deadline=None)
def test_paired_difference_is_antisymmetric_in_mean(pairs):
    a, b = [float(x) for x, _ in pairs], [float(y) for _, y in pairs]
    forth, back = paired_difference(a, b, 0.9, 200, 1), paired_difference(b, a, 0.9, 200, 1)
    assert forth.mean == pytest.approx(-back.mean)
    assert forth.low <= forth.mean + 1e-12 and forth.mean <= forth.high + 1e-12


def test_no_values_and_wrong_values_are_refused():
    with pytest.raises(ValueError, match="at least one"):
        mean_interval([[], []], 0.95, 100, 0)
    with pytest.raises(ValueError, match="equally many"):
        paired_difference([1.0], [1.0, 2.0], 0.95, 100, 0)
    with pytest.raises(ValueError, match="finite"):
        mean_interval([[math.nan]], 0.95, 100, 0)
    with pytest.raises(ValueError, match="no proportion"):
        wilson(0, 0, 0.95)


def coverage(draw, truth: float, runs: int = 400) -> float:
    hits = 0
    for seed in range(runs):
        interval: Interval = draw(np.random.default_rng(seed), seed)
        hits += interval.low <= truth <= interval.high
    return hits / runs


def test_intervals_cover_the_truth_as_often_as_they_say():
    def clustered(rng, seed):
        chances = rng.choice([0.2, 0.8], size=60)
        groups = [list(map(float, rng.random(4) < c)) for c in chances]
        return mean_interval(groups, 0.9, 400, seed)

    def paired(rng, seed):
        b = rng.random(80)
        a = b + rng.normal(0.05, 0.2, size=80)
        return paired_difference(a, b, 0.9, 400, seed)

    def proportion(rng, seed):
        return proportion_interval([[float(x)] for x in rng.random(50) < 0.9], 0.9, 200, seed)

    def seeds(rng, seed):
        return t_interval(list(rng.normal(0.3, 0.1, size=3)), 0.9)

    assert 0.85 <= coverage(clustered, 0.5) <= 0.95
    assert 0.85 <= coverage(paired, 0.05) <= 0.95
    assert 0.85 <= coverage(proportion, 0.9) <= 0.96
    assert 0.86 <= coverage(seeds, 0.3) <= 0.94


def test_resampling_trials_alone_would_claim_too_much():
    def by_trial(rng, seed):
        chances = rng.choice([0.0, 1.0], size=30)
        flat = [[float(c)] for c in chances for _ in range(8)]
        return mean_interval(flat, 0.9, 200, seed)

    assert coverage(by_trial, 0.5, runs=200) < 0.6


def test_a_ratio_pools_cases_and_resamples_tasks():
    groups = [[(1, 2), (2, 2)], [(0, 6)], [(0, 0)]]
    found = ratio_interval(groups, 0.95, 2000, 7)
    # 3 of 10 cases; resamples of the two tasks give 0, 3/10 and 3/4.
    assert found.mean == 0.3 and found.n == 2
    assert (found.low, found.high) == (0.0, 0.75)


def test_a_ratio_without_spread_is_not_called_certain():
    alike = ratio_interval([[(3, 3)], [(5, 5)], [(1, 1)]], 0.95, 500, 7)
    expected = wilson(3, 3, 0.95)
    assert (alike.mean, alike.low, alike.high) == (1.0, expected.low, 1.0)
    with pytest.raises(ValueError, match="one case"):
        ratio_interval([[(0, 0)]], 0.95, 500, 7)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(4, 9)), min_size=1, max_size=8))
def test_a_ratio_lies_in_its_bounds(pairs):
    found = ratio_interval([[pair] for pair in pairs], 0.9, 50, 3)
    assert 0 <= found.low <= found.high <= 1
    assert found.mean == pytest.approx(sum(p for p, _ in pairs) / sum(of for _, of in pairs))


@pytest.mark.parametrize(
    ("probability", "df", "quantile"),
    [
        (0.95, 1, 3.841459),
        (0.95, 2, 5.991465),
        (0.025, 3, 0.215795),
        (0.975, 7, 16.012764),
        (0.05, 10, 3.940299),
    ],
)
def test_quantiles_of_chi_square(probability, df, quantile):
    assert chi_square_quantile(probability, df) == pytest.approx(quantile, abs=1e-6)
    assert chi_square_probability(quantile, df) == pytest.approx(probability, abs=1e-6)


def test_chi_square_by_hand():
    # Two degrees of freedom are an exponential distribution, one is a squared normal.
    assert chi_square_probability(3.0, 2) == pytest.approx(1 - math.exp(-1.5))
    assert chi_square_probability(1.0, 1) == pytest.approx(math.erf(math.sqrt(0.5)))
    assert chi_square_probability(0.0, 1) == chi_square_probability(0.0, 4) == 0
    with pytest.raises(ValueError, match="degree"):
        chi_square_probability(1.0, 0)
    with pytest.raises(ValueError, match="between"):
        chi_square_quantile(1.0, 3)
