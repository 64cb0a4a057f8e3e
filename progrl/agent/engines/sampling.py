"""Choosing tokens: a row's choice depends on its own seed, position and logits alone."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniforms(seeds: NDArray[np.uint64], positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Numbers in [0, 1), one a row: splitmix64's output at `positions` of the stream `seeds`.

    Counter-based, so that no generator's state is shared between conversations.
    """
    with np.errstate(over="ignore"):
        z = seeds + (positions.astype(np.uint64) + np.uint64(1)) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    numbers: NDArray[np.float64] = (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return numbers


def choose(
    logits: Tensor, temperatures: NDArray[np.float64], numbers: NDArray[np.float64]
) -> tuple[Tensor, Tensor]:
    """One token a row, by inverting the cumulative distribution at `numbers`.

    Args:
        logits: [rows, vocabulary]; overwritten.
        temperatures: [rows]; 0 takes the most likely token.
        numbers: [rows], uniform in [0, 1).

    Returns:
        ids [rows], and their log-probabilities [rows] in float32 nats after temperature (for
        temperature 0: under the unscaled distribution).
    """
    logits = logits.float()
    greedy = temperatures == 0
    scales = np.where(greedy, 1.0, temperatures)
    if (scales != 1.0).any():
        logits /= torch.from_numpy(scales).float().unsqueeze(1)
    logprobs = torch.log_softmax(logits, dim=-1)
    if greedy.all():
        ids = logits.argmax(dim=-1)
    else:
        cumulative = logprobs.double().exp_().cumsum_(dim=-1)
        # Strictly below the total, so that the first entry above it has a probability above 0.
        targets = torch.from_numpy(numbers).unsqueeze(1) * cumulative[:, -1:]
        ids = torch.searchsorted(cumulative, targets, right=True).squeeze(1)
        if greedy.any():
            ids = torch.where(torch.from_numpy(greedy), logits.argmax(dim=-1), ids)
    return ids, logprobs.gather(1, ids.unsqueeze(1)).squeeze(1)
