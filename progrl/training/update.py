"""One policy update: from groups of trajectories to new weights (PMT, eq. 5-6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor

from progrl.config.training import GrpoConfig
from progrl.dialogue.trajectories import Trajectory
from progrl.errors import DataError
from progrl.rewards import group_advantages
from progrl.training.batching import Example, gather, microbatches
from progrl.training.objective import clipped_loss, kl_penalty, token_weights
from progrl.training.optimiser import Optimiser
from progrl.training.scoring import Scorer


@dataclass(frozen=True, slots=True)
class Episode:
    """A trajectory with what the loss needs of it.

    Attributes:
        example: ids and mask.
        old: log-probabilities at sampling time, one a sampled token.
        advantage: z, the same for all tokens of the episode.
    """

    example: Example
    old: Sequence[float]
    advantage: float


@dataclass(frozen=True, slots=True)
class Group:
    """The episodes of one task: all trajectories, and the scores of the valid ones in order."""

    trajectories: Sequence[Trajectory]
    scores: Sequence[float]

    def episodes(self, config: GrpoConfig) -> list[Episode]:
        """The valid episodes with advantages; empty where the group carries no signal."""
        advantages = group_advantages(self.scores, config.normalisation)
        if advantages is None:
            return []
        valid = [t for t in self.trajectories if t.valid]
        return [
            episode(trajectory, float(z)) for trajectory, z in zip(valid, advantages, strict=True)
        ]


def episode(trajectory: Trajectory, advantage: float) -> Episode:
    """A trajectory as training sees it: the very ids that were sampled.

    Raises:
        DataError: ids, mask and log-probabilities do not fit, or nothing was sampled; the message
            names the episode. Such an episode is never trained on silently.
    """
    ids, mask = trajectory.tokens()
    old = [p for turn in trajectory.turns for p in turn.logprobs]
    if not old or sum(mask) != len(old) or (mask and mask[0]):
        raise DataError(
            f"Episode of task {trajectory.task_id} (seed {trajectory.seed}) has {sum(mask)} "
            f"sampled tokens but {len(old)} log-probabilities: it cannot be trained on."
        )
    return Episode(Example(ids, mask), old, advantage)


@dataclass(frozen=True, slots=True)
class UpdateStats:
    """Means over the tokens of one training step; `kl` in nats, of the policy before and after."""

    loss: float
    entropy: float
    clip_share: float
    kl: float
    gradient_norm: float
    tokens: int


def policy_update(
    optimiser: Optimiser,
    groups: Sequence[Group],
    config: GrpoConfig,
    share: float,
    longest: int,
    random: Random,
    reference: Scorer | None = None,
) -> UpdateStats | None:
    """Update the policy once a minibatch of groups.

    Args:
        share: learning rate as a share of the peak.
        longest: most tokens that an episode could sample.
        random: shuffles the groups.
        reference: the model of the KL penalty.

    Returns:
        None where no group carries a signal; then the weights stay as they are.
    """
    episodes = [group.episodes(config) for group in groups]
    live = [members for members in episodes if members]
    if not live:
        return None
    random.shuffle(live)
    sums = _Sums()
    for part in range(config.minibatches):
        minibatch = [e for members in live[part :: config.minibatches] for e in members]
        if minibatch:
            _accumulate(optimiser, minibatch, config, longest, reference, sums)
            sums.norms.append(optimiser.step(share))
    everything = [e for members in live for e in members]
    return sums.stats(_moved(optimiser, everything, config))


class _Sums:
    def __init__(self) -> None:
        self.loss = self.entropy = self.clipped = 0.0
        self.tokens = 0
        self.norms: list[float] = []

    def stats(self, kl: float) -> UpdateStats:
        n = max(1, self.tokens)
        norm = sum(self.norms) / len(self.norms)
        return UpdateStats(
            self.loss / len(self.norms), self.entropy / n, self.clipped / n, kl, norm, self.tokens
        )


def _accumulate(
    optimiser: Optimiser,
    episodes: Sequence[Episode],
    config: GrpoConfig,
    longest: int,
    reference: Scorer | None,
    sums: _Sums,
) -> None:
    examples = [e.example for e in episodes]
    lengths = [len(e.old) for e in episodes]
    weights = token_weights(lengths, config.aggregation, longest)
    advantages = [[e.advantage] * len(e.old) for e in episodes]
    for micro in microbatches(examples, config.tokens_per_microbatch):
        logprobs, entropy = optimiser.scorer(micro.ids, micro.mask, config.temperature)
        old = gather(micro, [e.old for e in episodes])
        loss, clipped = clipped_loss(
            logprobs, old, gather(micro, advantages), config.clip_low, config.clip_high
        )
        if reference is not None:
            with torch.no_grad():
                frozen, _ = reference(micro.ids, micro.mask, config.temperature)
            loss = loss + config.kl * kl_penalty(logprobs, frozen)
        total = (loss * gather(micro, weights)).sum()
        optimiser.backward(total)
        sums.loss += total.item()
        sums.entropy += entropy.sum().item()
        sums.clipped += clipped.sum().item()
        sums.tokens += len(logprobs)


def _moved(optimiser: Optimiser, episodes: Sequence[Episode], config: GrpoConfig) -> float:
    """How far the update moved the policy: mean KL(before || after) over the sampled tokens.

    Estimated from the tokens sampled before, on at most one micro-batch to keep it cheap.
    """
    examples = [e.example for e in episodes]
    micro = next(microbatches(examples, config.tokens_per_microbatch))
    with torch.no_grad():
        after, _ = optimiser.scorer(micro.ids, micro.mask, config.temperature)
    before: Tensor = gather(micro, [e.old for e in episodes])
    return float(kl_penalty(before, after).mean())


def stats_row(stats: UpdateStats | None) -> dict[str, Any]:
    """The statistics under the names of metrics/grpo.jsonl; None where nothing was updated."""
    names = ("loss", "entropy", "clip_share", "kl", "gradient_norm")
    return {name: getattr(stats, name) if stats else None for name in names}
