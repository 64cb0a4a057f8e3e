"""From trajectories to scores and advantages: pure functions; learned weights in `weights`."""

from progrl.rewards.advantages import group_advantages, tree_advantages
from progrl.rewards.credit import rescale, trajectory_score, turn_advantages, turn_credits
from progrl.rewards.structured import (
    RewardParts,
    Weights,
    episode_reward,
    fixed_weights,
    structured_reward,
    turn_reward_bounds,
    turn_rewards,
)

__all__ = [
    "RewardParts",
    "Weights",
    "episode_reward",
    "fixed_weights",
    "group_advantages",
    "rescale",
    "structured_reward",
    "trajectory_score",
    "tree_advantages",
    "turn_advantages",
    "turn_credits",
    "turn_reward_bounds",
    "turn_rewards",
]
