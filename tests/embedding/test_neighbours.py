from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.embedding import HashedEncoder, Vectors, diversity, farthest_points, nearest


def unit(*rows: tuple[float, ...]) -> Vectors:
    matrix = np.array(rows, np.float32)
    made: Vectors = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return made


def random_units(count: int, width: int, seed: int) -> Vectors:
    matrix = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    made: Vectors = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return made


def test_nearest_by_hand() -> None:
    rows = unit((1, 0), (0, 1), (3, 4), (-1, 0))
    places, similar = nearest(unit((0, 1))[0], rows, 3)
    assert places.tolist() == [1, 2, 0]
    assert np.allclose(similar, [1.0, 0.8, 0.0])
    assert nearest(rows[0], rows, 9)[0].tolist() == [0, 2, 1, 3]
    assert nearest(rows[0], rows, 0)[0].tolist() == []
    assert nearest(rows[0], rows[:0], 2)[0].tolist() == []


def test_of_equal_rows_the_first_comes_first() -> None:
    rows = unit(*[(1, 0)] * 5, (0, 1))
    assert nearest(rows[0], rows, 3)[0].tolist() == [0, 1, 2]


@given(st.integers(1, 40), st.integers(1, 45), st.integers(0, 99))
def test_nearest_is_a_full_sort_cut_short(count: int, k: int, seed: int) -> None:
    rows = random_units(count, 5, seed)
    query = random_units(1, 5, seed + 1)[0]
    expected = np.argsort(-(rows @ query), kind="stable")[:k]
    assert nearest(query, rows, k)[0].tolist() == expected.tolist()


def test_farthest_points_by_hand() -> None:
    # On a quarter circle at 0, 10, 45 and 90 degrees: after 0 comes 90, then 45, then 10.
    degrees = np.radians([0, 10, 45, 90])
    rows = np.stack([np.cos(degrees), np.sin(degrees)], axis=1).astype(np.float32)
    assert farthest_points(rows, 4, seed=1, start=[0]).tolist() == [0, 3, 2, 1]
    assert farthest_points(rows, 2, seed=1, start=[2, 2]).tolist() == [2, 0]
    assert farthest_points(rows, 0, seed=1).tolist() == []
    with pytest.raises(ValueError, match="5 of 4"):
        farthest_points(rows, 5, seed=1)


@settings(max_examples=30)
@given(st.integers(1, 30), st.integers(0, 99))
def test_farthest_points_are_distinct_and_never_get_farther(count: int, seed: int) -> None:
    rows = random_units(count, 4, seed)
    chosen = farthest_points(rows, count, seed)
    assert sorted(chosen.tolist()) == list(range(count))
    assert np.array_equal(chosen, farthest_points(rows, count, seed))
    gaps = [1 - (rows[chosen[:at]] @ rows[chosen[at]]).max() for at in range(1, count)]
    assert all(later <= earlier + 1e-5 for earlier, later in pairwise(gaps))


def test_equal_points_are_all_chosen_once() -> None:
    rows = unit(*[(1, 0)] * 4)
    assert sorted(farthest_points(rows, 4, seed=3).tolist()) == [0, 1, 2, 3]


def test_diversity_by_hand() -> None:
    # Pairs: 1 - 0, 1 - (-1), 1 - 0, mean 4/3; nearest: 1, 1 and 1.
    assert diversity(unit((1, 0), (0, 1), (-1, 0))) == pytest.approx((4 / 3, 1.0))
    assert diversity(unit((1, 0), (1, 0))) == pytest.approx((0.0, 0.0))
    with pytest.raises(ValueError, match="two"):
        diversity(unit((1, 0)))


def test_farthest_points_are_more_diverse_than_the_first_comers() -> None:
    texts = [f"{word} {number}" for word in ("order", "zip", "card") for number in range(60)]
    rows = HashedEncoder().encode(texts)
    chosen = diversity(rows[farthest_points(rows, 20, seed=5)])
    first = diversity(rows[:20])
    assert chosen.pairwise > first.pairwise
    assert chosen.nearest > first.nearest
