"""What GRPO's episodes are scored with: fixed weights, or learned ones by domain (eq. 14-15)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from random import Random
from statistics import fmean
from typing import Any

from torch import Tensor

from progrl.config import Config
from progrl.config.training import LearnedWeights
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import Encoder
from progrl.rewards import Weights, fixed_weights
from progrl.rewards.weights import DomainWeights, observe
from progrl.rollout import World
from progrl.seeds import Seed

_KEPT = "weights"  # of the checkpoint's state and tensors


class Weighting:
    """The weights of the reward in training; frozen within a step.

    Args:
        world: whose domains' descriptions are embedded, where weights are learned.
        seed: of the first weights.
    """

    def __init__(self, config: Config, world: World, encoder: Encoder, seed: Seed) -> None:
        self._config = config.reward
        self._learned: DomainWeights | None = None
        if isinstance(config.reward.weights, LearnedWeights):
            names = config.domains.train
            rows = encoder.encode([world.domains[name].description for name in names])
            embeddings = {name: row.tolist() for name, row in zip(names, rows, strict=True)}
            self._learned = DomainWeights(config.reward.weights, embeddings, seed)

    def of(self, task: Task | Trajectory) -> Weights:
        """The weights that episodes of a training task are scored with."""
        if self._learned is None:
            return fixed_weights(self._config)
        return self._learned.weights(task.domain, task.level)

    def learn(
        self, trajectories: Sequence[Trajectory], turns: int, random: Random
    ) -> dict[str, Any]:
        """Fit the weights of the next step, and tell of those of this one.

        A task that nobody could solve in `turns` tells nothing of what foretells success, and is
        left out of the fit.

        Args:
            trajectories: all of the step's episodes.
            turns: the most that they could take.
            random: where each is cut.

        Returns:
            `weights`, means over the domain's valid episodes, and `calibration`, by domain; empty
            with fixed weights.
        """
        if self._learned is None:
            return {}
        valid = [t for t in trajectories if t.valid]
        used = self._means(valid)
        seen = [observe(t, self._config, random) for t in valid if t.expert_turns <= turns]
        calibrations = [asdict(c) for c in self._learned.update(seen)]
        return {"weights": used, "calibration": {c.pop("domain"): c for c in calibrations}}

    def _means(self, valid: Sequence[Trajectory]) -> dict[str, dict[str, float]]:
        rows: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
        for trajectory in valid:
            rows[trajectory.domain].append(asdict(self.of(trajectory)))
        return {
            name: {part: fmean(row[part] for row in rows[name]) for part in rows[name][0]}
            for name in sorted(rows)
        }

    def tensors(self) -> dict[str, Mapping[str, Tensor]]:
        """What a checkpoint keeps, as groups of tensors; empty with fixed weights."""
        return {_KEPT: self._learned.tensors()} if self._learned else {}

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the tensors, under a name of its own."""
        return {_KEPT: self._learned.state_dict()} if self._learned else {}

    def load_state_dict(
        self, state: Mapping[str, Any], tensors: Mapping[str, Mapping[str, Tensor]]
    ) -> None:
        """Take up a whole checkpoint's state.

        Raises:
            CheckpointError: its domain weights are not those of this run.
        """
        if self._learned:
            self._learned.load_state_dict(state.get(_KEPT, {}), tensors.get(_KEPT, {}))
