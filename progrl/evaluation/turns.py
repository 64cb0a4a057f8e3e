"""UserRL's metrics of turn rewards: pure functions of the rewards r_0 .. r_{T-1} of an episode."""

from collections.abc import Mapping, Sequence
from math import fsum
from typing import NamedTuple

from progrl.dialogue.trajectories import Trajectory


def score(rewards: Sequence[float]) -> float | None:
    """sum_i r_i, within T times the bounds of a turn's reward; None without turns."""
    return fsum(rewards) if rewards else None


def effective_turns(rewards: Sequence[float]) -> int:
    """Turns with positive reward, in 0..T.

    UserRL does not define its own figure of that name, so the two are not comparable.
    """
    return sum(reward > 0 for reward in rewards)


def informative_turns(trajectory: Trajectory) -> int:
    """Turns that the environment declares to have brought something: a milestone; in 0..T."""
    return sum(bool(turn.milestones) for turn in trajectory.turns)


def time_weighted(rewards: Sequence[float]) -> float | None:
    """Time-weighted performance sum_i r_i / (i + 1), i from 0: what comes early counts more.

    At most the score where no reward is negative; None without turns.
    """
    return fsum(r / (i + 1) for i, r in enumerate(rewards)) if rewards else None


class GymMeans(NamedTuple):
    """Means over several gyms.

    Attributes:
        by_gym: the mean of the gyms' means.
        by_task: the mean over all tasks of all gyms, UserRL's way.
    """

    by_gym: float
    by_task: float


def gym_means(values: Mapping[str, Sequence[float]]) -> GymMeans | None:
    """Both means of a value by gym and task, within the values' bounds.

    Gyms without a task are left out; None where no gym has one.
    """
    gyms = [list(of) for of in values.values() if len(of)]
    if not gyms:
        return None
    means = [fsum(of) / len(of) for of in gyms]
    total = sum(map(len, gyms))
    return GymMeans(fsum(means) / len(means), fsum(v for of in gyms for v in of) / total)
