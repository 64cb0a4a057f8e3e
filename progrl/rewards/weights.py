"""Domain weights: what each component of the reward is worth in a domain (PMT, eq. 14-15).

Maximising the reward over its weights would move all weight to the easiest component, and ranking
finished episodes by success all to the task, which is success. So the weights are fitted to predict
how an episode ends from its other components as they stood at a random turn before its end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as log_loss

from progrl.config.training import LearnedWeights, RewardConfig
from progrl.dialogue.trajectories import Trajectory
from progrl.errors import CheckpointError, check_names
from progrl.rewards.structured import Weights, turn_efficiency
from progrl.seeds import Seed

EMBEDDING, OUTCOMES = 256, 100
FEATURES = EMBEDDING + 1 + OUTCOMES
COMPONENTS = 4
_SPREAD = 0.05  # of components in [0, 1]: smaller differences than this are not blown up
_BINS = 10


@dataclass(frozen=True, slots=True)
class Observation:
    """What an episode says about the components.

    Attributes:
        standing: progress, efficiency and r_domain as they stood at a turn before the end; None
            for an episode of a single turn, which has none.
    """

    domain: str
    level: int
    success: bool
    standing: tuple[float, float, float] | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well a step's episodes of one domain were foreseen, before the fit saw them.

    Attributes:
        episodes: those of more than one turn.
        predicted, observed: mean probability of success, and success.
        loss: log loss in nats.
        error: mean distance of predicted and observed in ten bins of probability, by episodes.
    """

    domain: str
    episodes: int
    predicted: float
    observed: float
    loss: float
    error: float


def observe(trajectory: Trajectory, config: RewardConfig, random: Random) -> Observation:
    """A valid episode as it stood after a random one of its turns but the last."""
    turns = trajectory.turns
    standing = None
    if len(turns) > 1:
        at = random.randrange(1, len(turns))
        progress = sum(turn.gain for turn in turns[:at])
        efficiency = turn_efficiency(at, trajectory.expert_turns, config)
        standing = (progress, efficiency, turns[at - 1].domain)
    return Observation(trajectory.domain, trajectory.level, trajectory.success, standing)


class _Network(nn.Module):
    def __init__(self, hidden: int, random: torch.Generator) -> None:
        super().__init__()
        self.hidden = nn.Linear(FEATURES, hidden)
        self.out = nn.Linear(hidden, COMPONENTS)
        self.base = nn.Linear(2, 1)
        with torch.no_grad():
            for parameter in self.parameters():  # all but the first, so that shares start alike
                parameter.zero_()
            self.hidden.weight.normal_(0.0, (2 / FEATURES) ** 0.5, generator=random)

    def forward(self, features: Tensor) -> Tensor:
        """softmax(MLP): [N, 357] -> [N, 4], of task, progress, efficiency, domain."""
        logits: Tensor = self.out(torch.relu(self.hidden(features)))
        return torch.softmax(logits, dim=-1)


class DomainWeights:
    """w = f e_task + (1 - f) softmax(MLP(e_d, complexity, outcomes)), 357 -> 4; frozen in a step.

    Fitted as P(success) = sigmoid(base + evidence * sum of s_k x_k) over progress, efficiency and
    r_domain, with s the softmax, x_k standardised within the domain, and base linear in complexity
    and recent success. What none of the three earns falls to the task.

    Args:
        embeddings: of the domains' descriptions, by name, in any one width; projected to 256.
        seed: of the projection and of the network's first weights.
    """

    def __init__(
        self, config: LearnedWeights, embeddings: Mapping[str, Sequence[float]], seed: Seed
    ) -> None:
        self.config = config
        self._domains = sorted(embeddings)
        random = torch.Generator().manual_seed(seed.value)
        rows = torch.tensor([[float(v) for v in embeddings[d]] for d in self._domains])
        projection = torch.randn(rows.shape[1], EMBEDDING, generator=random)
        self._embedded = nn.functional.normalize(rows @ projection, dim=1)
        self._net = _Network(config.hidden, random)
        self._outcomes: dict[str, list[int]] = {d: [] for d in self._domains}
        self._standard = torch.tensor([[[0.5] * 3, [0.5] * 3]] * len(self._domains))
        self._window = {
            "features": torch.zeros(0, FEATURES),
            "standing": torch.zeros(0, COMPONENTS - 1),
            "success": torch.zeros(0),
            "domain": torch.zeros(0, dtype=torch.long),
        }

    def weights(self, domain: str, level: int) -> Weights:
        """The weights of a training domain at a complexity level; the same until `update`."""
        with torch.no_grad():
            shares = self._net(self._features(domain, level)[None])[0].double()
        floor = self.config.floor
        task, *others = ((1 - floor) * shares / shares.sum()).tolist()
        return Weights(floor + task, *others)

    def update(self, observations: Sequence[Observation]) -> list[Calibration]:
        """Take in a training step's valid episodes and fit the weights of the next.

        Returns:
            How these episodes were foreseen, by domain.
        """
        seen = [(o, o.standing) for o in observations if o.standing is not None]
        calibrations = []
        if seen:
            fresh = {
                "features": torch.stack([self._features(o.domain, o.level) for o, _ in seen]),
                "standing": torch.tensor([standing for _, standing in seen]),
                "success": torch.tensor([float(o.success) for o, _ in seen]),
                "domain": torch.tensor([self._domains.index(o.domain) for o, _ in seen]),
            }
            calibrations = self._calibrate(fresh)
            for name, old in self._window.items():
                self._window[name] = torch.cat([old, fresh[name]])[-self.config.window :]
        for o in observations:
            self._outcomes[o.domain] = [*self._outcomes[o.domain], int(o.success)][-OUTCOMES:]
        if len(self._window["success"]) >= self.config.min_episodes:
            self._fit()
        return calibrations

    def _features(self, domain: str, level: int) -> Tensor:
        """e_d, level / 5, and the last outcomes (1, -1; 0 for none), the newest last: [357]."""
        outcomes = torch.zeros(OUTCOMES)
        if past := self._outcomes[domain]:
            outcomes[-len(past) :] = 2 * torch.tensor(past, dtype=torch.float32) - 1
        embedded = self._embedded[self._domains.index(domain)]
        return torch.cat([embedded, torch.tensor([level / 5]), outcomes / OUTCOMES**0.5])

    def _logits(self, batch: Mapping[str, Tensor], shares: Tensor) -> Tensor:
        """Log-odds of success, [N]."""
        features = batch["features"]
        recent = features[:, -OUTCOMES:].mean(1, keepdim=True) * OUTCOMES**0.5
        base: Tensor = self._net.base(
            torch.cat([features[:, EMBEDDING : EMBEDDING + 1], recent], 1)
        )
        mean, spread = self._standard[batch["domain"]].unbind(1)
        standing = (batch["standing"] - mean) / spread
        return base[:, 0] + self.config.evidence * (shares[:, 1:] * standing).sum(1)

    def _fit(self) -> None:
        batch, config = self._window, self.config
        for number in sorted(set(batch["domain"].tolist())):
            rows = batch["standing"][batch["domain"] == number]
            spread = rows.std(0, unbiased=False).clamp_min(_SPREAD)
            self._standard[number] = torch.stack([rows.mean(0), spread])
        adam = torch.optim.Adam(self._net.parameters(), lr=config.learning_rate)
        for _ in range(config.passes):
            shares = self._net(batch["features"])
            loss = log_loss(self._logits(batch, shares), batch["success"])
            adam.zero_grad()
            (loss + config.price * shares[:, 1:].sum(1).mean()).backward()
            adam.step()

    def _calibrate(self, batch: Mapping[str, Tensor]) -> list[Calibration]:
        with torch.no_grad():
            logits = self._logits(batch, self._net(batch["features"]))
        rows = []
        for number, name in enumerate(self._domains):
            mine = batch["domain"] == number
            if mine.any():
                rows.append(_calibration(name, logits[mine], batch["success"][mine]))
        return rows

    def tensors(self) -> dict[str, Tensor]:
        """Network, standardisation and window, for a checkpoint."""
        return {
            **{f"net/{name}": p.detach().clone() for name, p in self._net.named_parameters()},
            **{f"window/{name}": rows.clone() for name, rows in self._window.items()},
            "standard": self._standard.clone(),
        }

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs beside the tensors."""
        return {"outcomes": {d: list(past) for d, past in self._outcomes.items()}}

    def load_state_dict(self, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Take up a checkpoint; CheckpointError if it is of other domains or another network."""
        check_names(state, {"outcomes"}, "domain weights")
        check_names(state["outcomes"], set(self._domains), "domains with weights")
        mine = self.tensors()
        check_names(tensors, set(mine), "domain weights")
        rows = len(tensors["window/success"])
        for name, tensor in mine.items():
            shape = (rows, *tensor.shape[1:]) if name.startswith("window/") else tensor.shape
            if tensors[name].shape != shape or rows > self.config.window:
                raise CheckpointError(
                    f"The checkpoint's domain weights do not fit: {name} has shape "
                    f"{tuple(tensors[name].shape)}. Set reward.weights as it was, or remove the "
                    "run's folder to start again."
                )
        with torch.no_grad():
            for name, parameter in self._net.named_parameters():
                parameter.copy_(tensors[f"net/{name}"])
        self._window = {name: tensors[f"window/{name}"].clone() for name in self._window}
        self._standard = tensors["standard"].clone()
        self._outcomes = {d: list(state["outcomes"][d]) for d in self._domains}


def _calibration(domain: str, logits: Tensor, success: Tensor) -> Calibration:
    predicted = torch.sigmoid(logits)
    edges = torch.linspace(0, 1, _BINS + 1)
    edges[-1] = 2.0  # 1 belongs to the last bin
    error = 0.0
    for low, high in pairwise(edges.tolist()):
        within = (predicted >= low) & (predicted < high)
        error += abs(float((predicted[within] - success[within]).sum())) / len(success)
    return Calibration(
        domain,
        len(success),
        float(predicted.mean()),
        float(success.mean()),
        float(log_loss(logits, success)),
        error,
    )
