import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.evaluation.turns import (
    GymMeans,
    effective_turns,
    gym_means,
    informative_turns,
    score,
    time_weighted,
)

from .records import BYE, LOOK, make_task, make_trajectory


def test_by_hand():
    rewards = [0.5, 0.0, -0.25, 1.0]
    assert score(rewards) == 1.25
    assert effective_turns(rewards) == 2
    # 0.5/1 + 0/2 - 0.25/3 + 1/4.
    assert time_weighted(rewards) == pytest.approx(0.5 - 0.25 / 3 + 0.25)


def test_without_turns_there_is_no_score():
    assert score([]) is None and time_weighted([]) is None and effective_turns([]) == 0


def test_informative_turns_reach_a_milestone():
    trajectory = make_trajectory(make_task(), (LOOK, LOOK, BYE))
    trajectory.turns[0].milestones = ("seen", "told")
    trajectory.turns[2].milestones = ("closed",)
    assert informative_turns(trajectory) == 2


def test_means_over_gyms_by_hand():
    # By gym (1 + 0.25) / 2; by task (1 + 0 + 0.5 + 0.25 + 0.25) / 5.
    assert gym_means({"a": [1.0], "b": [0.0, 0.5, 0.25, 0.25], "c": []}) == GymMeans(0.625, 0.4)
    assert gym_means({"c": []}) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=16))
def test_what_comes_early_counts_more(rewards):
    assert time_weighted(rewards) <= score(rewards) + 1e-9
    early, late = sorted(rewards, reverse=True), sorted(rewards)
    assert time_weighted(late) <= time_weighted(rewards) + 1e-9
    assert time_weighted(rewards) <= time_weighted(early) + 1e-9
    assert 0 <= effective_turns(rewards) <= len(rewards)
