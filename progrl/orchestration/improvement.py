"""Learning from the agent's own episodes: regression on what it did, weighted by how it went."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from progrl.config.orchestration import ImprovementConfig
from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import Encoder, Vectors
from progrl.errors import CheckpointError, check_names
from progrl.memory import LongTermMemory
from progrl.orchestration.decisions import Decisions, decide
from progrl.orchestration.features import Catalogue
from progrl.orchestration.folds import FoldedPolicies
from progrl.orchestration.policy import ToolPolicy

_SLOTS = ("exp_avg", "exp_avg_sq", "step")


def regression_weights(advantages: Tensor, beta: float, most: float) -> Tensor:
    """min(exp(A / beta), w_max), shaped as `advantages`: never negative, so that no tool is pushed
    away without another to go to.

    >>> regression_weights(torch.tensor([0.0, -1000.0, 1000.0]), 0.5, 5.0).tolist()
    [1.0, 0.0, 5.0]
    """
    return (advantages / beta).exp().clamp(max=most)


def regression_loss(
    log_p: Tensor, log_gold: Tensor, chosen: Tensor, weights: Tensor, kl: float
) -> tuple[Tensor, Tensor]:
    """mean(w * -log P(chosen)) + kl * mean KL(P || P_gold), and that mean divergence.

    Args:
        log_p: of the policy, [n, |T|].
        log_gold: of the policy learned from gold, [n, |T|].
        chosen: [n].
        weights: [n], none negative.
    """
    taken = log_p.gather(1, chosen[:, None]).squeeze(1)
    divergence = (log_p.exp() * (log_p - log_gold)).sum(dim=1).mean()
    return -(weights * taken).mean() + kl * divergence, divergence


class Improver:
    """Keeps improving fitted policies, in place; each part learns from its own tasks alone.

    Args:
        policies: as learned from gold, which they are held close to.
        config: weights, rate and passes.
        catalogues: tools by domain.
        encoder: the one that the policies were fitted with.
    """

    def __init__(
        self,
        policies: FoldedPolicies,
        config: ImprovementConfig,
        catalogues: Mapping[str, Catalogue],
        encoder: Encoder,
    ) -> None:
        policies.whole.check_encoder(encoder)
        self.policies, self._config = policies, config
        self._catalogues, self._encoder = catalogues, encoder
        self._gold = [deepcopy(policy).requires_grad_(False) for policy in policies.all]
        self._adams = [
            torch.optim.AdamW(p.parameters(), config.learning_rate, weight_decay=0.0, foreach=True)
            for p in policies.all
        ]

    def update(
        self,
        trajectories: Sequence[Trajectory],
        advantages: Sequence[float],
        memory: LongTermMemory | None = None,
    ) -> dict[str, float]:
        """Learn from one training step's episodes.

        Args:
            trajectories: valid ones, of tasks to train on.
            advantages: A of each episode.
            memory: for m_t, of which this counts as a retrieval; without one m_t is 0.

        Returns:
            Figures of the whole policy before the last pass: `loss`, `kl`, `weight` (the mean),
            `weight_share_most` (decisions at w_max), `agreement` (decisions that it would have
            taken too), and `decisions`; the last alone where there are none.
        """
        found: dict[str, Vectors] = {}

        def remember(number: int, vector: Vectors) -> Vectors:
            task = trajectories[number].task_id
            if task not in found:  # episodes of a group have one query
                found[task] = np.zeros_like(vector) if memory is None else memory.context(vector)
            return found[task]

        whole = self.policies.whole
        decisions = decide(trajectories, self._catalogues, whole.context, self._encoder, remember)
        per_episode = torch.tensor(list(advantages), dtype=torch.float32)
        if len(per_episode) != len(trajectories):
            raise ValueError(f"{len(trajectories)} episodes, {len(per_episode)} advantages")
        weights = regression_weights(per_episode, self._config.beta, self._config.most_weight)
        figures: dict[str, float] = {}
        for number, policy in enumerate(self.policies.all):
            saw = torch.tensor([self.policies.saw(number, t.task_id) for t in trajectories])
            rows = decisions.of_episodes(saw)
            if len(rows):
                figures = self._improve(number, policy, decisions, rows, weights)
        return {"decisions": float(len(decisions)), **figures}  # the whole, which is last, saw all

    def _improve(
        self,
        number: int,
        policy: ToolPolicy,
        decisions: Decisions,
        rows: Tensor,
        per_episode: Tensor,
    ) -> dict[str, float]:
        weights, chosen = per_episode[decisions.episode[rows]], decisions.chosen[rows]
        with torch.no_grad():
            log_gold = decisions.log_probabilities(self._gold[number], rows)
        adam = self._adams[number]
        for _ in range(self._config.passes):
            log_p = decisions.log_probabilities(policy, rows)
            loss, kl = regression_loss(log_p, log_gold, chosen, weights, self._config.kl)
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        return {
            "loss": float(loss.detach()),
            "kl": float(kl.detach()),
            "weight": float(weights.mean()),
            "weight_share_most": float((weights >= self._config.most_weight).float().mean()),
            "agreement": float((log_p.argmax(dim=1) == chosen).float().mean()),
        }

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed run needs beside `tensors` and the policies learned from gold."""
        return {"folds": len(self.policies.parts)}

    def tensors(self) -> dict[str, Tensor]:
        """The policies' weights and their optimisers' state."""
        state: dict[str, Tensor] = {}
        for number, (policy, adam) in enumerate(zip(self.policies.all, self._adams, strict=True)):
            for name, parameter in policy.named_parameters():
                state[f"{number}/weights/{name}"] = parameter.detach()
                for slot, value in adam.state.get(parameter, {}).items():
                    state[f"{number}/{slot}/{name}"] = value
        return state

    def load_state_dict(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Take up a state.

        Raises:
            CheckpointError: it has other names or shapes, or another number of folds.
        """
        check_names(state, {"folds"}, "tool policies")
        own = {name: value for name, value in self.tensors().items() if "/weights/" in name}
        slots = {name.replace("/weights/", f"/{s}/") for name in own for s in _SLOTS}
        fits = (
            state["folds"] == len(self.policies.parts)
            and set(own) <= set(tensors) <= set(own) | slots
            and all(tensors[name].shape == value.shape for name, value in own.items())
        )
        if not fits:
            raise CheckpointError(
                "The checkpoint's tool policies are others than this run's. Set orchestration as "
                "it was, or remove the run's folder to start again."
            )
        for number, (policy, adam) in enumerate(zip(self.policies.all, self._adams, strict=True)):
            for name, parameter in policy.named_parameters():
                parameter.data.copy_(tensors[f"{number}/weights/{name}"])
                saved = {slot: tensors.get(f"{number}/{slot}/{name}") for slot in _SLOTS}
                if all(value is not None for value in saved.values()):
                    adam.state[parameter] = {
                        slot: value.clone() for slot, value in saved.items() if value is not None
                    }
