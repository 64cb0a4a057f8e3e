"""Trajectory scores and turn credits from turn rewards (UserRL), and their advantages."""

import math
from collections.abc import Sequence

from progrl.config.credit import (
    BoundedCombination,
    CombinationConfig,
    DiscountedCredit,
    DiscountedScore,
    ExponentialCredit,
    MeanScore,
    NaiveCredit,
    ScoreConfig,
    StructuredScore,
    SumScore,
    TurnCredit,
)
from progrl.errors import DataError
from progrl.rewards.advantages import SIGNAL


def trajectory_score(rewards: Sequence[float], total: float, score: ScoreConfig) -> float:
    """S, what an episode's rewards amount to.

    Args:
        rewards: [T] turn rewards, as they are.
        total: the structured reward r_total.

    Returns:
        r_total; or, of the turn rewards, the sum, the mean, or the sum of gamma^t r_t, t from 0.
        Without turns the last three are 0.
    """
    match score:
        case StructuredScore():
            return total
        case SumScore():
            return math.fsum(rewards)
        case MeanScore():
            return math.fsum(rewards) / max(1, len(rewards))
        case DiscountedScore(gamma=gamma):
            return math.fsum(gamma**t * reward for t, reward in enumerate(rewards))


def rescale(rewards: Sequence[float], bounds: tuple[float, float]) -> list[float]:
    """Turn rewards [T] as shares of the way between the `bounds` that are declared for them."""
    low, high = bounds
    return [(reward - low) / (high - low) for reward in rewards]


def turn_credits(rewards: Sequence[float], credit: TurnCredit) -> list[float]:
    """c_t [T], what each turn did for the outcome, from rescaled turn rewards [T].

    Raises:
        DataError: with `em`, a reward outside [0, 1], where its curve leaves the range of credits:
            the turn rewards break the bounds that are declared for them.
    """
    match credit:
        case NaiveCredit():
            return list(rewards)
        case DiscountedCredit(gamma=gamma):
            credits, ahead = [], 0.0
            for reward in reversed(rewards):
                ahead = reward + gamma * ahead
                credits.append(ahead)
            return credits[::-1]
        case ExponentialCredit(k=k):
            for turn, reward in enumerate(rewards, start=1):
                if not -SIGNAL <= reward <= 1 + SIGNAL:
                    raise DataError(
                        f"The reward of turn {turn} is {reward:g} once rescaled: credit `em` needs "
                        "rewards in [0, 1]. Declare the environment's true bounds of turn rewards, "
                        "or choose another grpo.credit."
                    )
            return [0.5 + 0.5 * math.expm1(-k * reward) / math.expm1(-k) for reward in rewards]


def turn_advantages(
    z: float, credits: Sequence[float], tokens: Sequence[int], combine: CombinationConfig
) -> list[float]:
    """The advantage of each turn's tokens.

    Bounded: A_t = z + weight |z| u_t, u_t = (c_t - c) / max_j |c_j - c|, c the credits' mean over
    tokens; u = 0 where credits differ by less than 1e-6, whose rounding must not be blown up. The
    mean over tokens is z, and |A_t| <= (1 + weight) |z|.

    Published: A_t = z c_t / c, c the mean over the tokens of non-zero credit; 0 where the credits
    sum to 0. Neither bounded nor, for failures, of the right sign.

    Args:
        z: the episode's advantage.
        credits: [T].
        tokens: [T] how many tokens the policy sampled in each turn; turns without any have no say.

    Returns:
        [T].
    """
    weighed = [c * n for c, n in zip(credits, tokens, strict=True)]
    if isinstance(combine, BoundedCombination):
        mean = sum(weighed) / max(1, sum(tokens))
        off = [c - mean if n else 0.0 for c, n in zip(credits, tokens, strict=True)]
        widest = max(map(abs, off), default=0.0)
        scale = combine.weight * abs(z) / widest if widest > SIGNAL else 0.0
        return [z + scale * o for o in off]
    counted = sum(n for c, n in zip(credits, tokens, strict=True) if c)
    total = sum(weighed)
    return [z * c * counted / total if total else 0.0 for c in credits]
