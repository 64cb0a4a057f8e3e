"""From conversations of different lengths to padded micro-batches of bounded size."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from progrl.dialogue.codec import Bias
from progrl.ranks import ALONE, Ranks
from progrl.training.scoring import Inputs, TokenBias

_PAIRS = 512.0
"""Pairs of tokens whose attention costs about as much as the rest of the work on one token; more in
large models, so that for them trees are taken a little too seldom."""


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
    """What is scored at once.

    Attributes:
        members: positions of the examples in the list that was batched, in the order of their
            scored tokens; none where a process only keeps pace with others that have more to do.
        inputs: their rows, and the places of the learned tokens.
    """

    members: list[int]
    inputs: Inputs


@dataclass(frozen=True, slots=True)
class _Row:
    """One example, or several as a tree.

    Attributes:
        members: their positions.
        ids: [T] a parent stands before its children.
        paths: for each member, the places of its tokens in the row.
        depths: [T] positions in the conversations.
        parents: [T] places, -1 at the beginning of a conversation.
    """

    members: list[int]
    ids: list[int]
    paths: list[list[int]]
    depths: list[int]
    parents: list[int]

    @classmethod
    def of(cls, members: Sequence[int], examples: Sequence[Example]) -> "_Row":
        if len(members) == 1:
            ids = list(examples[members[0]].ids)
            places = list(range(len(ids)))
            return cls(list(members), ids, [places], places, [i - 1 for i in places])
        row = cls(list(members), [], [], [], [])
        known: dict[tuple[int, int], int] = {}
        for member in members:
            place, path = -1, []
            for depth, token in enumerate(examples[member].ids):
                parent, place = place, known.setdefault((place, token), len(row.ids))
                if place == len(row.ids):
                    row.ids.append(token)
                    row.depths.append(depth)
                    row.parents.append(parent)
                path.append(place)
            row.paths.append(path)
        return row

    @property
    def branches(self) -> bool:
        return len(self.members) > 1

    def visible(self) -> NDArray[np.bool_]:
        """[T, T] whether a token may look at another: at itself and what leads to it."""
        seen = np.eye(len(self.ids), dtype=np.bool_)
        for place, parent in enumerate(self.parents):
            if parent >= 0:
                seen[place] |= seen[parent]
        return seen


def microbatches(
    examples: Sequence[Example],
    budget: int,
    trees: Iterable[Sequence[int]] | None = None,
    ranks: Ranks = ALONE,
) -> Iterator[MicroBatch]:
    """Batches of rows of similar lengths, each of at most `budget` padded tokens (or one row).

    Of several processes each has its share of the rows, of about the same lengths, and all have
    the same number of batches: some may be empty.

    Args:
        trees: positions of examples that may have beginnings in common; where it is less work,
            what they share is read once. By default each example is for itself.
    """
    rows = [_Row.of([i], examples) for i in range(len(examples))]
    if trees is not None:
        rows = [row for tree in trees for row in _planted(tree, rows, examples)]
    rows.sort(key=lambda row: (-len(row.ids), row.members))
    shares = [_divided(rows[r :: ranks.size], budget) for r in range(ranks.size)]
    mine = shares[ranks.rank]
    for batch in mine:
        yield _padded(batch, examples)
    for _ in range(max(map(len, shares)) - len(mine)):
        nothing = torch.zeros(0, dtype=torch.long)
        yield MicroBatch([], Inputs(torch.zeros(1, 2, dtype=torch.long), nothing, nothing))


def _planted(
    tree: Sequence[int], single: Sequence[_Row], examples: Sequence[Example]
) -> list[_Row]:
    """The tree as one row, or as many as it has members, whichever is less to compute."""
    apart = [single[i] for i in tree]
    together = _Row.of(tree, examples)
    return [together] if _work(together) < sum(map(_work, apart)) else apart


def _work(row: _Row) -> float:
    """About what a row costs, in tokens; a tree looks at all its pairs, a conversation at half."""
    pairs = len(row.ids) ** 2 / (1 if row.branches else 2)
    return len(row.ids) + pairs / _PAIRS


def _divided(rows: Sequence[_Row], budget: int) -> list[list[_Row]]:
    """The rows of each batch; `rows` goes from the longest to the shortest."""
    batches, at = [], 0
    while at < len(rows):
        count = max(1, budget // len(rows[at].ids))
        batches.append(list(rows[at : at + count]))
        at += count
    return batches


def _padded(rows: Sequence[_Row], examples: Sequence[Example]) -> MicroBatch:
    width = max(2, *(len(row.ids) for row in rows))
    ids = np.zeros((len(rows), width), dtype=np.int64)
    sources: list[int] = []
    targets: list[int] = []
    for number, row in enumerate(rows):
        ids[number, : len(row.ids)] = row.ids
        for member, path in zip(row.members, row.paths, strict=True):
            mask = examples[member].mask
            learned = [at for at in range(1, len(path)) if mask[at]]
            sources += [number * width + path[at - 1] for at in learned]
            targets += [row.ids[path[at]] for at in learned]
    members = [member for row in rows for member in row.members]
    inputs = Inputs(
        torch.from_numpy(ids),
        torch.tensor(sources, dtype=torch.long),
        torch.tensor(targets, dtype=torch.long),
        _bias([examples[m] for m in members]),
    )
    if any(row.branches for row in rows):
        positions, visible = _branching(rows, width)
        inputs = inputs._replace(positions=positions, visible=visible)
    return MicroBatch(members, inputs)


def _branching(rows: Sequence[_Row], width: int) -> tuple[Tensor, Tensor]:
    """Positions [B, T] and what is visible [B, 1, T, T]; padding looks at itself alone."""
    positions = np.zeros((len(rows), width), dtype=np.int64)
    visible = np.zeros((len(rows), 1, width, width), dtype=np.bool_)
    visible[:, 0] = np.eye(width, dtype=np.bool_)
    for number, row in enumerate(rows):
        length = len(row.ids)
        positions[number, :length] = row.depths
        visible[number, 0, :length, :length] = row.visible()
    return torch.from_numpy(positions), torch.from_numpy(visible)


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
    rows = [torch.as_tensor(values[m], dtype=torch.float32) for m in batch.members]
    return torch.cat(rows) if rows else torch.zeros(0)
