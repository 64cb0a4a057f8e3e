"""The fixed workload: the same conversations for every way of playing them."""

from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import Any

FIRST = 8
"""The first id that is read: lower ones are special ids of some tokenisers."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a Qwen3-architecture model; by default of the default job's agent."""

    vocabulary: int = 768
    hidden: int = 96
    layers: int = 3
    heads: int = 3
    kv_heads: int = 3
    head_dim: int = 32
    ffn: int = 256

    @property
    def parameters(self) -> int:
        """Weights, input and output embeddings being one matrix."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        layer = attention + 3 * self.hidden * self.ffn + 2 * self.head_dim + 2 * self.hidden
        return self.layers * layer + self.vocabulary * self.hidden + self.hidden


@dataclass(frozen=True, slots=True)
class Workload:
    """Conversations at once, turns in each, ids read and sampled in a turn.

    Attributes:
        group: conversations of a task, in a training step.
    """

    conversations: int = 64
    turns: int = 10
    read: int = 40
    sampled: int = 24
    group: int = 8
    shape: Shape = field(default_factory=Shape)

    @property
    def tokens(self) -> int:
        """Ids sampled in all."""
        return self.conversations * self.turns * self.sampled

    @property
    def length(self) -> int:
        """Ids of a conversation at its end."""
        return self.turns * (self.read + self.sampled)

    @property
    def window(self) -> int:
        """Positions of the model: the default's, or what the conversations need."""
        return max(1024, self.length)

    def contexts(self) -> list[list[list[int]]]:
        """The ids that are read, by conversation and turn."""
        last = self.shape.vocabulary
        return [
            [
                [random.randrange(FIRST, last) for _ in range(self.read)]
                for random in [Random(1000 * number + turn) for turn in range(self.turns)]
            ]
            for number in range(self.conversations)
        ]

    def dialogues(self) -> list[tuple[list[int], list[bool]]]:
        """Ids to train on, and which are learned: from two turns to all, as dialogues differ."""
        random, last = Random(1), self.shape.vocabulary
        mask = [False] * self.read + [True] * self.sampled
        found = []
        for number in range(self.conversations):
            turns = min(self.turns, 2 + number % max(1, self.turns - 1))
            ids = [random.randrange(FIRST, last) for _ in range(turns * len(mask))]
            found.append((ids, mask * turns))
        return found

    def sized(self, **changes: int) -> "Workload":
        """The same with other sizes."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """As given to a worker, and as written with results."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Workload":
        """The inverse of `to_json`."""
        return cls(**{**value, "shape": Shape(**value["shape"])})
