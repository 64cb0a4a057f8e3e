"""Episodes of a benchmark: gold trajectories, and agents with the do-nothing agent beside them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from statistics import fmean
from typing import Any

from progrl.agent.seats import Agent, DoNothingAgent, ExpertAgent
from progrl.benchmarks.base import SOLVED
from progrl.benchmarks.contracts import Adapter
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Trajectory
from progrl.errors import ConfigurationError
from progrl.evaluation.statistics import pass_hat_k, proportion_interval
from progrl.rollout import EpisodeSpec, collect
from progrl.seeds import Seed
from progrl.users.contracts import Profile, UserSimulator
from progrl.users.scripted import RuleUser

PLAIN = Profile("plain", 10**9, 1.0, 0.0, 0.0, 0.0, 0.0)
"""Users say a benchmark's words as they are, and never lose patience."""
IN_FLIGHT = 16
CONFIDENCE = 0.95
RESAMPLES = 10_000
"""Of the tasks, for the interval where a task has several trials."""
Told = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an agent did, by the benchmark's own checker.

    Attributes:
        n: episodes.
        success: their share that succeeded; faults count as failures, so that nothing is hidden.
        low: lower end of the interval over tasks; `high` the upper.
        do_nothing: share that an agent succeeds in which says goodbye at once.
        pass_k: for k up to the trials of a task: the chance that k of them all succeed.
        parts: share of the episodes that reached a part of the verdict, of those whose task has
            it; nothing where a verdict has no parts.
        turns: mean of agent turns.
        malformed: share of turns that were no action or a failed call.
        faults: episodes that broke.
        fault: the first cause.
    """

    n: int
    success: float
    low: float
    high: float
    do_nothing: float
    pass_k: dict[str, float]
    parts: dict[str, float]
    turns: float
    malformed: float
    faults: int
    fault: str

    def json(self) -> dict[str, Any]:
        """As commands write it."""
        return asdict(self)


def first_tasks(adapter: Adapter, limit: int | None, told: Told | None = None) -> list[Task]:
    """The benchmark's first tasks, all where there is no limit.

    Args:
        told: how many there are, after each: those of pages take as long as an episode.

    Raises:
        ConfigurationError: it has none.
    """
    tasks = []
    for task in islice(adapter.tasks("test", 0), limit):
        tasks.append(task)
        if told is not None:
            told(len(tasks))
    if not tasks:
        raise ConfigurationError(f"The benchmark {adapter.name} has no tasks.")
    return tasks


def play(
    adapter: Adapter,
    tasks: Sequence[Task],
    agent: Agent,
    told: Told | None = None,
    trials: int = 1,
    user: UserSimulator | None = None,
    in_flight: int = IN_FLIGHT,
) -> list[Trajectory]:
    """Some episodes a task, those of a task one after the other in the answer.

    Args:
        told: how many have ended, after each.
        user: who plays the user; else the benchmark's own rule.
        in_flight: most episodes at a time.
    """
    own = user or RuleUser(adapter)
    specs = [
        EpisodeSpec(
            task,
            _trial(Seed(f"benchmark={adapter.name}").child("agent", task.id), trial),
            task.seed if trial == 0 else _trial(Seed(f"user={task.seed}"), trial).value,
            adapter.turns(task),
            PLAIN,
            {"agent": agent.name, "trial": trial},
        )
        for task in tasks
        for trial in range(trials)
    ]
    return collect(specs, lambda name: adapter, agent, lambda name: own, in_flight, done=told)


def _trial(node: Seed, number: int) -> Seed:
    return node if number == 0 else node.child("trial", number)


def gold(
    adapter: Adapter, limit: int | None, told: Told | None = None, prepared: Told | None = None
) -> list[Trajectory]:
    """Play the gold trajectories of the first tasks.

    Args:
        told: how many have ended, after each; `prepared`, how many tasks there are.
    """
    return play(adapter, first_tasks(adapter, limit, prepared), ExpertAgent(), told)


def verdict(adapter: Adapter, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> Verdict:
    """Sum up an agent's trajectories, and play the do-nothing agent on the same tasks.

    Args:
        trajectories: as many of each task, in the order of `tasks`, as `play` gives them.
    """
    values = [float(t.valid and t.success) for t in trajectories]
    trials = len(trajectories) // len(tasks)
    groups = [values[at : at + trials] for at in range(0, len(values), trials)]
    idle = play(adapter, tasks, DoNothingAgent())
    interval = proportion_interval(groups, CONFIDENCE, RESAMPLES, 0)
    turns = [turn for t in trajectories for turn in t.turns]
    faults = [t.fault for t in trajectories if not t.valid]
    return Verdict(
        len(values),
        interval.mean,
        interval.low,
        interval.high,
        fmean(float(t.valid and t.success) for t in idle),
        {
            str(k): fmean(pass_hat_k(round(sum(group)), trials, k) for group in groups)
            for k in range(1, trials + 1)
        },
        _parts([task for task in tasks for _ in range(trials)], trajectories),
        len(turns) / len(trajectories),
        fmean(turn.failed for turn in turns) if turns else 0.0,
        len(faults),
        faults[0] if faults else "",
    )


def _parts(tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Tasks that are solved or not, and nothing in between, have no parts."""
    reached: dict[str, list[float]] = {}
    for task, trajectory in zip(tasks, trajectories, strict=True):
        met = trajectory.outcome.milestones if trajectory.outcome else ()
        for milestone in task.milestones if task.milestones != SOLVED else ():
            reached.setdefault(milestone.name, []).append(float(milestone.name in met))
    return {name: fmean(values) for name, values in sorted(reached.items())}
