"""GRPO over groups of episodes (PMT, algorithm 1): one training step after another."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import numpy as np
import torch

from progrl.agent.seats import ModelAgent
from progrl.config import Config
from progrl.curriculum import Horizon, Sampler, SuccessWindow
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import Encoder, Vectors
from progrl.errors import CheckpointError, DataError
from progrl.files import new_file
from progrl.memory import LongTermMemory, Pattern, ShortTermMemory
from progrl.rewards import RewardParts, structured_reward
from progrl.rollout import Ahead, Clock, EpisodeSpec, World, check_faults
from progrl.seeds import Seed
from progrl.training.checkpoint import (
    Checkpoint,
    load_checkpoint,
    read_tensors,
    save_checkpoint,
    write_tensors,
)
from progrl.training.optimiser import Optimiser
from progrl.training.rows import Row, episodes_row, line
from progrl.training.schedule import rate
from progrl.training.scoring import Arithmetic, Scorer
from progrl.training.tools import ToolLearning
from progrl.training.update import Group, UpdateStats, policy_update, stats_row
from progrl.training.weighting import Weighting


@dataclass
class GrpoTrainer:
    """Trains `model` in place; killed anywhere and started again, it gives the same rows.

    With `grpo.async_level: 1` the next step's episodes are played in the background while the model
    is updated, by the weights of before. Only the weights lag: what a step's episodes teach memory,
    horizon and advice is taken up before the next ones begin. A checkpoint or a probe has nothing
    in the background.

    Attributes:
        model: a causal language model, started from the warm start's weights.
        sampler_agent, greedy_agent: the model as an agent, over an engine of its own.
        sync: gives the engine the model's weights as they now are.
        rest: told that nothing is sampled until then.
        world: domains and users of the training episodes, and the processes that share them.
        probe_world: those of the probe.
        tasks, probe: training tasks; validation tasks of the probe.
        encoder: of queries, for long-term memory.
        folder: of the checkpoints.
        record: told each step's row and the seconds by component.
        progress: told steps done, steps in all, and a line of text.
        tools: the tool policy that advises the agents, where one does; it learns too.
    """

    config: Config
    model: Any
    sampler_agent: ModelAgent
    greedy_agent: ModelAgent
    sync: Callable[[Any], None]
    world: World
    probe_world: World
    tasks: Sequence[Task]
    probe: Sequence[Task]
    encoder: Encoder
    seed: Seed
    folder: Path
    record: Callable[[Row, dict[str, float]], None]
    progress: Callable[[int, int, str], None]
    tools: ToolLearning | None = None
    rest: Callable[[], None] = lambda: None
    clock: Clock = field(default_factory=Clock)
    rows: list[Row] = field(default_factory=list)
    best: tuple[float, int] = (-1.0, 0)
    _best_digest: str = field(default="", init=False)
    _ahead: Ahead[list[Trajectory]] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        grpo, curriculum = self.config.grpo, self.config.curriculum
        self.horizon = Horizon(self.config.horizon)
        self.window = SuccessWindow(max(curriculum.window, grpo.tasks * grpo.group))
        self.sampler = Sampler(self.tasks, curriculum)
        memory = self.config.memory
        self.long = LongTermMemory(
            self.encoder.dimension, memory.capacity, memory.store_above, memory.similar_above
        )
        self.short = ShortTermMemory(memory.short)
        self.weighting = Weighting(
            self.config, self.world, self.encoder, self.seed.child("weights")
        )
        if self.tools is not None:
            self.tools.attach(self.long)
        arithmetic = Arithmetic.of(self.config.agent)
        self.optimiser = Optimiser(
            self.model,
            grpo.learning_rate,
            grpo.weight_decay,
            grpo.max_grad_norm,
            arithmetic,
            self.world.ranks,
        )
        self.reference = Scorer(copy.deepcopy(self.model), arithmetic).eval() if grpo.kl else None
        self.model.eval()  # no dropout: sampling and training see the same distribution

    def run(self) -> list[Row]:
        """Train to the end and leave the chosen weights in `model`; all rows."""
        try:
            self._train()
        finally:
            if self._ahead is not None:
                self._ahead.stop()
        if self.config.grpo.keep == "best" and self.world.ranks.leads:
            self._take_best()
        return self.rows

    def _train(self) -> None:
        grpo = self.config.grpo
        step = self._resume()
        self.sync(self.model)
        if not self.rows:
            self._probe(0, {"step": 0, "horizon": self.horizon.value, "turns": self.horizon.turns})
        while step < grpo.steps:
            step += 1
            row = self._step(step)
            if self._probed(step):
                self._probe(step, row)
            else:
                self._log(row)
            if step % grpo.checkpoint_every == 0:
                self._save(step)
            self.progress(step, grpo.steps, line(row))

    def _probed(self, step: int) -> bool:
        """Whether a probe follows the step."""
        return step % self.config.grpo.probe_every == 0 or step == self.config.grpo.steps

    def _take_best(self) -> None:
        try:
            kept = read_tensors(self._best_file, self._best_digest)
        except CheckpointError as error:
            raise CheckpointError(
                f"{self._best_file}: the best weights cannot be used: {error}. Remove "
                f"{self.folder} to train again; nothing else depends on it."
            ) from None
        self.model.load_state_dict(kept, strict=False)
        if self.tools is not None:
            self.tools.take(kept)

    def _step(self, step: int) -> Row:
        node, grpo, turns = self.seed.child("step", step), self.config.grpo, self.horizon.turns
        tasks, lag = self._tasks(node), int(self._ahead is not None)
        played = groups = self._groups(tasks, node, step)
        dead = [i for i, group in enumerate(groups) if not group.episodes(grpo)]
        if dead and grpo.dynamic_sampling:
            extra = self.sampler.draw(
                len(dead), turns, self.window.rate, node.child("more").random()
            )
            fresh = self._groups([t for t in extra if t not in tasks], node, step)
            groups = [g for i, g in enumerate(groups) if i not in dead] + fresh
            played = played + fresh  # what is replaced is evidence, and costs tokens, all the same
        trajectories = [t for group in played for t in group.trajectories]
        learned = self._learn_tools(played)  # with m_t as it was when it advised
        self._remember(trajectories, step)
        adapted = self._adapt(step, trajectories)
        weights = self.weighting.learn(trajectories, turns, node.child("weights").random())
        if grpo.async_level and not self._probed(step) and step % grpo.checkpoint_every:
            self._play_ahead(step + 1)
        share = rate(grpo.schedule, step - 1, grpo.steps)
        stats = self._update(groups, share, turns, node.child("update").random())
        return {
            **adapted,
            **episodes_row(played, self._parts(trajectories), grpo),
            **stats_row(stats),
            **learned,
            "learning_rate": share * grpo.learning_rate,
            "memory": len(self.long),
            "probe": None,
            **weights,
            **({"lag": lag} if grpo.async_level else {}),
        }

    def _update(
        self, groups: Sequence[Group], share: float, turns: int, random: Random
    ) -> UpdateStats | None:
        """Change the weights; the engine gets them unless it is playing ahead with the old ones."""
        with self.clock.measure("update"):
            if self._ahead is None:
                self.rest()
            stats = policy_update(
                self.optimiser,
                groups,
                self.config.grpo,
                share,
                self.config.engine.max_tokens * turns,
                random,
                self.reference,
                self.config.engine.correction,
            )
            if self._ahead is None:
                self.sync(self.model)
        return stats

    def _tasks(self, node: Seed) -> list[Task]:
        """The tasks of a step, whose node of the seed tree is given, as things now stand."""
        turns, random = self.horizon.turns, node.child("tasks").random()
        return self.sampler.draw(self.config.grpo.tasks, turns, self.window.rate, random)

    def _play_ahead(self, step: int) -> None:
        """Begin to play a step's episodes in the background, with the weights that the engine has.

        Nothing there talks to other processes, which all update the model at the time.
        """
        node, threads = self.seed.child("step", step), torch.get_num_threads()
        specs = self._specs(self._tasks(node), node, step)
        self._ahead = Ahead(
            self.world.playing(specs, self.sampler_agent, self.clock),
            lambda: torch.set_num_threads(threads),
        )

    def _played(self, tasks: Sequence[Task], node: Seed, step: int) -> list[Trajectory]:
        """The episodes of these tasks, played now, or in the background since the last update."""
        if self._ahead is None:
            specs = self._specs(tasks, node, step)
            with self.clock.measure("rollout"):
                return self.world.play(specs, self.sampler_agent, self.clock)
        with self.clock.measure("rollout"):  # what is left to wait for
            played = self.world.shared(self._ahead.result())
        self._ahead = None
        with self.clock.measure("update"):
            self.sync(self.model)
        return played

    def _specs(self, tasks: Sequence[Task], node: Seed, step: int) -> list[EpisodeSpec]:
        """A group of episodes of each task, on which the advisor is told to advise."""
        if self.sampler_agent.advisor is not None:
            self.sampler_agent.advisor.begin(node.child("advice"), [t.query for t in tasks])
        return [
            self.world.spec(
                task,
                node.child("task", task.id),
                node.child("task", task.id).child("episode", number),
                self.horizon.turns,
                {"step": step, "episode": number},
            )
            for task in tasks
            for number in range(self.config.grpo.group)
        ]

    def _groups(self, tasks: Sequence[Task], node: Seed, step: int) -> list[Group]:
        """A group of each task, played and scored."""
        trajectories, size = self._played(tasks, node, step), self.config.grpo.group
        check_faults(trajectories, self.config.grpo.max_fault_share)
        members = [trajectories[i : i + size] for i in range(0, len(trajectories), size)]
        reward, score = self.config.reward, self.config.grpo.score
        weights = [self.weighting.of(task) for task in tasks]
        return [Group.of(m, reward, score, w) for m, w in zip(members, weights, strict=True)]

    def _parts(self, trajectories: Sequence[Trajectory]) -> list[RewardParts]:
        return [structured_reward(t, self.config.reward) for t in trajectories if t.valid]

    def _remember(self, trajectories: Sequence[Trajectory], step: int) -> None:
        """Store successes in M_long (eq. 10)."""
        with self.clock.measure("memory"):
            wins = [t for t in trajectories if t.valid and t.success]
            queries = sorted({t.query for t in wins})
            if not queries:
                return
            vectors = dict(zip(queries, self._vectors(queries), strict=True))
            for trajectory in wins:
                reward = structured_reward(trajectory, self.config.reward).total
                self.long.store(Pattern.of(trajectory, reward, step), vectors[trajectory.query])

    def _vectors(self, queries: Sequence[str]) -> Vectors:
        """The queries' vectors [n, d]; each process encodes a part of them."""
        ranks = self.world.ranks
        parts = ranks.gather(self.encoder.encode(ranks.block(queries)).tobytes())
        return np.frombuffer(b"".join(parts), np.float32).reshape(len(queries), -1)

    def _learn_tools(self, groups: Sequence[Group]) -> Row:
        """The tool policy's own learning, where there is one."""
        if self.tools is None:
            return {}
        with self.clock.measure("tools"):
            return self.tools.learn(groups, self.config.grpo.normalisation)

    def _adapt(self, step: int, trajectories: Sequence[Trajectory]) -> Row:
        """Success window, horizon and M_short (eq. 7-8, 11)."""
        turns, value = self.horizon.turns, self.horizon.value
        counted = [t for t in trajectories if t.valid and t.expert_turns <= turns]
        self.window.add(t.success for t in counted)
        success = self.window.rate
        branch = self.horizon.update(success, self.window.counted)
        self.short.add(value, success or 0.0, step)
        return {
            "step": step,
            "horizon": value,
            "turns": turns,
            "branch": branch,
            "success_window": success,
            "window_episodes": len(self.window),
        }

    def _probe(self, step: int, row: Row) -> None:
        """Success on the validation tasks, greedy."""
        if self.greedy_agent.advisor is not None:
            queries = [task.query for task in self.probe]
            self.greedy_agent.advisor.begin(self.seed.child("probe"), queries)
        with self.clock.measure("probe"):
            specs = [
                self.probe_world.spec(
                    task,
                    self.seed.child("probe", task.id),
                    self.seed.child("probe", task.id).child("agent"),
                    self.config.grpo.probe_horizon,
                    {"probe": step},
                )
                for task in self.probe
            ]
            played = self.probe_world.play(specs, self.greedy_agent)
        check_faults(played, self.config.grpo.max_fault_share)
        valid = [t.success for t in played if t.valid]
        if not valid:
            raise DataError(
                "The probe has no episode to measure success by: there are no validation tasks, or "
                "all of their episodes were lost. Run `progrl generate` again."
            )
        row["probe"] = fmean(valid)
        if row["probe"] > self.best[0]:
            self.best = (row["probe"], step)
            if self.world.ranks.leads:
                kept = self.tools.kept() if self.tools else {}
                with new_file(self._best_file) as temporary:
                    own = self.model.named_parameters()
                    weights = {**{n: p for n, p in own if p.requires_grad}, **kept}
                    self._best_digest = write_tensors(temporary, weights)
        self._log(row)

    def _log(self, row: Row) -> None:
        self.rows.append(row)
        self.record(row, dict(self.clock.seconds))

    @property
    def _best_file(self) -> Path:
        return self.folder / f"best-{self.best[1]:08d}.safetensors"

    def _save(self, step: int) -> None:
        trained = self.optimiser.tensors()
        if not self.world.ranks.leads:
            return
        state = {
            "rows": self.rows,
            "best": list(self.best),
            "best_digest": self._best_digest,
            "horizon": self.horizon.state_dict(),
            "window": self.window.state_dict(),
            "short": self.short.state_dict(),
            "long": self.long.state_dict(),
            **self.weighting.state_dict(),
        }
        tensors = {
            **trained,
            **self.weighting.tensors(),
            "memory": self.long.tensors(),
        }
        if self.tools is not None:
            state["tools"] = self.tools.improver.state_dict()
            tensors["tools"] = self.tools.improver.tensors()
        save_checkpoint(self.folder, Checkpoint(step, tensors, state))
        for old in sorted(self.folder.glob("best-*.safetensors")):
            if old != self._best_file:
                old.unlink()

    def _resume(self) -> int:
        checkpoint = load_checkpoint(self.folder)
        if checkpoint is None:
            return 0
        state = checkpoint.state
        self.optimiser.load_tensors(checkpoint.tensors)
        self.rows, self.best = list(state["rows"]), (state["best"][0], state["best"][1])
        self._best_digest = state["best_digest"]
        self.horizon.load_state_dict(state["horizon"])
        self.window.load_state_dict(state["window"])
        self.short.load_state_dict(state["short"])
        self.long.load_state_dict(state["long"], checkpoint.tensors["memory"])
        self.weighting.load_state_dict(state, checkpoint.tensors)
        if self.tools is not None:
            self.tools.improver.load_state_dict(state["tools"], checkpoint.tensors["tools"])
        return checkpoint.step
