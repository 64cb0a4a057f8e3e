"""A person as the user."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from progrl.dialogue.acts import affirms, asks, asks_confirmation
from progrl.dialogue.messages import Message
from progrl.dialogue.users import UserReply, UserView, Wish
from progrl.users.contracts import Profile

QUIT = "/quit"


@dataclass(frozen=True, slots=True)
class HumanUser:
    """Asks a person for each reply; `/quit` leaves. `ask` is given the agent's last words."""

    ask: Callable[[str], Awaitable[str]]

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        """The person's words, with the act that they are recognised as."""
        said = history[-1].content
        text = (await self.ask(said)).strip()
        if text == QUIT:
            return UserReply("bye", "leave", leaves=True)
        if asks_confirmation(said):
            return UserReply(text, "confirm" if affirms(text) else "correct")
        return UserReply(text, "clarify" if asks(text) else "inform")


@dataclass(frozen=True, slots=True)
class Brief:
    """What a person must know to be a user; what the agent is to find out is left out.

    Attributes:
        wishes: what the user wants, in words.
        facts: what the user knows, and tells when asked: what it is, and its value.
    """

    wishes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def brief(view: UserView) -> Brief:
    """The brief of a view."""
    labelled = ((view.labels.get(fact.name, fact.name), fact.value) for fact in view.facts)
    return Brief(
        tuple(_told(wish) for wish in view.wishes),
        tuple((label, value.removeprefix(f"{label} ")) for label, value in labelled),
    )


def _told(wish: Wish) -> str:
    if wish.kind == "act" and wish.mentions:
        return f"{wish.text} ({', '.join(wish.mentions)})"
    return wish.text


class Goal:
    """What a person who is the user wants, as it stands; `view` is replaced where it changes."""

    def __init__(self, view: UserView) -> None:
        self.view = view
        self._change = view.change
        self._replies = 0

    def turn(self) -> str:
        """Call it before each reply; the words of the change, where it is due now, else ""."""
        self._replies += 1
        change = self._change
        if change is None or self._replies != change.at_reply:
            return ""
        self.view = change.view
        return change.text
