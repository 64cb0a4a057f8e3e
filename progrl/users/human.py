"""A person as the user."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from progrl.dialogue.acts import affirms, asks, asks_confirmation
from progrl.dialogue.messages import Message
from progrl.dialogue.users import UserReply, UserView
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
