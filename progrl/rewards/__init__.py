"""From trajectories to scores and advantages: pure functions."""

from progrl.rewards.advantages import group_advantages, tree_advantages
from progrl.rewards.structured import RewardParts, structured_reward, turn_rewards

__all__ = [
    "RewardParts",
    "group_advantages",
    "structured_reward",
    "tree_advantages",
    "turn_rewards",
]
