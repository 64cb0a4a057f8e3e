"""The scripted user: a dialogue act by rule from the history, worded from the reply memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from progrl.dialogue.acts import affirms, asks, asks_confirmation, contains, mentions, normal
from progrl.dialogue.messages import Message
from progrl.dialogue.users import Fact, UserReply, UserView, Wish
from progrl.seeds import Seed
from progrl.users.contracts import Profile
from progrl.users.replies import ReplyMemory, topic_of

STUBBORN = 4
_HEARD_AS = {"confused": "clarify", "unknown": "inform", "more": "inform"}
"""Wordings of one's own that count as another act for those who read the conversation."""


@dataclass(frozen=True, slots=True)
class ScriptedUser:
    """Knows the hidden goal and tells what it is asked; a pure function of history and view.

    It leaves by rule alone: when all it wanted is met, when its patience is used up, or when the
    agent says the same words `STUBBORN` times running.
    """

    memory: ReplyMemory

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        """Answer the agent's last words."""
        number = sum(message.role == "user" for message in history)
        change = view.change
        if change is not None and number == change.at_reply:
            return UserReply(change.text, "change_goal")
        if change is not None and number > change.at_reply:
            view = change.view
        random = Seed(f"user={view.seed}").child("reply", number).random()
        turn = _Turn(history, view, profile, number, random, self.memory)
        return turn.answer()


@dataclass(frozen=True, slots=True)
class _Turn:
    history: Sequence[Message]
    view: UserView
    profile: Profile
    number: int
    random: Random
    memory: ReplyMemory

    @property
    def said(self) -> str:
        return self.history[-1].content

    def answer(self) -> UserReply:
        if self.number >= self.profile.patience or self._stubborn():
            return self._word("leave", leaves=True)
        if asks_confirmation(self.said):
            return self._consent()
        if asks(self.said):
            return self._asked()
        return self._told()

    def _stubborn(self) -> bool:
        last = [normal(m.content) for m in self.history if m.role == "assistant"][-STUBBORN:]
        return len(last) == STUBBORN and len(set(last)) == 1

    def _again(self) -> bool:
        """The agent has said these very words before."""
        now = normal(self.said)
        earlier = self.history[:-1]
        return any(m.role == "assistant" and normal(m.content) == now for m in earlier)

    def _consent(self) -> UserReply:
        wanted = next((w for w in self.view.wishes if about(w, self.said, "act")), None)
        if wanted is None:
            return self._word("correct", wish=self._open_wish())
        if not self._again() and self.random.random() < self.profile.challenge:
            return self._word("challenge")
        return self._word("confirm")

    def _asked(self) -> UserReply:
        facts = self._facts_asked()
        if not facts:
            known = self._met() or any(contains(self.said, f.cues) for f in self.view.facts)
            return self._word("unknown" if known else "confused", wish=self._open_wish())
        if not self._again() and self.random.random() >= self.profile.cooperativeness:
            return self._word("clarify", facts)
        if self.random.random() < self.profile.expertise:
            told = set(self._facts_told())
            spare = [f for f in self.view.facts if f.name not in told and f not in facts]
            facts = [*facts, *spare[:1]]
        return self._word("inform", facts)

    def _facts_asked(self) -> list[Fact]:
        """One fact a topic: of two orders the one that fits best, then the one not yet told."""
        told = set(self._facts_told())
        best: dict[str, tuple[int, bool, Fact]] = {}
        for fact in self.view.facts:
            fit = max((len(cue) for cue in fact.cues if mentions(self.said, cue)), default=0)
            if not fit:
                continue
            topic, fresh = topic_of(fact.name), fact.name not in told
            if topic not in best or (fit, fresh) > best[topic][:2]:
                best[topic] = (fit, fresh, fact)
        return [fact for _, _, fact in best.values()]

    def _facts_told(self) -> Iterator[str]:
        mine = [m.content for m in self.history if m.role == "user"]
        for fact in self.view.facts:
            if fact.told or any(mentions(text, fact.value) for text in mine):
                yield fact.name

    def _told(self) -> UserReply:
        """The agent stated something: is all met, is some of it news, or does it make no sense?"""
        met = self._met()
        if len(met) == len(self.view.wishes):
            return self._word("thank", leaves=True)
        news = any(about(w, self.said, w.kind) for w in self.view.wishes)
        return self._word("more" if news else "confused", wish=self._open_wish())

    def _met(self) -> list[Wish]:
        """Wishes that the user believes to be met.

        What it wanted to know, once it was told; what it wanted done, once it has agreed to it and
        the agent has gone on to something else.
        """
        pairs = list(zip(self.history, self.history[1:], strict=False))
        met = []
        for wish in self.view.wishes:
            if wish.kind == "know":
                heard = [m.content for m in self.history if m.role == "assistant"]
                if any(about(wish, text, "know") for text in heard):
                    met.append(wish)
            elif any(
                a.role == "assistant"
                and b.role == "user"
                and asks_confirmation(a.content)
                and about(wish, a.content, "act")
                and affirms(b.content)
                for a, b in pairs
            ):
                met.append(wish)
        return met

    def _open_wish(self) -> Wish | None:
        met = self._met()
        return next((w for w in self.view.wishes if w not in met), None)

    def _word(
        self,
        act: str,
        facts: Sequence[Fact] = (),
        wish: Wish | None = None,
        leaves: bool = False,
    ) -> UserReply:
        """Retrieve a wording and fill its slots."""
        style = "long" if self.random.random() < self.profile.verbosity else "short"
        topic = topic_of(facts[0].name) if facts else ""
        template = self.memory.find(act, topic, style, self.random)
        if act != "confirm":
            template = misspell(template, self.profile.typos, self.random)
        label = self.view.labels.get(facts[0].name, topic) if facts else "it"
        text = template.format(
            value=" and ".join(fact.value for fact in facts),
            label=label,
            wish=wish.text if wish else "that is all i want",
        )
        return UserReply(text, _HEARD_AS.get(act, act), leaves)


def about(wish: Wish, text: str, kind: str) -> bool:
    """The agent's words are about a wish of this kind: they have a verb and all its values."""
    return (
        wish.kind == kind
        and contains(text, wish.verbs)
        and all(mentions(text, value) for value in wish.mentions)
    )


def misspell(template: str, rate: float, random: Random) -> str:
    """Swap two letters within some words; never in slots, nor in the first word."""
    if rate == 0:
        return template
    words = template.split(" ")
    for at, word in enumerate(words[1:], start=1):
        if len(word) > 3 and word.isalpha() and random.random() < rate:
            cut = random.randrange(1, len(word) - 2)
            words[at] = word[:cut] + word[cut + 1] + word[cut] + word[cut + 2 :]
    return " ".join(words)
