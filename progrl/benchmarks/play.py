"""Episodes of a benchmark: gold trajectories, and agents with the do-nothing agent beside them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from statistics import fmean
from typing import Any

from progrl.agent.seats import Agent, DoNothingAgent, ExpertAgent
from progrl.benchmarks.contracts import Adapter
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Trajectory
from progrl.errors import ConfigurationError
from progrl.evaluation.statistics import proportion_interval
from progrl.rollout import EpisodeSpec, collect
from progrl.seeds import Seed
from progrl.users.contracts import Profile
from progrl.users.scripted import RuleUser

PLAIN = Profile("plain", 10**9, 1.0, 0.0, 0.0, 0.0, 0.0)
"""Users say a benchmark's words as they are, and never lose patience."""
IN_FLIGHT = 16
CONFIDENCE = 0.95
Told = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an agent did, by the benchmark's own checker.

    Attributes:
        n: episodes.
        success: their share that succeeded; faults count as failures, so that nothing is hidden.
        low: lower end of the interval over tasks; `high` the upper.
        do_nothing: share that an agent succeeds in which says goodbye at once.
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
    turns: float
    malformed: float
    faults: int
    fault: str

    def json(self) -> dict[str, Any]:
        """As commands write it."""
        return asdict(self)


def first_tasks(adapter: Adapter, limit: int | None) -> list[Task]:
    """The benchmark's first tasks, all where there is no limit.

    Raises:
        ConfigurationError: it has none.
    """
    tasks = list(islice(adapter.tasks("test", 0), limit))
    if not tasks:
        raise ConfigurationError(f"The benchmark {adapter.name} has no tasks.")
    return tasks


def play(
    adapter: Adapter, tasks: Sequence[Task], agent: Agent, told: Told | None = None
) -> list[Trajectory]:
    """One episode a task."""
    user = RuleUser(adapter)
    specs = [
        EpisodeSpec(
            task,
            Seed(f"benchmark={adapter.name}").child("agent", task.id),
            task.seed,
            adapter.turns(task),
            PLAIN,
            {"agent": agent.name},
        )
        for task in tasks
    ]
    return collect(specs, lambda name: adapter, agent, lambda name: user, IN_FLIGHT, done=told)


def gold(adapter: Adapter, limit: int | None, told: Told | None = None) -> list[Trajectory]:
    """Play the gold trajectories of the first tasks."""
    return play(adapter, first_tasks(adapter, limit), ExpertAgent(), told)


def verdict(adapter: Adapter, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> Verdict:
    """Sum up an agent's trajectories, and play the do-nothing agent on the same tasks."""
    values = [float(t.valid and t.success) for t in trajectories]
    idle = play(adapter, tasks, DoNothingAgent())
    interval = proportion_interval([[value] for value in values], CONFIDENCE, 1, 0)
    turns = [turn for t in trajectories for turn in t.turns]
    faults = [t.fault for t in trajectories if not t.valid]
    return Verdict(
        len(values),
        interval.mean,
        interval.low,
        interval.high,
        fmean(float(t.valid and t.success) for t in idle),
        len(turns) / len(trajectories),
        fmean(turn.failed for turn in turns) if turns else 0.0,
        len(faults),
        faults[0] if faults else "",
    )
