"""What a simulated user may know, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from progrl.dialogue.messages import ToolCall


@dataclass(frozen=True, slots=True)
class Fact:
    """Something the user knows and tells when asked.

    Attributes:
        name: what it is, for instance `zip`.
        value: as the user would write it.
        cues: lower-case phrases; a question that contains one asks for this fact.
        told: the opening query gives it already.
    """

    name: str
    value: str
    cues: tuple[str, ...]
    told: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """Something the user wants done or wants to know.

    Attributes:
        name: unique within the view.
        text: how the user puts it, in words.
        verbs: lower-case phrases one of which the agent's words must contain to be about this wish.
        mentions: values that the agent must name, all of them, in a request to confirm the wish
            (where `kind` is "act") or in telling what it found (where `kind` is "know").
        kind: "act" for a change that needs a confirmation, "know" for a fact to be told.
    """

    name: str
    text: str
    verbs: tuple[str, ...]
    mentions: tuple[str, ...]
    kind: str


@dataclass(frozen=True, slots=True)
class GoalChange:
    """After `at_reply` replies (from 1) the user's goal becomes `view`; `text` announces it."""

    at_reply: int
    text: str
    view: "UserView"


@dataclass(frozen=True, slots=True)
class UserView:
    """The whole of what a user may ever know of a task.

    `seed` fixes all of the user's random choices.
    """

    domain: str
    query: str
    facts: tuple[Fact, ...]
    wishes: tuple[Wish, ...]
    seed: int
    change: GoalChange | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UserReply:
    """What the user answers.

    Attributes:
        text: the words.
        act: the dialogue act: inform, repeat (what was told before), unknown (it has no answer),
            ask (says what it still wants), wait, clarify, confirm, correct, challenge,
            change_goal, thank, leave (without its goal); "none" where no user answers.
        leaves: the user ends the conversation with this reply.
        calls: of the user's own tools. The environment applies each, and the user is asked again
            with what they returned; the agent hears nothing of it before the user speaks.
    """

    text: str
    act: str
    leaves: bool = False
    calls: tuple[ToolCall, ...] = ()
