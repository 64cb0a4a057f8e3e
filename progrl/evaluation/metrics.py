"""Outcome metrics: pure functions of episodes.

`measure` turns a trajectory into a `Result`, the row that is kept; every metric is a function of
results. A value that is undefined (no case in its denominator) is None, never 0.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from progrl.config.training import RewardConfig
from progrl.dialogue.messages import ToolCall
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import End, Trajectory
from progrl.errors import DataError
from progrl.evaluation.statistics import pass_hat_k
from progrl.rewards import structured_reward


@dataclass(frozen=True, slots=True)
class Result:
    """What one episode came to.

    All from `success` on is None for an episode lost to a fault, which is in no metric.

    Attributes:
        task, family, level, trial: which episode.
        expert_turns: agent turns of the task's expert.
        goal_change, tool_failure: the task scheduled one.
        end: why the episode ended, a value of `End`.
        fault: its cause, "" if there was none.
        reward: the structured reward with fixed weights.
        progress, efficiency: its unweighted components, in [0, 1].
        turns: agent messages.
        tool_calls: agent messages that were calls; `failed_calls` of them, or of messages that
            were no valid action, led to an error.
        policy_kept: no rule of the domain's policy was broken.
    """

    task: str
    family: str
    level: int
    trial: int
    expert_turns: int
    goal_change: bool
    tool_failure: bool
    end: str
    fault: str
    success: bool | None = None
    reward: float | None = None
    progress: float | None = None
    efficiency: float | None = None
    turns: int | None = None
    tool_calls: int | None = None
    failed_calls: int | None = None
    policy_kept: bool | None = None

    @property
    def valid(self) -> bool:
        """The episode is evidence about the agent."""
        return self.success is not None

    def to_json(self) -> dict[str, Any]:
        """As written to disk."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Result":
        """The inverse of `to_json`; DataError on another form."""
        try:
            return cls(**value)
        except TypeError as error:
            raise DataError(f"not a result of an evaluation ({error})") from None


def measure(trajectory: Trajectory, task: Task, trial: int, reward: RewardConfig) -> Result:
    """The result of a task's trial."""
    blank = Result(
        task=task.id,
        family=task.family,
        level=task.level,
        trial=trial,
        expert_turns=task.expert_turns,
        goal_change=bool(task.schedule.get("change")),
        tool_failure=bool(task.schedule.get("failure")),
        end=trajectory.end.value,
        fault=trajectory.fault,
    )
    if not trajectory.valid or trajectory.outcome is None:
        return blank
    parts = structured_reward(trajectory, reward)
    return replace(
        blank,
        success=trajectory.success,
        reward=parts.total,
        progress=parts.progress,
        efficiency=parts.efficiency,
        turns=len(trajectory.turns),
        tool_calls=sum(isinstance(turn.action, ToolCall) for turn in trajectory.turns),
        failed_calls=sum(turn.failed for turn in trajectory.turns),
        policy_kept=trajectory.outcome.policy_kept,
    )


Value = Callable[[Result], float | None]


def success(result: Result) -> float | None:
    """1 for a success, in {0, 1}."""
    return None if result.success is None else float(result.success)


def early_leave(result: Result) -> float | None:
    """1 where the user left before its goal was met, in {0, 1}."""
    return float(result.end == End.LEFT and not result.success) if result.valid else None


def goal_change_success(result: Result) -> float | None:
    """Success on the changed goal; undefined where the task scheduled no change.

    An episode that ended before the change is a failure unless it succeeded otherwise, as the
    environment judges by the changed goal.
    """
    return success(result) if result.goal_change else None


def recovery(result: Result) -> float | None:
    """Success where the task scheduled a tool failure; undefined elsewhere."""
    return success(result) if result.tool_failure else None


def policy_kept(result: Result) -> float | None:
    """1 where no rule of the policy was broken, in {0, 1}."""
    return None if result.policy_kept is None else float(result.policy_kept)


PROPORTIONS: Mapping[str, Value] = {
    "success": success,
    "policy_kept": policy_kept,
    "early_leave": early_leave,
    "goal_change_success": goal_change_success,
    "recovery": recovery,
}
"""Metrics with values 0 and 1."""

MEANS: Mapping[str, Value] = {
    "reward": lambda r: r.reward,
    "progress": lambda r: r.progress,
    "efficiency": lambda r: r.efficiency,
    "turns": lambda r: r.turns,
    "tool_calls": lambda r: r.tool_calls,
    "failed_calls": lambda r: r.failed_calls,
}
"""Metrics with other values, an episode's own each."""


def by_task(results: Iterable[Result], value: Value) -> dict[str, list[float]]:
    """The defined values of each task's trials, tasks in order of appearance."""
    groups: dict[str, list[float]] = {}
    for result in results:
        number = value(result)
        if number is not None:
            groups.setdefault(result.task, []).append(number)
    return groups


def pass_k(results: Iterable[Result], k: int) -> dict[str, float]:
    """pass^k of each task that has at least k valid trials: C(c, k) / C(n, k), in [0, 1]."""
    return {
        task: pass_hat_k(round(sum(trials)), len(trials), k)
        for task, trials in by_task(results, success).items()
        if len(trials) >= k
    }


def end_shares(results: Sequence[Result]) -> dict[str, float] | None:
    """The share of valid episodes by cause of end, all causes but faults; None without episodes."""
    counts = Counter(result.end for result in results if result.valid)
    total = counts.total()
    if not total:
        return None
    return {end.value: counts[end.value] / total for end in End if end is not End.FAULT}
