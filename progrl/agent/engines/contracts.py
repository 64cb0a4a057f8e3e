"""The contract of an engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from progrl.dialogue.codec import Bias

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to sample one message.

    Attributes:
        temperature: 0 is greedy.
        max_tokens: most tokens to sample.
        stop_ids: sampling ends with any of these; the stop token is part of the sample.
        seed: of this message alone; the sample does not depend on what else is in flight.
        bias: added to logits, before the temperature, where the first token is chosen.
    """

    temperature: float
    max_tokens: int
    stop_ids: frozenset[int]
    seed: int
    bias: Bias = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One sampled message: ids, their log-probabilities (nats, after temperature), and the cause.

    `cause` is "stop" (a stop token), "length" (max_tokens) or "window" (the model's context is
    full).
    """

    ids: list[int]
    logprobs: list[float]
    cause: Literal["stop", "length", "window"]


class Conversation(Protocol):
    """A growing sequence of ids whose reading is paid for once."""

    def extend(self, ids: Sequence[int]) -> None:
        """Append ids to be read before the next sample."""
        ...

    async def sample(self, params: SamplingParams) -> Sample:
        """Sample a message; its ids become part of the conversation."""
        ...

    def close(self) -> None:
        """Free what the conversation holds; idempotent."""
        ...


class Engine(Protocol):
    """Samples from many conversations at once."""

    def open(self) -> Conversation:
        """A new, empty conversation."""
        ...

    def load_weights(self, folder: Path) -> None:
        """Replace the model's weights by those of a safetensors folder; forgets all caches."""
        ...

    def rest(self) -> None:
        """Nothing is sampled before the weights are replaced: what memory can be spared is free."""
        ...

    def set_weights_from(self, model: "PreTrainedModel") -> None:
        """Replace the weights by a copy of a live model's; forgets all caches."""
        ...
