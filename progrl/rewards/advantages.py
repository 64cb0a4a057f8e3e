"""From a group's scores to advantages (PMT, eq. 5)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from progrl.config.training import FloorNormalisation, PaperNormalisation

SIGNAL = 1e-6


def group_advantages(
    scores: Sequence[float], normalisation: FloorNormalisation | PaperNormalisation
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
