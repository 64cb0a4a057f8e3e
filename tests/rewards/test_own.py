"""Turn rewards that an environment has of its own."""

from pathlib import Path

import pytest

from progrl.config.credit import StructuredScore, SumScore
from progrl.dialogue.trajectories import read_trajectories, record, write_trajectories
from progrl.rewards import (
    Weights,
    episode_reward,
    structured_reward,
    turn_reward_bounds,
    turn_rewards,
)
from progrl.training.update import Group
from tests.builders import make_trajectory
from tests.rewards.test_structured import CONFIG


def test_they_stand_in_place_of_those_made_of_milestones() -> None:
    trajectory = make_trajectory(gains=(0.5, 0.0, 0.5))
    made = turn_rewards(trajectory, CONFIG)
    assert episode_reward(trajectory, CONFIG) == structured_reward(trajectory, CONFIG).total
    for turn, reward in zip(trajectory.turns, (0.2, -1.0, 1.0), strict=True):
        turn.reward = reward
    assert turn_rewards(trajectory, CONFIG) == made  # none of its own were declared
    trajectory.reward_bounds = (-1.0, 1.0)
    assert turn_rewards(trajectory, CONFIG) == [0.2, -1.0, 1.0]
    assert episode_reward(trajectory, CONFIG) == pytest.approx(0.2)


def test_their_bounds_rescale_them() -> None:
    weights = Weights(1.0, 0.5, 0.2, 0.0)
    assert turn_reward_bounds(weights, (-1.0, 1.0)) == (-1.0, 1.0)
    assert turn_reward_bounds(weights) == (0.0, pytest.approx(1.7))
    trajectory = make_trajectory(gains=(0.5, 0.5))
    plain = Group.of([trajectory], CONFIG, SumScore(kind="sum"))
    assert plain.rewards[0][0] == pytest.approx(0.25 / 1.7)
    trajectory.reward_bounds = (-1.0, 1.0)
    trajectory.turns[0].reward = 0.2
    own = Group.of([trajectory], CONFIG, SumScore(kind="sum"))
    assert own.rewards == [pytest.approx([0.6, 0.5])]
    assert own.scores == pytest.approx([0.2])
    structured = Group.of([trajectory], CONFIG, StructuredScore(kind="structured"))
    assert structured.scores == [structured_reward(trajectory, CONFIG).total]


def test_the_bounds_are_kept_with_the_record_and_only_where_there_are_some(tmp_path: Path) -> None:
    plain, own = make_trajectory(), make_trajectory()
    own.reward_bounds = (-1.0, 1.0)
    assert "reward_bounds" not in record(plain)
    write_trajectories(tmp_path / "a.jsonl", [plain, own])
    back = read_trajectories(tmp_path / "a.jsonl")
    assert [t.reward_bounds for t in back] == [None, (-1.0, 1.0)]
