"""What it means that another program has sampled: it computes a little otherwise than the trainer.

The objective's ratio must be that of new to old of one and the same program, so what was sampled is
scored by the trainer before its weights move. That it was drawn from another distribution is made
good by a bounded weight for each token (truncated importance sampling).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise

import numpy as np
import torch

from progrl.training.batching import Example, microbatches
from progrl.training.optimiser import Optimiser


@dataclass(frozen=True, slots=True)
class Mismatch:
    """How far the sampler's log-probabilities are from the trainer's, over a step's tokens.

    Attributes:
        mean, most: of the absolute differences, in nats.
        capped: share of the tokens whose weight is at its bound.
    """

    mean: float
    most: float
    capped: float


def rescored(
    optimiser: Optimiser,
    examples: Sequence[Example],
    trees: Iterable[Sequence[int]],
    budget: int,
    temperature: float,
) -> list[list[float]]:
    """The trainer's own log-probabilities of each example's learned tokens, in nats.

    Args:
        trees: positions of examples that may have beginnings in common.
        budget: most padded tokens in one forward pass.
    """
    starts = [0, *accumulate(example.learned for example in examples)]
    found = [0.0] * starts[-1]  # each process finds some, and all get all by adding them up
    for micro in microbatches(examples, budget, trees, optimiser.ranks):
        with torch.no_grad():
            values = optimiser.scorer(micro.inputs, temperature).tolist()
        for member in micro.members:
            count = examples[member].learned
            found[starts[member] : starts[member] + count] = values[:count]
            values = values[count:]
    found = optimiser.ranks.total(found)
    return [found[a:b] for a, b in pairwise(starts)]


def corrected(
    own: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]], cap: float
) -> tuple[list[list[float]], Mismatch]:
    """min(exp(own - theirs), cap) for each token, and how far the two are from each other.

    Args:
        own, theirs: log-probabilities in nats of trainer and sampler, one row an episode.
        cap: C, the most that a token may weigh.
    """
    rows = [np.subtract(a, b) for a, b in zip(own, theirs, strict=True)]
    apart = np.abs(np.concatenate(rows))
    weights = [np.minimum(np.exp(row), cap).tolist() for row in rows]
    capped = sum(w >= cap for w in chain.from_iterable(weights)) / max(1, len(apart))
    return weights, Mismatch(float(apart.mean()), float(apart.max()), capped)
