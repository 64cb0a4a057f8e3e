import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.evaluation.dynamics import (
    Cost,
    Probe,
    branch_shares,
    cost_to,
    gain_at,
    isotonic,
    learning_efficiency,
    mean_of,
    optimisation_efficiency,
    performance_variance,
    read_probe,
    smoothed,
    stability,
    threshold,
)

SUCCESS = st.lists(st.floats(0, 1), min_size=2, max_size=12)


def probe(success, kl):
    steps = tuple(range(len(success)))
    return Probe(steps, tuple(success), steps, steps, tuple(kl))


def test_the_probe_of_rows():
    rows = [
        {"step": 0, "probe": 0.2, "horizon": 2.0},
        {"step": 1, "probe": None, "episodes": 10, "tokens_sampled": 100, "kl": 0.5},
        {"step": 2, "probe": 0.4, "episodes": 10, "tokens_sampled": 300, "kl": -0.125},
        {"step": 3, "probe": 0.3, "episodes": 20, "tokens_sampled": 50, "kl": 0.25},
    ]
    assert read_probe(rows) == Probe(
        (0, 2, 3), (0.2, 0.4, 0.3), (0, 20, 40), (0, 400, 450), (0.0, 0.5, 0.75)
    )
    assert read_probe([]) == Probe((), (), (), (), ())
    assert mean_of(rows, "kl") == pytest.approx(0.625 / 3) and mean_of(rows, "loss") is None


def test_learning_efficiency_by_hand():
    # Mean 0.5, start 0.2, reference 0.7: 0.3 / 0.5.
    assert learning_efficiency([0.2, 0.6, 0.7], 0.7) == pytest.approx(0.6)
    assert learning_efficiency([0.4, 0.2], 0.8) == pytest.approx(-0.25)
    assert learning_efficiency([0.5, 0.4], 0.5) is None
    assert learning_efficiency([0.5], 0.9) is None and learning_efficiency([], 0.9) is None


@given(SUCCESS)
def test_learning_efficiency_is_at_most_1_against_the_best(success):
    value = learning_efficiency(success, max(success))
    assert value is None or value <= 1 + 1e-9


def test_costs_by_hand():
    level = threshold(0.2, 0.7)
    assert level == pytest.approx(0.65)
    cost = cost_to(level, [0.2, 0.5, 0.66, 0.6], [0, 100, 200, 400])
    assert cost == Cost(200, 400, censored=False) and cost.saved == 0.5
    never = cost_to(level, [0.2, 0.5, 0.6], [0, 100, 200])
    assert never == Cost(200, 200, censored=True) and never.saved is None
    assert cost.ratio(Cost(400, 400, False)) == 0.5
    assert cost.ratio(never) is None and never.ratio(cost) is None
    assert threshold(0.5, 0.5) is None and threshold(0.5, 0.4) is None
    assert cost_to(None, [0.2], [0]) is None and cost_to(0.5, [], []) is None


@given(SUCCESS, st.floats(0, 1))
def test_a_higher_threshold_never_costs_less(success, level):
    spent = list(range(len(success)))
    low, high = cost_to(level / 2, success, spent), cost_to(level, success, spent)
    assert low.spent <= high.spent <= high.budget and low.censored <= high.censored


def test_isotonic_by_hand():
    assert isotonic([1, 3, 2, 4]).tolist() == [1, 2.5, 2.5, 4]
    assert isotonic([3, 2, 1]).tolist() == [2, 2, 2]
    assert isotonic([]).tolist() == []


@given(SUCCESS)
def test_isotonic_is_the_nearest_non_decreasing_sequence(values):
    fit = isotonic(values)
    assert (np.diff(fit) >= 0).all() and math.isclose(fit.sum(), sum(values), abs_tol=1e-9)
    assert np.allclose(isotonic(fit), fit)
    # Characterisation of the projection on a cone: the residual is orthogonal to the fit, and
    # never points along a step up.
    residual = np.asarray(values) - fit
    assert abs(residual @ fit) < 1e-9
    assert all(residual[k:].sum() <= 1e-9 for k in range(len(values)))


def test_stability_by_hand():
    success = [0.0, 0.6, 0.4, 1.0]
    # Fit 0, 0.5, 0.5, 1: squares 0, 0.01, 0.01, 0, mean 0.005. Noise (0.25 + 0.25)/4/500 = 0.00025.
    assert stability(success, 1.0, 500) == pytest.approx(1 - math.sqrt(0.00475))
    # With 10 tasks the spread is less than sampling alone would make.
    assert stability(success, 1.0, 10) == 1.0


def test_stability_needs_a_gain():
    assert stability([0.5, 0.5, 0.5, 0.5], 0.9, 100) is None  # a policy that never moved
    assert stability([0.5, 0.7, 0.5], 0.9, 100) is None  # nothing kept
    assert stability([0.5, 0.6, 0.7], 0.5, 100) is None
    assert stability([0.5, 0.7], 0.7, 100) is None  # two points have no spread about a fit


@given(SUCCESS, st.integers(1, 500))
def test_stability_is_at_most_1_and_rising_runs_have_it(success, tasks):
    for run in (success, sorted(success)):
        value = stability(run, max(run), tasks)
        assert value is None or value <= 1
    value = stability(sorted(success), max(success), tasks)
    assert value in (None, 1.0)


def test_performance_variance_by_hand():
    # Variance 0.01 of 0.4, 0.5, 0.6; noise (0.24 + 0.25 + 0.24)/3/100. With 2 degrees of freedom
    # the quantile of q is -2 ln(1 - q).
    noise = 0.73 / 300
    found = performance_variance([0.4, 0.5, 0.6], 100, 0.95)
    assert found.mean == pytest.approx(math.sqrt(0.01 - noise)) and found.n == 3
    assert found.low == pytest.approx(math.sqrt(0.02 / (-2 * math.log(0.025)) - noise))
    assert found.high == pytest.approx(math.sqrt(0.02 / (-2 * math.log(0.975)) - noise))


def test_equal_seeds_vary_by_nothing_and_one_seed_by_nothing_known():
    equal = performance_variance([0.5, 0.5], 100, 0.95)
    assert (equal.mean, equal.low, equal.high) == (0, 0, 0)
    assert performance_variance([0.5], 100, 0.95) is None


@given(SUCCESS, st.integers(1, 1000))
def test_the_deviation_lies_in_its_interval(finals, tasks):
    found = performance_variance(finals, tasks, 0.9)
    assert 0 <= found.low <= found.mean <= found.high


def test_optimisation_efficiency_by_hand():
    run, full = probe([0.2, 0.6], [0.0, 1.0]), probe([0.2, 0.4, 0.8], [0.0, 1.0, 3.0])
    # Common budget 1: 0.4 against 0.2.
    assert optimisation_efficiency(run, full) == pytest.approx(0.2)
    assert optimisation_efficiency(full, run) == pytest.approx(-0.2)
    assert gain_at(full, 2.0) == pytest.approx(0.4)  # between 0.4 and 0.8
    assert gain_at(run, 2.0) is None
    still = probe([0.2, 0.2], [0.0, 0.0])
    assert optimisation_efficiency(still, full) is None
    assert optimisation_efficiency(probe([], []), full) is None


def test_branches_by_hand():
    rows = [{"step": 0}, *({"branch": b} for b in ("low", "high", "low", "hold"))]
    assert branch_shares(rows) == {"low": 0.5, "high": 0.25, "hold": 0.25}
    assert list(branch_shares(rows)) == ["low", "high", "hold"]
    assert branch_shares([{"step": 0}]) is None


def test_smoothing_by_hand():
    # Of two points at distance 1 the other weighs e = exp(-1/2): 1/(1 + e) is left of a step.
    e = math.exp(-0.5)
    mean, spread = smoothed([1.0, 0.0], 1.0)
    assert mean.tolist() == pytest.approx([1 / (1 + e), e / (1 + e)])
    assert spread.tolist() == pytest.approx([math.sqrt(e) / (1 + e)] * 2)


@given(SUCCESS, st.floats(0.1, 10))
def test_smooth_curves_stay_within_their_values(values, width):
    mean, spread = smoothed(values, width)
    assert (mean >= min(values) - 1e-9).all() and (mean <= max(values) + 1e-9).all()
    assert (spread >= 0).all() and len(mean) == len(values)
