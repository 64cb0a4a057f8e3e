"""GRPO's objective (PMT, eq. 6), as pure functions over learned tokens."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

Aggregation = Literal["token_mean", "sequence_mean", "dr_grpo"]


def clipped_loss(
    logprobs: Tensor, old: Tensor, advantages: Tensor, low: float, high: float
) -> tuple[Tensor, Tensor]:
    """-min(rho A, clip(rho, 1-low, 1+high) A) for each token, rho = exp(logprob - old).

    Args:
        logprobs, old, advantages: [N]; `old` are the log-probabilities at sampling time.

    Returns:
        losses [N], and whether the clip cut off the token's gradient [N].
    """
    ratio = torch.exp(logprobs - old)
    clipped = ratio.clamp(1 - low, 1 + high)
    free, bound = ratio * advantages, clipped * advantages
    return -torch.minimum(free, bound), (bound < free).detach()


def kl_penalty(logprobs: Tensor, reference: Tensor) -> Tensor:
    """An unbiased, non-negative estimate of KL(policy || reference) for each token.

    exp(r - l) - (r - l) - 1, with l and r the log-probabilities [N] of policy and reference.
    """
    difference = reference - logprobs
    return torch.exp(difference) - difference - 1


def token_weights(
    lengths: Sequence[int], aggregation: Aggregation, longest: int
) -> list[list[float]]:
    """The weight of each learned token, so that the loss is the weighted sum of token losses.

    Weights are of the whole minibatch, so the loss does not depend on how it is split.

    Args:
        lengths: learned tokens of each episode; episodes without any have no weight.
        aggregation: token_mean: 1/N; sequence_mean: 1/(E n_e); dr_grpo: 1/(E longest), a constant
            that does not favour short episodes.
        longest: most tokens that an episode could sample, of dr_grpo's constant.
    """
    total = sum(lengths)
    episodes = sum(1 for n in lengths if n)
    match aggregation:
        case "token_mean":
            each = [1 / total if n else 0.0 for n in lengths]
        case "sequence_mean":
            each = [1 / (episodes * n) if n else 0.0 for n in lengths]
        case "dr_grpo":
            each = [1 / (episodes * longest) if n else 0.0 for n in lengths]
    return [[weight] * n for weight, n in zip(each, lengths, strict=True)]
