"""From a group's scores to advantages (PMT, eq. 5), and from those to credit for tokens."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from progrl.config.credit import FloorNormalisation, NormalisationConfig

SIGNAL = 1e-6


def group_advantages(
    scores: Sequence[float], normalisation: NormalisationConfig
) -> NDArray[np.float64] | None:
    """z = (S - mean) / divisor over the valid episodes of one group.

    The divisor is max(std, floor), or std + 1e-6 to PMT's letter; std is the population's.

    Args:
        scores: [G], of valid episodes alone.

    Returns:
        [G] float64, of mean 0; None where the group carries no signal: fewer than two episodes, or
        scores that differ by less than 1e-6, whose rounding noise must not be blown up.
    """
    values = np.asarray(scores, dtype=np.float64)
    if len(values) < 2 or np.ptp(values) < SIGNAL:
        return None
    std = float(values.std())
    if isinstance(normalisation, FloorNormalisation):
        divisor = max(std, normalisation.floor)
    else:
        divisor = std + 1e-6
    centred: NDArray[np.float64] = (values - values.mean()) / divisor
    return centred


def tree_advantages(
    sequences: Sequence[Sequence[int]], advantages: Sequence[float]
) -> list[list[float]]:
    """Share each episode's advantage among its tokens by the tree that the group's episodes form.

    Episodes of a group meet the same task and the same user, so those with a common prefix have
    been in the same state. The mean advantage of all that share a prefix estimates its value, and
    a token's advantage is V(prefix with it) - V(prefix). A token that all took who could is worth
    exactly 0; what remains is credit for choices, without the noise of all the tokens that had
    nothing to do with the outcome. An episode's token advantages sum to its own advantage (to the
    mean, where several episodes are identical).

    Where episodes part at a token that they read (a user's answer of chance), that token takes the
    difference, which enters no loss; what is sampled after it is measured from the new value.

    Args:
        sequences: all token ids of each episode, read and sampled.
        advantages: [G], of mean 0.

    Returns:
        One advantage a token, shaped as `sequences`.
    """
    children: dict[tuple[int, int], int] = {}
    paths: list[list[int]] = []
    for ids in sequences:
        path = [0]
        for token in ids:
            path.append(children.setdefault((path[-1], token), len(children) + 1))
        paths.append(path)
    sums, counts = np.zeros(len(children) + 1), np.zeros(len(children) + 1)
    for path, advantage in zip(paths, advantages, strict=True):
        sums[path] += advantage
        counts[path] += 1
    values = sums / counts
    return [np.diff(values[path]).tolist() for path in paths]
