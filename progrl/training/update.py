"""One policy update: from groups of trajectories to new weights (PMT, eq. 5-6)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, pairwise
from random import Random
from typing import Any

import torch
from torch import Tensor

from progrl.config.credit import CreditConfig, EqualCredit, ScoreConfig, TreeCredit
from progrl.config.training import GrpoConfig, RewardConfig
from progrl.dialogue.codec import Bias
from progrl.dialogue.trajectories import Trajectory
from progrl.errors import DataError
from progrl.rewards import (
    Weights,
    fixed_weights,
    group_advantages,
    rescale,
    structured_reward,
    trajectory_score,
    tree_advantages,
    turn_advantages,
    turn_credits,
    turn_reward_bounds,
    turn_rewards,
)
from progrl.training.batching import Example, gather, microbatches
from progrl.training.mismatch import Mismatch, corrected, rescored
from progrl.training.objective import clipped_loss, kl_penalty, token_weights
from progrl.training.optimiser import Optimiser
from progrl.training.scoring import Scorer


@dataclass(frozen=True, slots=True)
class Episode:
    """A trajectory with what the loss needs of it.

    Attributes:
        example: ids and mask.
        old: log-probabilities at sampling time, one a sampled token.
        advantages: one a sampled token.
        importance: what each sampled token weighs, where another program has sampled.
    """

    example: Example
    old: Sequence[float]
    advantages: Sequence[float]
    importance: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The episodes of one task.

    Attributes:
        trajectories: all of them.
        scores: S of the valid ones in order.
        rewards: their turn rewards, rescaled to [0, 1]; read by turn credits alone.
    """

    trajectories: Sequence[Trajectory]
    scores: Sequence[float]
    rewards: Sequence[Sequence[float]] = ()

    @classmethod
    def of(
        cls,
        trajectories: Sequence[Trajectory],
        reward: RewardConfig,
        score: ScoreConfig,
        weights: Weights | None = None,
    ) -> "Group":
        """The group of these episodes with their scores and turn rewards, by `weights` or, where
        there are none, by those of the configuration."""
        weights = weights or fixed_weights(reward)
        valid = [t for t in trajectories if t.valid]
        rewards = [turn_rewards(t, reward, weights) for t in valid]
        scores = [
            trajectory_score(row, weights.reward(structured_reward(t, reward)), score)
            for t, row in zip(valid, rewards, strict=True)
        ]
        rescaled = [
            rescale(row, turn_reward_bounds(weights, t.reward_bounds))
            for t, row in zip(valid, rewards, strict=True)
        ]
        return cls(trajectories, scores, rescaled)

    def episodes(self, config: GrpoConfig) -> list[Episode]:
        """The valid episodes with advantages; empty where the group carries no signal."""
        scored = group_advantages(self.scores, config.normalisation)
        if scored is None:
            return []
        valid = [t for t in self.trajectories if t.valid]
        examples = [example(t) for t in valid]
        shared = self._shared([e for e, _ in examples], scored.tolist(), valid, config.credit)
        return [Episode(e, old, row) for (e, old), row in zip(examples, shared, strict=True)]

    def _shared(
        self,
        examples: Sequence[Example],
        scored: Sequence[float],
        valid: Sequence[Trajectory],
        credit: CreditConfig,
    ) -> list[list[float]]:
        """Each valid episode's advantage z, shared among its sampled tokens."""
        match credit:
            case TreeCredit():
                rows = tree_advantages([e.ids for e in examples], scored)
                return [
                    [a for a, learned in zip(row, e.mask, strict=True) if learned]
                    for e, row in zip(examples, rows, strict=True)
                ]
            case EqualCredit():
                return [[z] * e.learned for e, z in zip(examples, scored, strict=True)]
        shared = []
        for trajectory, z, rewards in zip(valid, scored, self.rewards, strict=True):
            tokens = [len(turn.sampled) for turn in trajectory.turns]
            row = turn_advantages(z, turn_credits(rewards, credit), tokens, credit.combine)
            shared.append([a for a, n in zip(row, tokens, strict=True) for _ in range(n)])
        return shared


def example(trajectory: Trajectory) -> tuple[Example, list[float]]:
    """A trajectory as training sees it: the very ids that were sampled, and how likely they were.

    Raises:
        DataError: ids, mask and log-probabilities do not fit, or nothing was sampled; the message
            names the episode. Such an episode is never trained on silently.
    """
    ids, mask = trajectory.tokens()
    bias: dict[int, Bias] = {}
    read = 0
    for turn in trajectory.turns:
        if turn.bias and turn.sampled:
            bias[read + len(turn.context)] = turn.bias
        read += len(turn.context) + len(turn.sampled)
    old = [p for turn in trajectory.turns for p in turn.logprobs]
    if not old or sum(mask) != len(old) or (mask and mask[0]):
        raise DataError(
            f"Episode of task {trajectory.task_id} (seed {trajectory.seed}) has {sum(mask)} "
            f"sampled tokens but {len(old)} log-probabilities: it cannot be trained on."
        )
    return Example(ids, mask, bias), old


@dataclass(frozen=True, slots=True)
class UpdateStats:
    """Means over the sampled tokens of one training step.

    Attributes:
        entropy: in nats, of the policy that sampled; estimated by -log p of what it sampled.
        kl: in nats, of the policy before and after.
        mismatch: of sampler and trainer, where they are two programs.
    """

    loss: float
    entropy: float
    clip_share: float
    kl: float
    gradient_norm: float
    tokens: int
    mismatch: Mismatch | None = None


def policy_update(
    optimiser: Optimiser,
    groups: Sequence[Group],
    config: GrpoConfig,
    share: float,
    longest: int,
    random: Random,
    reference: Scorer | None = None,
    cap: float | None = None,
) -> UpdateStats | None:
    """Update the policy once a minibatch of groups.

    Args:
        share: learning rate as a share of the peak.
        longest: most tokens that an episode could sample.
        random: shuffles the groups.
        reference: the model of the KL penalty.
        cap: most that a token may weigh where another program than the trainer has sampled; None
            where the trainer's own log-probabilities came with the tokens.

    Returns:
        None where no group carries a signal; then the weights stay as they are.
    """
    episodes = [group.episodes(config) for group in groups]
    live = [members for members in episodes if members]
    if not live:
        return None
    random.shuffle(live)
    mismatch = None
    if cap is not None:
        live, mismatch = _as_the_trainer_sees(optimiser, live, config, cap)
    sums = _Sums()
    for part in range(config.minibatches):
        minibatch = live[part :: config.minibatches]
        if minibatch:
            _accumulate(optimiser, minibatch, config, longest, reference, sums)
            sums.norms.append(optimiser.step(share))
    everything = [e for members in live for e in members]
    return replace(sums.stats(_moved(optimiser, everything, config)), mismatch=mismatch)


def _as_the_trainer_sees(
    optimiser: Optimiser, groups: Sequence[Sequence[Episode]], config: GrpoConfig, cap: float
) -> tuple[list[list[Episode]], Mismatch]:
    """The groups with the trainer's log-probabilities as the old ones, and each token's weight."""
    episodes = [e for members in groups for e in members]
    examples = [e.example for e in episodes]
    budget = config.tokens_per_microbatch
    own = rescored(optimiser, examples, _trees(groups), budget, config.temperature)
    weights, mismatch = corrected(own, [e.old for e in episodes], cap)
    fresh = iter(
        Episode(e.example, old, e.advantages, row)
        for e, old, row in zip(episodes, own, weights, strict=True)
    )
    return [[next(fresh) for _ in members] for members in groups], mismatch


def _trees(groups: Sequence[Sequence[Episode]]) -> list[range]:
    """The places of each group's episodes among those of all groups."""
    starts = [0, *accumulate(len(members) for members in groups)]
    return [range(a, b) for a, b in pairwise(starts)]


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
    groups: Sequence[Sequence[Episode]],
    config: GrpoConfig,
    longest: int,
    reference: Scorer | None,
    sums: _Sums,
) -> None:
    """Add up the gradients of the groups' episodes; what a group has in common is read once."""
    episodes = [e for members in groups for e in members]
    of_group = [number for number, members in enumerate(groups) for _ in members]
    rows = token_weights([len(e.old) for e in episodes], config.aggregation, longest)
    sums.entropy -= sum(sum(e.old) for e in episodes)
    sums.tokens += sum(len(e.old) for e in episodes)
    if reference is None:  # else every token pays for how far it strays
        pairs = [_credited(e, w) for e, w in zip(episodes, rows, strict=True)]
        of_group = [number for number, (e, _) in zip(of_group, pairs, strict=True) if e.old]
        episodes, rows = [e for e, _ in pairs if e.old], [w for e, w in pairs if e.old]
    trees: dict[int, list[int]] = {}
    for position, number in enumerate(of_group):
        trees.setdefault(number, []).append(position)
    examples, ranks = [e.example for e in episodes], optimiser.ranks
    loss_sum = clipped_sum = 0.0
    for micro in microbatches(examples, config.tokens_per_microbatch, trees.values(), ranks):
        logprobs = optimiser.scorer(micro.inputs, config.temperature)
        old = gather(micro, [e.old for e in episodes])
        advantages = gather(micro, [e.advantages for e in episodes])
        loss, clipped = clipped_loss(logprobs, old, advantages, config.clip_low, config.clip_high)
        if reference is not None:
            with torch.no_grad():
                frozen = reference(micro.inputs, config.temperature)
            loss = loss + config.kl * kl_penalty(logprobs, frozen)
        if episodes[0].importance is not None:
            loss = loss * gather(micro, [e.importance or () for e in episodes])
        total = (loss * gather(micro, rows)).sum()
        optimiser.backward(total)
        loss_sum += total.item()
        clipped_sum += clipped.sum().item()
    loss_sum, clipped_sum = ranks.total([loss_sum, clipped_sum])
    sums.loss += loss_sum
    sums.clipped += clipped_sum


def _credited(episode: Episode, weights: Sequence[float]) -> tuple[Episode, list[float]]:
    """The episode and its weights without the tokens whose advantage is 0: they add nothing to
    loss or gradient. After the last that counts nothing needs to be read either."""
    whole = episode.example
    learned = [i for i, m in enumerate(whole.mask) if m]
    kept = [k for k, advantage in enumerate(episode.advantages) if advantage]
    places = {learned[k] for k in kept}
    end = max(places, default=-1) + 1
    example = Example(whole.ids[:end], [i in places for i in range(end)], whole.bias)
    old, advantages, left = (
        [row[k] for k in kept] for row in (episode.old, episode.advantages, weights)
    )
    importance = episode.importance and [episode.importance[k] for k in kept]
    return Episode(example, old, advantages, importance), left


def _moved(optimiser: Optimiser, episodes: Sequence[Episode], config: GrpoConfig) -> float:
    """How far the update moved the policy: mean KL(before || after) over the sampled tokens.

    Estimated from the tokens sampled before, on at most one micro-batch to keep it cheap.
    """
    examples = [e.example for e in episodes]
    micro = next(microbatches(examples, config.tokens_per_microbatch))
    with torch.no_grad():
        after = optimiser.scorer(micro.inputs, config.temperature)
    before: Tensor = gather(micro, [e.old for e in episodes])
    return float(kl_penalty(before, after).mean())


def stats_row(stats: UpdateStats | None) -> dict[str, Any]:
    """The statistics under the names of metrics/grpo.jsonl; None where nothing was updated."""
    names = ("loss", "entropy", "clip_share", "kl", "gradient_norm")
    row = {name: getattr(stats, name) if stats else None for name in names}
    if stats is not None and stats.mismatch is not None:
        told = asdict(stats.mismatch)
        row |= {f"mismatch_{name}": value for name, value in told.items()}
    return row
