"""Scores, turn credits and the two ways to combine them: worked values, and bounds that hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.config.credit import (
    BoundedCombination,
    CombinationConfig,
    DiscountedCredit,
    DiscountedScore,
    ExponentialCredit,
    MeanScore,
    NaiveCredit,
    PublishedCombination,
    ScoreConfig,
    StructuredScore,
    SumScore,
    TurnCredit,
)
from progrl.errors import DataError
from progrl.rewards import rescale, trajectory_score, turn_advantages, turn_credits

BOUNDED = BoundedCombination(kind="bounded", weight=0.5)
PUBLISHED = PublishedCombination(kind="published")
COMBINATIONS = (BOUNDED, PUBLISHED)
REWARDS = [0.0, 0.5, 0.0, 1.0]


def naive(combine: CombinationConfig = BOUNDED) -> NaiveCredit:
    return NaiveCredit(kind="naive", combine=combine)


def r2g(combine: CombinationConfig = BOUNDED) -> DiscountedCredit:
    return DiscountedCredit(kind="r2g", gamma=0.8, combine=combine)


def em(combine: CombinationConfig = BOUNDED) -> ExponentialCredit:
    return ExponentialCredit(kind="em", k=2.0, combine=combine)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (StructuredScore(kind="structured"), 7.0),
        (SumScore(kind="sum"), 1.5),
        (MeanScore(kind="mean"), 0.375),
        (DiscountedScore(kind="r2g", gamma=0.8), 0.8 * 0.5 + 0.8**3),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_scores_by_hand(score: ScoreConfig, expected: float) -> None:
    assert trajectory_score(REWARDS, 7.0, score) == pytest.approx(expected)
    assert trajectory_score([], 0.0, score) == 0.0


def test_early_progress_scores_higher_under_r2g() -> None:
    score = DiscountedScore(kind="r2g", gamma=0.8)
    assert trajectory_score([1.0, 0.0], 0, score) > trajectory_score([0.0, 1.0], 0, score)


@pytest.mark.parametrize(
    ("credit", "expected"),
    [
        (naive(), [0.0, 0.5, 0.0, 1.0]),
        (r2g(), [0.8 * 0.5 + 0.8**3, 0.5 + 0.64, 0.8, 1.0]),
        (em(), [0.5, 0.5 + 0.5 * (1 - math.exp(-1)) / (1 - math.exp(-2)), 0.5, 1.0]),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_turn_credits_by_hand(credit: TurnCredit, expected: list[float]) -> None:
    assert turn_credits(REWARDS, credit) == pytest.approx(expected)
    assert turn_credits([], credit) == []


@pytest.mark.parametrize("reward", [1.7, -0.2])
def test_em_outside_of_its_range_is_an_error_that_names_the_turn(reward: float) -> None:
    with pytest.raises(DataError, match=r"turn 2 .*`em`"):
        turn_credits([0.0, reward], em())
    assert turn_credits(rescale([0.0, reward], (-0.2, 1.7)), em())[1] in (0.5, 1.0)


def test_rescaled_rewards_are_shares_of_their_range() -> None:
    assert rescale([-1.0, 0.0, 3.0], (-1.0, 3.0)) == [0.0, 0.25, 1.0]


@pytest.mark.parametrize(("z", "first", "last"), [(2.0, 3.0, 1 + 2 / 3), (-2.0, -1.0, -2 - 1 / 3)])
def test_the_bounded_combination_by_hand(z: float, first: float, last: float) -> None:
    """Credits 1, 0 on 1 and 3 tokens: mean 1/4, so u = 1, -1/3. Progress is spared in a failure."""
    row = turn_advantages(z, [1.0, 0.0], [1, 3], BOUNDED)
    assert row == pytest.approx([first, last])


def test_the_published_combination_by_hand() -> None:
    """The mean of non-zero credits is 3/4, over tokens of which the second turn has two."""
    row = turn_advantages(1.5, [1.0, 0.5, 0.0], [2, 2, 5], PUBLISHED)
    assert row == pytest.approx([2.0, 1.0, 0.0])
    assert turn_advantages(-1.5, [0.0, 0.0], [3, 3], PUBLISHED) == [0.0, 0.0]


def test_mixed_signs_blow_up_as_published_alone() -> None:
    credits, tokens = [0.5, 0.5, 0.0, 0.0, -1.01], [1] * 5
    assert min(turn_advantages(1.0, credits, tokens, PUBLISHED)) < -100
    assert max(map(abs, turn_advantages(1.0, credits, tokens, BOUNDED))) <= 1.5


finite = st.floats(-3, 3, allow_subnormal=False)
turns = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 9)), min_size=1, max_size=9)
credit = st.sampled_from([naive(), r2g(), em()])
weight = st.floats(0.01, 1)


@given(finite, turns, credit, weight)
def test_bounded_keeps_the_token_mean_and_the_bound(
    z: float, given: list[tuple[float, int]], credit: TurnCredit, weight: float
) -> None:
    tokens = [n for _, n in given]
    combine = BoundedCombination(kind="bounded", weight=weight)
    row = turn_advantages(z, turn_credits([r for r, _ in given], credit), tokens, combine)
    mean = sum(a * n for a, n in zip(row, tokens, strict=True)) / sum(tokens)
    assert mean == pytest.approx(z, abs=1e-9)
    assert max(map(abs, row)) <= (1 + weight) * abs(z) + 1e-9
    assert all(a * z >= -1e-9 for a in row)


@given(finite, st.floats(-1, 1), st.lists(st.integers(0, 9), min_size=1), st.floats(0, 1e-7))
def test_equal_credits_are_plain_grpo_and_rounding_is_not_blown_up(
    z: float, value: float, tokens: list[int], noise: float
) -> None:
    credits = [value + noise * (i % 2) for i in range(len(tokens))]
    assert turn_advantages(z, credits, tokens, BOUNDED) == [z] * len(tokens)


@given(finite, turns, credit)
def test_published_keeps_the_mean_over_the_tokens_that_it_credits(
    z: float, given: list[tuple[float, int]], credit: TurnCredit
) -> None:
    """Credits below 1e-3 apart: so near to 0 the quotient is all rounding."""
    tokens = [n for _, n in given]
    credits = turn_credits([round(r, 3) for r, _ in given], credit)
    row = turn_advantages(z, credits, tokens, PUBLISHED)
    counted = sum(n for c, n in zip(credits, tokens, strict=True) if c)
    total = sum(a * n for a, n in zip(row, tokens, strict=True))
    assert total == pytest.approx(z * counted, abs=1e-9)
