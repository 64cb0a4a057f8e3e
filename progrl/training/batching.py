"""From sequences of different lengths to padded micro-batches of bounded size."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from progrl.dialogue.codec import Bias
from progrl.training.scoring import TokenBias


@dataclass(frozen=True, slots=True)
class Example:
    """One conversation to learn from.

    Attributes:
        ids: [T] token ids.
        mask: [T] whether the policy wrote (or is to learn to write) the token.
        bias: by the place of a token, what was added to logits where it was chosen.
    """

    ids: Sequence[int]
    mask: Sequence[bool]
    bias: Mapping[int, Bias] = field(default_factory=dict)

    @property
    def learned(self) -> int:
        """Number of tokens that enter a loss; the first token of all has no prediction."""
        return sum(self.mask[1:])


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Padded sequences.

    Attributes:
        members: [B] positions of the examples in the list that was batched.
        ids: [B, T] token ids, padded on the right with 0.
        mask: [B, T-1] whether the next token is learned.
        bias: of the learned tokens; None where there is none.
    """

    members: list[int]
    ids: Tensor
    mask: Tensor
    bias: TokenBias | None = None


def microbatches(
    examples: Sequence[Example], budget: int, order: Sequence[int] | None = None
) -> Iterator[MicroBatch]:
    """Batches of similar lengths, each of at most `budget` padded tokens (or one example).

    Args:
        order: which examples, by position; all if None.
    """
    chosen = sorted(
        order if order is not None else range(len(examples)),
        key=lambda i: (-len(examples[i].ids), i),
    )
    at = 0
    while at < len(chosen):
        width = len(examples[chosen[at]].ids)
        count = max(1, budget // width)
        members = chosen[at : at + count]
        yield _pad(members, examples, width)
        at += count


def _pad(members: list[int], examples: Sequence[Example], width: int) -> MicroBatch:
    ids = torch.zeros(len(members), width, dtype=torch.long)
    mask = torch.zeros(len(members), width, dtype=torch.bool)
    for row, member in enumerate(members):
        example = examples[member]
        length = len(example.ids)
        ids[row, :length] = torch.as_tensor(example.ids)
        mask[row, :length] = torch.as_tensor(example.mask)
    return MicroBatch(members, ids, mask[:, 1:], _bias([examples[m] for m in members]))


def _bias(examples: Sequence[Example]) -> TokenBias | None:
    """The learned tokens' biases, by their place among all learned tokens of the batch."""
    entries: list[tuple[int, int, float]] = []
    before = 0
    for example in examples:
        if example.bias:
            learned = [place for place, learns in enumerate(example.mask) if learns and place]
            for number, place in enumerate(learned, start=before):
                entries += [(number, *pair) for pair in example.bias.get(place, ())]
        before += example.learned
    return TokenBias.of(entries) if entries else None


def gather(batch: MicroBatch, values: Sequence[Sequence[float]]) -> Tensor:
    """Per-token values of the batch's members, laid out as `scoring` lays out learned tokens.

    Args:
        values: for each example of the list that was batched, one value a learned token.

    Returns:
        [N] float32, N the number of learned tokens in the batch.
    """
    return torch.cat([torch.as_tensor(values[m], dtype=torch.float32) for m in batch.members])
