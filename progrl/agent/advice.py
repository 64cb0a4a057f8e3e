"""What an agent may be told about its next tool, before each of its messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from progrl.dialogue.codec import Hint
from progrl.dialogue.messages import Action, ToolSpec
from progrl.seeds import Seed


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice on one message; empty where there is none.

    Attributes:
        hint: tools with confidences that the agent reads.
        lean: tools with what is added to the logits of their tokens.
    """

    hint: Hint = ()
    lean: Hint = ()


class Guide(Protocol):
    """Advises in one episode. It knows the task's id, the query and the actions so far, no more:
    episodes of a task that went alike so far are advised alike."""

    def advise(self, tools: Sequence[ToolSpec]) -> Advice:
        """Advice on the next message; called once a message, with the tools that there are."""
        ...

    def took(self, action: Action) -> None:
        """The agent has acted."""
        ...


class Advisor(Protocol):
    """Guides through many episodes, in rounds within which what it knows stays as it is."""

    def begin(self, seed: Seed, queries: Sequence[str] = ()) -> None:
        """A new round, in which all that is drawn follows from `seed`.

        Args:
            queries: of the round's tasks, which it may get to know together: one by one is slow.
        """
        ...

    def guide(self, task_id: str, query: str) -> Guide:
        """A guide through an episode of a task."""
        ...
