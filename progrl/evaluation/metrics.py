"""Outcome metrics: pure functions of episodes.

`measure` turns a trajectory into a `Result`, the row that is kept; every metric is a function of
results. A value that is undefined (no case in its denominator) is None, never 0.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from progrl.config.training import RewardConfig
from progrl.dialogue.messages import ToolCall
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import End, Trajectory
from progrl.environments.contracts import Domain
from progrl.errors import DataError
from progrl.evaluation.interaction import Ratio, changed_calls, coherence, satisfaction
from progrl.evaluation.statistics import pass_hat_k
from progrl.evaluation.tools import Calls, alike, calls, consistency, selection
from progrl.evaluation.turns import effective_turns, informative_turns, time_weighted
from progrl.rewards import structured_reward, turn_rewards
from progrl.users.profiles import members

logger = logging.getLogger(__name__)


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
        satisfaction: of the user, by rule, in [0, 1].
        effective_turns, informative_turns, time_weighted: UserRL's, of the turn rewards.
        coherent_turns: turns without a violation, of the `coherence_turns` where one was possible.
        changed_calls: failed calls followed by another call, of the `failures` that ask for one.
        expert_choices: the expert's tool was called, of the `expert_calls` at which it calls one.
        tools: names of the tools called, in order.
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
    satisfaction: float | None = None
    effective_turns: int | None = None
    informative_turns: int | None = None
    time_weighted: float | None = None
    coherent_turns: int | None = None
    coherence_turns: int | None = None
    changed_calls: int | None = None
    failures: int | None = None
    expert_choices: int | None = None
    expert_calls: int | None = None
    tools: tuple[str, ...] | None = None

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
            tools = value.get("tools")
            return cls(**{**value, "tools": None if tools is None else tuple(tools)})
        except TypeError as error:
            raise DataError(f"not a result of an evaluation ({error})") from None


def measure(
    trajectory: Trajectory,
    task: Task,
    trial: int,
    reward: RewardConfig,
    domain: Domain | None = None,
) -> Result:
    """The result of a task's trial.

    Args:
        domain: the task's, for what its expert would have called; without it that is unknown.
    """
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
    parts, rewards = structured_reward(trajectory, reward), turn_rewards(trajectory, reward)
    coherent, changed = coherence(trajectory), changed_calls(trajectory)
    chosen = _selection(trajectory, task, domain) if domain else None
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
        satisfaction=satisfaction(trajectory, _patience(trajectory)),
        effective_turns=effective_turns(rewards),
        informative_turns=informative_turns(trajectory),
        time_weighted=time_weighted(rewards),
        coherent_turns=coherent.part,
        coherence_turns=coherent.of,
        changed_calls=changed.part,
        failures=changed.of,
        expert_choices=chosen.part if chosen else None,
        expert_calls=chosen.of if chosen else None,
        tools=calls(trajectory),
    )


def _selection(trajectory: Trajectory, task: Task, domain: Domain) -> Ratio | None:
    """None, with a warning, where the episode cannot be played again: the rest still counts."""
    try:
        return selection(trajectory, task, domain)
    except DataError as error:
        logger.warning("What the expert would have called is unknown. %s", error)
        return None


def _patience(trajectory: Trajectory) -> int | None:
    """Of the user's profile; None where the user had none that is known (a person, say)."""
    name = trajectory.tags.get("profile")
    return next((p.patience for _, p in members("all") if p.name == name), None)


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
    "satisfaction": lambda r: r.satisfaction,
    "effective_turns": lambda r: r.effective_turns,
    "informative_turns": lambda r: r.informative_turns,
    "time_weighted": lambda r: r.time_weighted,
}
"""Metrics with other values, an episode's own each."""


def _share(part: int | None, of: int | None) -> Ratio | None:
    return Ratio(part, of) if part is not None and of else None


SHARES: Mapping[str, Callable[[Result], Ratio | None]] = {
    "coherence": lambda r: _share(r.coherent_turns, r.coherence_turns),
    "changed_calls": lambda r: _share(r.changed_calls, r.failures),
    "selection_accuracy": lambda r: _share(r.expert_choices, r.expert_calls),
}
"""Metrics that are shares of an episode's cases; pooled, so that each case counts once."""


Of = TypeVar("Of")


def by_task(results: Iterable[Result], value: Callable[[Result], Of | None]) -> dict[str, list[Of]]:
    """The defined values of each task's trials, tasks in order of appearance."""
    groups: dict[str, list[Of]] = {}
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


def tool_calls(results: Iterable[Result]) -> list[Calls]:
    """Of each valid episode how many tools it called, and whether it was solved."""
    return [Calls(r.task, r.trial, bool(r.success), r.tool_calls or 0) for r in results if r.valid]


def tool_consistency(results: Iterable[Result], expert: Iterable[Result]) -> float | None:
    """`tools.consistency` over the tasks that both have, similar where the family is the same.

    The first trial of each counts: trials of one task are alike beyond what their family makes.
    """
    own, best = (
        {r.task: r for r in rows if r.trial == 0 and r.tools is not None}
        for rows in (results, expert)
    )
    common = [task for task in own if task in best]
    if not common:
        return None
    return consistency(
        [own[task].tools or () for task in common],
        [best[task].tools or () for task in common],
        alike([own[task].family for task in common]),
    )


def end_shares(results: Sequence[Result]) -> dict[str, float] | None:
    """The share of valid episodes by cause of end, all causes but faults; None without episodes."""
    counts = Counter(result.end for result in results if result.valid)
    total = counts.total()
    if not total:
        return None
    return {end.value: counts[end.value] / total for end in End if end is not End.FAULT}
