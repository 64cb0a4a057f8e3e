"""The structured reward (PMT, eq. 3-4)."""

from dataclasses import dataclass

from progrl.config.training import Optimal, RewardConfig
from progrl.dialogue.trajectories import Trajectory


@dataclass(frozen=True, slots=True)
class RewardParts:
    """The components of an episode's reward, unweighted, and their weighted sum.

    `task` is 0 or 1; `progress` and `efficiency` lie in [0, 1].
    """

    task: float
    progress: float
    efficiency: float
    total: float


def structured_reward(trajectory: Trajectory, config: RewardConfig) -> RewardParts:
    """r_total = w1 r_task + w2 r_progress + w3 r_efficiency.

    r_efficiency = max(0, 1 - T_used / T_opt), paid only for a success that kept the policy:
    otherwise skipping steps would pay. An episode cut by the horizon has r_task = 0 and keeps
    its milestones.

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
    total = config.task * task + config.progress * progress + config.efficiency * efficiency
    return RewardParts(task, progress, efficiency, total)


def turn_efficiency(turns: int, expert_turns: int, config: RewardConfig) -> float:
    """max(0, 1 - T_used / T_opt) (eq. 4) of an episode that ends after `turns` agent turns."""
    reference = config.reference
    best = expert_turns * (1.0 if isinstance(reference, Optimal) else reference.factor)
    return max(0.0, 1.0 - turns / best)


def turn_rewards(trajectory: Trajectory, config: RewardConfig) -> list[float]:
    """Turn rewards r_t, whose sum is r_total: each turn's progress, and the rest with the last.

    Returns:
        One reward a turn; empty for an episode without turns.
    """
    if not trajectory.turns:
        return []
    parts = structured_reward(trajectory, config)
    rewards = [config.progress * turn.gain for turn in trajectory.turns]
    rewards[-1] += config.task * parts.task + config.efficiency * parts.efficiency
    return rewards


def turn_reward_bounds(config: RewardConfig) -> tuple[float, float]:
    """The least and the most that a turn of `turn_rewards` can earn."""
    return 0.0, config.task + config.progress + config.efficiency
