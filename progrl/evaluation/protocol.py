"""How an agent is evaluated: the same tasks, users and horizon for all agents, greedy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from progrl.agent.seats import Agent
from progrl.config.models import EvaluationConfig
from progrl.config.training import RewardConfig
from progrl.dialogue.tasks import Task, check_disjoint
from progrl.dialogue.trajectories import Trajectory
from progrl.errors import DataError
from progrl.evaluation.metrics import Result, measure
from progrl.rollout import Clock, EpisodeSpec, World, check_faults
from progrl.seeds import Seed


def check_held_out(training: Sequence[Task], benchmarks: Mapping[str, Sequence[Task]]) -> None:
    """Check what evaluation rests on.

    Raises:
        DataError: a benchmark is empty or repeats a task, or shares one, by id or by content, with
            training or with another benchmark.
    """
    for name, tasks in sorted(benchmarks.items()):
        if not tasks:
            raise DataError(f"Benchmark {name} has no task. Run `progrl generate` again.")
        if len({task.content_hash for task in tasks}) < len(tasks):
            raise DataError(
                f"Benchmark {name} has a task twice, which would count as two independent "
                "results. Run `progrl generate` again."
            )
    tests = {f"{name} test": tasks for name, tasks in benchmarks.items()}
    check_disjoint(training=training, **tests)


@dataclass(frozen=True)
class Protocol:
    """Plays an agent on a benchmark and measures it.

    Trial j of a task has the same user for every agent and every run: wordings and profile come
    from the task's id and j alone. The agent must be greedy; then its own seed decides nothing.

    Attributes:
        world: domains and users; its profiles are those of evaluation.
        config: horizon, trials, the most faults.
        reward: its weights are fixed, whatever training used.
    """

    world: World
    config: EvaluationConfig
    reward: RewardConfig

    def specs(self, tasks: Sequence[Task], agent: str) -> list[EpisodeSpec]:
        """An episode a task and trial, trials of a task side by side."""
        specs = []
        for task in tasks:
            for trial in range(self.config.trials):
                user = Seed("evaluation").child("task", task.id).child("user", trial)
                tags = {"agent": agent, "trial": trial}
                seed = user.child("agent")
                specs.append(self.world.spec(task, user, seed, self.config.horizon, tags))
        return specs

    def play(
        self,
        tasks: Sequence[Task],
        agent: Agent,
        name: str,
        clock: Clock | None = None,
        done: Callable[[int], None] | None = None,
    ) -> list[Trajectory]:
        """The trajectories of `specs`, in their order.

        Raises:
            EnvironmentFault: too many were lost to faults; the message gives the commonest cause.
        """
        trajectories = self.world.play(self.specs(tasks, name), agent, clock, done)
        check_faults(trajectories, self.config.max_fault_share)
        return trajectories

    def results(self, tasks: Sequence[Task], trajectories: Sequence[Trajectory]) -> list[Result]:
        """One result a trajectory."""
        known, domains = {task.id: task for task in tasks}, self.world.domains
        return [
            measure(t, known[t.task_id], t.tags["trial"], self.reward, domains[t.domain])
            for t in trajectories
        ]
