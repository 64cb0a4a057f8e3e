"""Group-relative advantages: worked values, and faults of rounding that must not be blown up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.config.credit import FloorNormalisation, PaperNormalisation
from progrl.rewards import group_advantages, tree_advantages

FLOOR = FloorNormalisation(kind="floor", floor=0.1)
PAPER = PaperNormalisation(kind="paper")
scores = st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=2, max_size=16)


def test_one_success_in_four() -> None:
    z = group_advantages([1.0, 0.0, 0.0, 0.0], FLOOR)
    assert z is not None
    assert z.tolist() == pytest.approx([3**0.5, -(3**-0.5), -(3**-0.5), -(3**-0.5)])


def test_small_differences_stay_small() -> None:
    z = group_advantages([1.60, 1.59], FLOOR)
    assert z is not None and np.abs(z).max() == pytest.approx(0.05)
    letter = group_advantages([1.60, 1.59], PAPER)
    assert letter is not None and np.abs(letter).max() == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("values", [[0.3] * 8, [0.1 + 0.2, 0.3], [1.0], []])
def test_no_signal(values: list[float]) -> None:
    assert group_advantages(values, FLOOR) is None


@given(scores)
def test_mean_zero_and_worst_negative(values: list[float]) -> None:
    z = group_advantages(values, FLOOR)
    if z is not None:
        assert abs(z.mean()) < 1e-9
        assert z[int(np.argmin(values))] < 0 < z[int(np.argmax(values))]
        assert np.abs(z).max() <= len(values)


def test_the_tree_credits_the_token_that_decided() -> None:
    """Four episodes: token 5 or 6 decides; of those with 5, token 8 or 9 after the reply 7."""
    sequences = [[1, 5, 7, 8], [1, 5, 7, 9], [1, 6, 7, 8], [1, 6, 7, 9]]
    credit = tree_advantages(sequences, [3.0, 1.0, -2.0, -2.0])
    assert credit == [[0, 2, 0, 1], [0, 2, 0, -1], [0, -2, 0, 0], [0, -2, 0, 0]]


def test_a_token_that_all_took_is_worth_exactly_nothing() -> None:
    credit = tree_advantages([[4, 5, 6], [4, 5, 7], [4, 5, 8]], [0.1, 0.2, -0.3])
    assert [row[:2] for row in credit] == [[0.0, 0.0]] * 3
    assert [row[2] for row in credit] == pytest.approx([0.1, 0.2, -0.3])


@given(st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=2, max_size=12))
def test_token_advantages_sum_to_the_episodes(sequences: list[list[int]]) -> None:
    """To the mean of those identical to it; and at each fork the mean advantage is 0."""
    z = group_advantages([sum(s) + i / 7 for i, s in enumerate(sequences)], FLOOR)
    assert z is not None
    credit = tree_advantages(sequences, z.tolist())
    for ids, row in zip(sequences, credit, strict=True):
        alike = [a for other, a in zip(sequences, z, strict=True) if other == ids]
        assert sum(row) == pytest.approx(float(np.mean(alike)), abs=1e-9)
    for at in range(4):
        for prefix in {tuple(s[:at]) for s in sequences}:
            met = [r[at] for s, r in zip(sequences, credit, strict=True) if tuple(s[:at]) == prefix]
            assert sum(met) == pytest.approx(0.0, abs=1e-9)


def test_after_parting_at_what_was_read_each_choice_counts_from_there() -> None:
    # All say 2; a user answers 5 or 6; only after 5 does it matter whether 7 or 8 is said.
    sequences = [[1, 2, 5, 7], [1, 2, 5, 8], [1, 2, 6, 7], [1, 2, 6, 8]]
    rows = tree_advantages(sequences, [1.5, -0.5, -0.5, -0.5])
    assert [row[1] for row in rows] == [0, 0, 0, 0]
    assert [row[2] for row in rows] == [0.5, 0.5, -0.5, -0.5]
    assert [row[3] for row in rows] == [1, -1, 0, 0]
