"""The contract of a user simulator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from progrl.dialogue.messages import Message
from progrl.dialogue.users import UserReply, UserView


@dataclass(frozen=True, slots=True)
class Profile:
    """The parameters p_user of a simulated user; all but patience lie in [0, 1].

    Attributes:
        name: of the profile.
        patience: user replies before the user leaves without its goal.
        cooperativeness: chance that a question is answered at once, not with a counter-question.
        verbosity: share of long wordings.
        expertise: chance that more is told than was asked.
        challenge: chance that a statement is questioned once.
        typos: chance that a word outside of values is misspelt.
    """

    name: str
    patience: int
    cooperativeness: float
    verbosity: float
    expertise: float
    challenge: float
    typos: float


class UserSimulator(Protocol):
    """Plays the user. A pure function of its arguments: the view holds the seed."""

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        """Answer the last words of `history`, which holds words alone (`messages.words`)."""
        ...


@runtime_checkable
class KeepsAccount(Protocol):
    """A user whose replies cost something."""

    def spent(self) -> dict[str, float]:
        """Counts, tokens and cost so far, by name."""
        ...
