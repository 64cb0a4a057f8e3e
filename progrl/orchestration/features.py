"""What the tool policy reads: tools as vectors, and the context that used tools leave (eq. 18)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from progrl.config.orchestration import ContextConfig, DecayContext
from progrl.dialogue.codec import STOP, TALK
from progrl.dialogue.messages import Action, Say, ToolSpec
from progrl.embedding import Encoder, Vectors
from progrl.errors import ConfigurationError

BESIDE = (
    (TALK, "Speak to the user: ask for what is missing, or to confirm."),
    (STOP, "Tell the user what was done and end the conversation."),
)

Card = tuple[str, str]
"""Name and description: all that the policy knows of a tool."""


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Tools to choose among, `talk` and `stop` last.

    Attributes:
        cards: name and description of each.
        vectors: embeddings of the descriptions, [n, d], of length 1.
    """

    cards: tuple[Card, ...]
    vectors: Vectors

    @classmethod
    def of(cls, tools: Sequence[ToolSpec], encoder: Encoder) -> "Catalogue":
        """The catalogue of a domain's tools.

        Raises:
            ConfigurationError: two tools have one name, or one is named `talk` or `stop`.
        """
        cards = (*((tool.name, tool.description) for tool in tools), *BESIDE)
        names = [name for name, _ in cards]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(
                f"Tools of one name: {', '.join(twice)}. Names must differ, and {TALK} and {STOP} "
                "are taken."
            )
        return cls(cards, encoder.encode([description for _, description in cards]))

    @classmethod
    def union(cls, catalogues: Iterable["Catalogue"]) -> "Catalogue":
        """Each card of several catalogues once, in the order in which they come."""
        vectors: dict[Card, Vectors] = {}
        for catalogue in catalogues:
            vectors |= dict(zip(catalogue.cards, catalogue.vectors, strict=True))
        return cls(tuple(vectors), np.stack(list(vectors.values())))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tools' names."""
        return tuple(name for name, _ in self.cards)

    def place(self, name: str) -> int | None:
        """Where a tool stands; None if there is none of that name."""
        return self._places.get(name)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}


def tool_of(action: Action) -> str:
    """The tool that an action uses: the called one, `stop` where it closes, else `talk`."""
    if isinstance(action, Say):
        return STOP if action.closing else TALK
    return action.name


def contexts(config: ContextConfig, used: Vectors) -> Vectors:
    """The contexts c_0 ... c_n before, between and after n tools, [n + 1, d]; c_0 = 0 (eq. 18).

    Args:
        used: embeddings of the tools in the order of their use, [n, d].
    """
    rows = np.zeros((len(used) + 1, used.shape[1]), np.float32)
    for step in range(len(used)):
        if isinstance(config, DecayContext):
            rows[step + 1] = config.alpha * rows[step] + (1 - config.alpha) * used[step]
        else:
            rows[step + 1] = used[max(0, step + 1 - config.k) : step + 1].mean(axis=0)
    return rows
