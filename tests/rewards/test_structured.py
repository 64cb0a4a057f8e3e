"""The structured reward: worked cases of eq. 3-4."""

import pytest
from pydantic import ValidationError

from progrl.config.training import Budget, FixedWeights, Optimal, RewardConfig
from progrl.dialogue.trajectories import End
from progrl.rewards import (
    RewardParts,
    Weights,
    fixed_weights,
    structured_reward,
    turn_reward_bounds,
    turn_rewards,
)
from tests.builders import make_trajectory

CONFIG = RewardConfig(
    task=1.0,
    progress=0.5,
    efficiency=0.2,
    reference=Budget(kind="budget", factor=2.0),
    weights=FixedWeights(kind="fixed"),
)
LEARNED = Weights(task=0.5, progress=0.25, efficiency=0.125, domain=0.125)
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
    trajectory = make_trajectory(gains=gains, expert_turns=20)
    for weights, most in ((fixed_weights(CONFIG), 1.7), (LEARNED, 1.0)):
        low, high = turn_reward_bounds(weights)
        assert (low, high) == (0.0, pytest.approx(most))
        rewards = turn_rewards(trajectory, CONFIG, weights)
        assert all(low <= reward <= high for reward in rewards)


def test_the_reward_by_a_domains_weights_by_hand() -> None:
    parts = RewardParts(task=1.0, progress=0.5, efficiency=0.25, domain=1.0, total=0.0)
    weights = Weights(task=0.4, progress=0.3, efficiency=0.2, domain=0.1)
    assert weights.reward(parts) == pytest.approx(0.4 + 0.15 + 0.05 + 0.1)
    assert weights.reward(RewardParts(1, 1, 1, 1, 0)) == pytest.approx(1.0)
    # The fixed weights have none for what the environment declares.
    assert fixed_weights(CONFIG).reward(parts) == 1.0 + 0.5 * 0.5 + 0.2 * 0.25


def test_a_domains_weights_reach_every_turn() -> None:
    trajectory = make_trajectory(gains=(0.25, 0.0, 0.75), expert_turns=3)
    parts = structured_reward(trajectory, CONFIG)
    assert (parts.efficiency, parts.domain) == (0.5, 1.0)
    rewards = turn_rewards(trajectory, CONFIG, LEARNED)
    assert rewards == [0.0625, 0.0, 0.1875 + 0.5 + 0.0625 + 0.125]
    assert sum(rewards) == LEARNED.reward(parts)
    broken = structured_reward(make_trajectory(policy_kept=False), CONFIG)
    assert LEARNED.reward(broken) == 0.75  # neither efficiency nor r_domain


def test_without_any_weight_there_would_be_nothing_to_learn_from() -> None:
    with pytest.raises(ValidationError, match="one must be above 0"):
        RewardConfig.model_validate(
            {**CONFIG.model_dump(), "task": 0.0, "progress": 0.0, "efficiency": 0.0}
        )


def test_a_faulty_episode_has_no_reward() -> None:
    with pytest.raises(ValueError, match="no reward"):
        structured_reward(make_trajectory(end=End.FAULT), CONFIG)
