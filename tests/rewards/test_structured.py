"""The structured reward: worked cases of eq. 3-4."""

import pytest
from pydantic import ValidationError

from progrl.config.training import Budget, Optimal, RewardConfig
from progrl.dialogue.trajectories import End
from progrl.rewards import structured_reward, turn_reward_bounds, turn_rewards
from tests.builders import make_trajectory

CONFIG = RewardConfig(
    task=1.0, progress=0.5, efficiency=0.2, reference=Budget(kind="budget", factor=2.0)
)
LETTER = CONFIG.model_copy(update={"reference": Optimal(kind="optimal")})


def test_the_expert_earns_half_of_the_efficiency() -> None:
    parts = structured_reward(make_trajectory(), CONFIG)
    assert (parts.task, parts.progress, parts.efficiency) == (1.0, 1.0, 0.5)
    assert parts.total == pytest.approx(1.0 + 0.5 + 0.1)


def test_to_the_letter_the_expert_earns_no_efficiency() -> None:
    assert structured_reward(make_trajectory(), LETTER).efficiency == 0.0


def test_an_episode_cut_by_the_horizon_keeps_its_milestones_alone() -> None:
    parts = structured_reward(make_trajectory(end=End.HORIZON), CONFIG)
    assert (parts.task, parts.efficiency, parts.total) == (0.0, 0.0, 0.5)


def test_breaking_the_policy_costs_the_efficiency() -> None:
    assert structured_reward(make_trajectory(policy_kept=False), CONFIG).total == 1.5


def test_failing_fast_earns_no_efficiency() -> None:
    parts = structured_reward(make_trajectory(gains=(0.0,), success=False), CONFIG)
    assert parts.total == 0.0


@pytest.mark.parametrize("end", [End.CLOSED, End.LEFT, End.HORIZON])
def test_turn_rewards_sum_to_the_total(end: End) -> None:
    trajectory = make_trajectory(gains=(0.25, 0.0, 0.75), end=end, expert_turns=3)
    total = structured_reward(trajectory, CONFIG).total
    assert sum(turn_rewards(trajectory, CONFIG)) == pytest.approx(total)


@pytest.mark.parametrize("gains", [(1.0,), (0.0, 0.0), (0.4, 0.6)])
def test_turn_rewards_keep_their_bounds(gains: tuple[float, ...]) -> None:
    low, high = turn_reward_bounds(CONFIG)
    assert (low, high) == (0.0, pytest.approx(1.7))
    rewards = turn_rewards(make_trajectory(gains=gains, expert_turns=20), CONFIG)
    assert all(low <= reward <= high for reward in rewards)


def test_without_any_weight_there_would_be_nothing_to_learn_from() -> None:
    with pytest.raises(ValidationError, match="one must be above 0"):
        RewardConfig.model_validate(
            {**CONFIG.model_dump(), "task": 0.0, "progress": 0.0, "efficiency": 0.0}
        )


def test_a_faulty_episode_has_no_reward() -> None:
    with pytest.raises(ValueError, match="no reward"):
        structured_reward(make_trajectory(end=End.FAULT), CONFIG)
