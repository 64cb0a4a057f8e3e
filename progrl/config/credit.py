"""How rewards become the tokens' advantages: score, normalisation, credit."""

from typing import Annotated, Literal

from pydantic import Field

from progrl.config.base import Positive, Section

Discount = Annotated[float, Field(gt=0, le=1)]


class StructuredScore(Section):
    """S = r_total, the structured reward."""

    kind: Literal["structured"]


class SumScore(Section):
    """S = the sum of the turn rewards; r_total too, where these are made of milestones."""

    kind: Literal["sum"]


class MeanScore(Section):
    """S = the turn rewards' mean, as UserRL's published code has it under the name of a sum."""

    kind: Literal["mean"]


class DiscountedScore(Section):
    """S = sum of gamma^t r_t, t from 0 (UserRL): early progress counts more."""

    kind: Literal["r2g"]
    gamma: Discount
    """What a turn later is worth."""


ScoreConfig = Annotated[
    StructuredScore | SumScore | MeanScore | DiscountedScore, Field(discriminator="kind")
]


class FloorNormalisation(Section):
    """z = (S - mean) / max(std, floor): small differences within a group stay small."""

    kind: Literal["floor"]
    floor: Positive
    """Smallest divisor, in units of the score."""


class PaperNormalisation(Section):
    """z = (S - mean) / (std + 1e-6), to PMT's letter."""

    kind: Literal["paper"]


NormalisationConfig = Annotated[
    FloorNormalisation | PaperNormalisation, Field(discriminator="kind")
]


class BoundedCombination(Section):
    """A_t = z + weight |z| u_t, u_t the turn's credit above the mean, within [-1, 1]: the mean over
    tokens stays z, and no turn of a failure is rewarded."""

    kind: Literal["bounded"]
    weight: Annotated[float, Field(gt=0, le=1)]
    """Share of |z| by which turns may differ from z."""


class PublishedCombination(Section):
    """A_t = z c_t / mean of non-zero credits, UserRL's code to the letter: a failure's progress is
    pushed down hardest, and a failure without any reward is not pushed down at all."""

    kind: Literal["published"]


CombinationConfig = Annotated[
    BoundedCombination | PublishedCombination, Field(discriminator="kind")
]


class TreeCredit(Section):
    """Each token is credited with what it did to the expected score: the mean score of the
    group's episodes that go on alike after it, less that before it."""

    kind: Literal["tree"]


class EqualCredit(Section):
    """Each token of an episode has the episode's advantage, to PMT's letter."""

    kind: Literal["equalized"]


class NaiveCredit(Section):
    """c_t = r_t, the turn's own reward (UserRL)."""

    kind: Literal["naive"]
    combine: CombinationConfig
    """How turn credits and z make advantages."""


class DiscountedCredit(Section):
    """c_t = sum over j >= t of gamma^(j-t) r_j, the discounted reward to go (UserRL)."""

    kind: Literal["r2g"]
    gamma: Discount
    """What a turn later is worth."""
    combine: CombinationConfig
    """How turn credits and z make advantages."""


class ExponentialCredit(Section):
    """c_t = 0.5 + 0.5 (1 - exp(-k r_t)) / (1 - exp(-k)) (UserRL): no reward, half a credit."""

    kind: Literal["em"]
    k: Positive
    """Curvature; larger lifts small rewards more."""
    combine: CombinationConfig
    """How turn credits and z make advantages."""


TurnCredit = NaiveCredit | DiscountedCredit | ExponentialCredit
CreditConfig = Annotated[TreeCredit | EqualCredit | TurnCredit, Field(discriminator="kind")]
