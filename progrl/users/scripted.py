"""The scripted user: a move by rule from the history, worded from the reply memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from progrl.dialogue.acts import affirms
from progrl.dialogue.messages import Message
from progrl.dialogue.users import Fact, UserReply, UserView
from progrl.environments.contracts import Answering, Domain
from progrl.seeds import Seed
from progrl.users.contracts import Profile
from progrl.users.decisions import Move, Talk, decide, topic_of
from progrl.users.replies import ReplyMemory
from progrl.users.wordings import ACTS, PREFIXES


@dataclass(frozen=True, slots=True)
class ScriptedUser:
    """Knows the hidden goal and tells what it is asked; a pure function of history and view."""

    memory: ReplyMemory

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        """Answer the agent's last words; a scheduled change of the goal is announced instead."""
        talk = Talk.of(history, view)
        number = len(talk.said)
        if view.change is not None and number == view.change.at_reply:
            return UserReply(view.change.text, "change_goal")
        random = Seed(f"user={view.seed}").child("reply", number).random()
        move = decide(talk, profile, random)
        text = self._word(move, talk.view, profile, random)
        return UserReply(text, ACTS.get(move.kind, move.kind), move.leaves)

    def _word(self, move: Move, view: UserView, profile: Profile, random: Random) -> str:
        """Retrieve a wording, misspell it where the profile does, and fill its slots."""
        style = "long" if random.random() < profile.verbosity else "short"
        topic = topic_of(move.facts[0].name) if len(move.facts) == 1 else ""
        wording = self.memory.find(move.kind, topic, style, random)
        typed = misspell(wording, profile.typos, random)
        if affirms(typed) != affirms(wording):
            typed = wording
        return typed.format(
            value=_value(move.facts, view),
            label=_label(move.facts[0], view) if move.facts else "",
            wish=move.wish,
        )


@dataclass(frozen=True, slots=True)
class RuleUser:
    """Answers by the domain's own rule, in the manner of the profile; needs no reply memory.

    Patience and verbosity are the profile's; what is answered is not, so that rewards decided by
    the answers do not depend on who plays the user.
    """

    domain: Answering

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        """The domain's answer, or leaving where patience is used up."""
        number = sum(message.role == "user" for message in history)
        if number > profile.patience:
            return UserReply("i have to go now", "leave", leaves=True)
        random = Seed(f"user={view.seed}").child("reply", number).random()
        reply = self.domain.answer(history, view, random)
        if random.random() < profile.verbosity / 2:
            opening = random.choice(PREFIXES["repeat"])
            reply = replace(reply, text=f"{opening} {reply.text}")
        return reply


def own_user(domain: Domain) -> RuleUser | None:
    """The user that the domain itself brings, if it does."""
    return RuleUser(domain) if isinstance(domain, Answering) else None


@dataclass(frozen=True, slots=True)
class StaticUser:
    """Never answers: the whole goal stands in the opening query."""

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        """No words."""
        return UserReply("", "none")


def _label(fact: Fact, view: UserView) -> str:
    return view.labels.get(fact.name, topic_of(fact.name).replace("_", " "))


def _value(facts: Sequence[Fact], view: UserView) -> str:
    """One fact's value; of several each with what it is called."""
    if len(facts) == 1:
        return facts[0].value
    return " and ".join(f"{_label(fact, view)} {fact.value}" for fact in facts)


def misspell(wording: str, rate: float, random: Random) -> str:
    """Swap two letters of some words, or leave one out; never in slots nor in short words."""
    if rate == 0:
        return wording
    words = wording.split(" ")
    for place, word in enumerate(words):
        if len(word) > 3 and word.isalpha() and random.random() < rate:
            cut = random.randrange(1, len(word) - 2)
            swapped = random.random() < 0.5
            middle = word[cut + 1] + word[cut] if swapped else word[cut]
            words[place] = word[:cut] + middle + word[cut + 2 :]
    return " ".join(words)
