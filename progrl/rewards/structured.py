"""The structured reward (PMT, eq. 3-4), by fixed weights or by those of a domain (eq. 14-15)."""

import math
from dataclasses import dataclass, replace

from progrl.config.training import Optimal, RewardConfig
from progrl.dialogue.trajectories import Trajectory


@dataclass(frozen=True, slots=True)
class RewardParts:
    """The components of an episode's reward, unweighted, and their weighted sum.

    `task` is 0 or 1; `progress`, `efficiency` and `domain`, what the environment declared, lie in
    [0, 1]; `total` is r_total by the fixed weights, which have none for `domain`.
    """

    task: float
    progress: float
    efficiency: float
    domain: float
    total: float


@dataclass(frozen=True, slots=True)
class Weights:
    """What the components of the reward are worth; the sum is the most that a turn can earn."""

    task: float
    progress: float
    efficiency: float
    domain: float

    def reward(self, parts: RewardParts) -> float:
        """r_total from an episode's components."""
        return (
            self.task * parts.task
            + self.progress * parts.progress
            + self.efficiency * parts.efficiency
            + self.domain * parts.domain
        )


def fixed_weights(config: RewardConfig) -> Weights:
    """w1, w2, w3 of the configuration, and nothing for r_domain."""
    return Weights(config.task, config.progress, config.efficiency, 0.0)


def structured_reward(trajectory: Trajectory, config: RewardConfig) -> RewardParts:
    """r_total = w1 r_task + w2 r_progress + w3 r_efficiency by the fixed weights, with its parts.

    r_efficiency = max(0, 1 - T_used / T_opt), paid only for a success that kept the policy:
    otherwise skipping steps would pay. An episode cut by the horizon or by the agent's
    window has r_task = 0 and keeps its milestones.

    Raises:
        ValueError: the trajectory is no evidence (it ended by a fault).
    """
    if trajectory.outcome is None or not trajectory.valid:
        raise ValueError(f"episode of task {trajectory.task_id} has no reward: {trajectory.fault}")
    task = float(trajectory.success)
    progress = trajectory.outcome.progress
    efficiency = 0.0
    if task and trajectory.outcome.policy_kept:
        efficiency = turn_efficiency(len(trajectory.turns), trajectory.expert_turns, config)
    parts = RewardParts(task, progress, efficiency, trajectory.outcome.domain, 0.0)
    return replace(parts, total=fixed_weights(config).reward(parts))


def episode_reward(trajectory: Trajectory, config: RewardConfig) -> float:
    """What an episode amounts to: the sum of the environment's own turn rewards, else r_total."""
    if trajectory.reward_bounds is not None:
        return math.fsum(turn.reward for turn in trajectory.turns)
    return structured_reward(trajectory, config).total


def turn_efficiency(turns: int, expert_turns: int, config: RewardConfig) -> float:
    """max(0, 1 - T_used / T_opt) (eq. 4) of an episode that ends after `turns` agent turns."""
    reference = config.reference
    best = expert_turns * (1.0 if isinstance(reference, Optimal) else reference.factor)
    return max(0.0, 1.0 - turns / best)


def turn_rewards(
    trajectory: Trajectory, config: RewardConfig, weights: Weights | None = None
) -> list[float]:
    """Turn rewards r_t, whose sum is r_total: each turn's progress, and the rest with the last.

    An environment that has turn rewards of its own gives these instead.

    Args:
        weights: those of the configuration where it is None.

    Returns:
        One reward a turn; empty for an episode without turns.
    """
    if not trajectory.turns:
        return []
    if trajectory.reward_bounds is not None:
        return [turn.reward for turn in trajectory.turns]
    parts, weights = structured_reward(trajectory, config), weights or fixed_weights(config)
    rewards = [weights.progress * turn.gain for turn in trajectory.turns]
    rewards[-1] += (
        weights.task * parts.task
        + weights.efficiency * parts.efficiency
        + weights.domain * parts.domain
    )
    return rewards


def turn_reward_bounds(
    weights: Weights, own: tuple[float, float] | None = None
) -> tuple[float, float]:
    """The least and the most that a turn of `turn_rewards` can earn.

    Args:
        own: what the trajectory's environment declares for turn rewards of its own.
    """
    if own is not None:
        return own
    return 0.0, weights.task + weights.progress + weights.efficiency + weights.domain
