"""The contract of a codec: between messages and token ids.

The ids that an agent sampled are kept as they are, for ever. A codec only ever encodes what the
environment adds: the opening prompt, then each observation. Nothing is decoded and encoded again.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from progrl.dialogue.messages import Action, Message, ToolSpec

TALK, STOP = "talk", "stop"
"""What stands beside the tools' names in a hint: to speak to the user, to close by doing so."""

Hint = Sequence[tuple[str, float]]
"""Tools that may come next, each with a confidence in [0, 1], the most probable first."""

Bias = Sequence[tuple[int, float]]
"""Ids, each once, and what is added to their logits where a message's first token is chosen."""


class Codec(Protocol):
    """Between messages and token ids, for one model's vocabulary."""

    stop_ids: frozenset[int]

    def open(
        self, policy: str, tools: Sequence[ToolSpec], query: str, hint: Hint = ()
    ) -> list[int]:
        """The prompt before the agent's first message, ready for it to write.

        A hint stands after the query; without one nothing is there.
        """
        ...

    def observe(self, message: Message, cut: bool = False, hint: Hint = ()) -> list[int]:
        """A user's or a tool's message after the agent's, ready for the agent to write again.

        Whatever the model's template puts between the agent's stop token and the next message is
        part of the result; with `cut`, the agent's message had no stop token and gets one here.
        A hint stands after the message.
        """
        ...

    def lean(self, weights: Hint) -> Bias:
        """The bias that makes an agent's message rather use some tools, by what each is given.

        Raises:
            ConfigurationError: this codec's messages do not begin with a token for their tool.
        """
        ...

    def act(self, action: Action) -> list[int]:
        """The ids of an action as an agent would sample it, stop token included."""
        ...

    def parse(self, ids: Sequence[int], tools: Sequence[ToolSpec]) -> Action:
        """The action that sampled ids stand for.

        Raises:
            MalformedAction: they are none; the message says what is wrong, in words for the agent.
        """
        ...

    def text(self, ids: Sequence[int]) -> str:
        """Readable text of ids, for people."""
        ...

    def save(self, folder: Path) -> None:
        """Write the codec's files into a model's folder."""
        ...
