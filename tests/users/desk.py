"""A user's view, conversations and a reply memory that the tests of users share."""

import asyncio
from collections.abc import Sequence
from functools import cache

from progrl.dialogue.messages import Message
from progrl.dialogue.users import Fact, GoalChange, UserReply, UserView, Wish
from progrl.embedding import HashedEncoder
from progrl.environments.registry import domain
from progrl.users.contracts import Profile, UserSimulator
from progrl.users.replies import ReplyMemory, build_reply_memory
from progrl.users.scripted import ScriptedUser

PLAIN = Profile("exact", 20, 1.0, 0.0, 0.0, 0.0, 0.0)
EMAIL = Fact("email", "ana12@mail.com", ("email",))
ZIP = Fact("zip", "4711", ("zip", "postal code"), told=True)
ORDER = Fact("order", "73933", ("order to cancel", "which order"), told=True)
SECOND = Fact("order_2", "62150", ("order to redirect", "which order"))
ADDRESS = Fact("address_2", "52 pine", ("new address",))
CANCEL = Wish("cancel", "i want to cancel an order", ("cancel",), ("73933",), "act")
REDIRECT = Wish(
    "redirect_2", "i want to redirect an order", ("redirect",), ("62150", "52 pine"), "act"
)
POINTS = Wish("points", "i want to know my points", ("points",), ("104",), "know")
FACTS = (EMAIL, ZIP, ORDER, SECOND, ADDRESS)
LABELS = {"order": "order to cancel", "order_2": "order to redirect", "address_2": "new address"}
QUERY = "hi , i want to cancel an order and redirect an order . zip 4711 . order 73933"


def view(
    *wishes: Wish,
    facts: Sequence[Fact] = FACTS,
    seed: int = 1,
    change: GoalChange | None = None,
) -> UserView:
    """What the user of the tests knows, with these wishes."""
    return UserView("retail", QUERY, tuple(facts), wishes, seed, change, LABELS)


def conversation(*texts: str) -> list[Message]:
    """The opening query, then the agent's and the user's words in turn."""
    roles = ("assistant", "user")
    spoken = [Message(roles[i % 2], text) for i, text in enumerate(texts)]  # type: ignore[arg-type]
    return [Message("user", QUERY), *spoken]


@cache
def memory(name: str = "retail") -> ReplyMemory:
    """The reply memory of a domain."""
    return build_reply_memory(domain(name), HashedEncoder(), 1)


def answer(
    history: Sequence[Message],
    seen: UserView,
    profile: Profile = PLAIN,
    user: UserSimulator | None = None,
) -> UserReply:
    """One reply."""
    user = user or ScriptedUser(memory(seen.domain))
    return asyncio.run(user.reply(history, seen, profile))
