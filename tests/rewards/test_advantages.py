"""Group-relative advantages: worked values, and faults of rounding that must not be blown up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.config.training import FloorNormalisation, PaperNormalisation
from progrl.rewards import group_advantages

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
