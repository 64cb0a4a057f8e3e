"""Pattern reuse: does an agent do what a frozen memory of solved tasks suggests?"""

from collections.abc import Sequence

from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import Vectors
from progrl.evaluation.statistics import Interval, paired_difference
from progrl.evaluation.tools import edit_distance
from progrl.memory import LongTermMemory, Pattern

NEAR = 0.3
"""The largest normalised edit distance at which a tool sequence follows another."""


def reuses(
    trajectory: Trajectory, vector: Vectors, reference: LongTermMemory, near: float = NEAR
) -> float | None:
    """1 where the episode follows the nearest pattern's tools and succeeds, else 0.

    None where no pattern's query is more similar than theta_sim (`reference.similar_above`), or
    the episode was lost to a fault. Calls that failed are in neither sequence. The mean over
    episodes, in [0, 1], is pattern reuse.

    Args:
        vector: [d], of length 1, the embedding of the episode's query.
        reference: read-only and the same for all agents that are compared, or each would be
            measured by a yardstick of its own.

    Raises:
        ValueError: the memory is not read-only.
    """
    if not reference.read_only:
        raise ValueError("pattern reuse is measured against a frozen, read-only memory")
    if not trajectory.valid:
        return None
    found = reference.search(vector, 1)
    if not found or found[0][1] <= reference.similar_above:
        return None
    made = Pattern.of(trajectory, 0.0, 0).tools
    return float(trajectory.success and edit_distance(made, found[0][0].tools) <= near)


def reuse_lift(
    with_memory: Sequence[float | None],
    without: Sequence[float | None],
    confidence: float,
    resamples: int,
    seed: int,
) -> Interval | None:
    """Pattern reuse with the memory minus reuse with it off, paired by task; in [-1, 1].

    Args:
        with_memory, without: of `reuses`, for the same tasks in the same order.

    Returns:
        None where fewer than two tasks have both: there is no spread to judge by.
    """
    pairs = [
        (a, b) for a, b in zip(with_memory, without, strict=True) if a is not None and b is not None
    ]
    if len(pairs) < 2:
        return None
    a, b = zip(*pairs, strict=True)
    return paired_difference(a, b, confidence, resamples, seed)
