"""What the scripted user does next: a rule-based choice from the history of words alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random

from progrl.dialogue.acts import (
    affirms,
    asks,
    asks_confirmation,
    contains,
    mentions,
    normal,
    offers,
    promises,
    reports,
)
from progrl.dialogue.messages import Message
from progrl.dialogue.users import Fact, UserView, Wish
from progrl.users.contracts import Profile

STUBBORN = 3
NOTHING_MORE = "that is all i want"
_has = lru_cache(maxsize=65536)(contains)


@dataclass(frozen=True, slots=True)
class Move:
    """What a user does in a reply.

    Attributes:
        kind: which wordings serve it, a key of `wordings.CORES`.
        facts: what it tells or talks about.
        wish: what it says that it wants.
        leaves: it ends the conversation.
    """

    kind: str
    facts: tuple[Fact, ...] = ()
    wish: str = ""
    leaves: bool = False


@dataclass(frozen=True)
class Talk:
    """A conversation as the user knows it.

    Attributes:
        view: the goal as it now is.
        heard: the agent's words, all in order; the last are to be answered.
        said: the user's own, the opening query first; `said[i + 1]` answered `heard[i]`.
        settled: no change of the goal is still to come.
    """

    view: UserView
    heard: tuple[str, ...]
    said: tuple[str, ...]
    settled: bool = True

    @classmethod
    def of(cls, history: Sequence[Message], view: UserView) -> "Talk":
        """From a history of words, which ends with the agent's."""
        heard = tuple(m.content for m in history if m.role == "assistant")
        said = tuple(m.content for m in history if m.role == "user")
        change = view.change
        if change is None:
            return cls(view, heard, said)
        after = len(said) > change.at_reply
        return cls(change.view if after else view, heard, said, after)

    @property
    def now(self) -> str:
        """The words to be answered."""
        return self.heard[-1]

    def asked(self, text: str) -> tuple[Fact, ...]:
        """The facts that `text` asks for, one a topic: the best fit, then one not yet told."""
        best: dict[str, tuple[int, bool, Fact]] = {}
        for fact in self.view.facts:
            if not _has(text, fact.cues):
                continue
            fit = max(len(cue) for cue in fact.cues if mentions(text, cue))
            rank = (fit, not self.told(fact))
            topic = topic_of(fact.name)
            if topic not in best or rank > best[topic][:2]:
                best[topic] = (*rank, fact)
        return tuple(fact for _, _, fact in best.values())

    def told(self, fact: Fact) -> bool:
        """The user has said this fact."""
        return fact.told or any(mentions(text, fact.value) for text in self.said)

    def met(self, wish: Wish, turns: int) -> bool:
        """The user believes the wish to be met, by the first `turns` of the agent's words.

        What it wanted to know, once it was told. What it wanted done, once it has agreed to it and
        has heard afterwards that it was done: it cannot see the records.
        """
        heard = self.heard[:turns]
        if wish.kind == "know":
            return any(covers(text, wish) for text in heard)
        agreed = False
        for number, text in enumerate(heard):
            if agreed and says_done(text, wish):
                return True
            if asks_confirmation(text) and covers(text, wish):
                agreed = agreed or (number + 1 < len(self.said) and affirms(self.said[number + 1]))
        return False

    @cached_property
    def satisfied(self) -> bool:
        """All that the user wants, now and later, is met as far as it can tell."""
        wishes, turns = self.view.wishes, len(self.heard)
        return self.settled and bool(wishes) and all(self.met(w, turns) for w in wishes)

    @property
    def open_wish(self) -> str:
        """What the user would say that it still wants."""
        wishes, turns = self.view.wishes, len(self.heard)
        if not wishes:
            return self.view.query
        return next((w.text for w in wishes if not self.met(w, turns)), NOTHING_MORE)


def decide(talk: Talk, profile: Profile, random: Random) -> Move:
    """The user's move. It leaves by rule alone: see `ending`."""
    end = ending(talk, profile)
    if end is not None:
        return end
    if asks_confirmation(talk.now):
        return _consent(talk, profile, random)
    if asks(talk.now) and not offers(talk.now):
        facts = talk.asked(talk.now)
        return _answer(talk, facts, profile, random) if facts else _unanswered(talk)
    return _listen(talk, profile, random)


def ending(talk: Talk, profile: Profile) -> Move | None:
    """Patience is used up, or the agent says the same words for the third time running."""
    last = [normal(text) for text in talk.heard[-STUBBORN:]]
    stubborn = len(last) == STUBBORN and len(set(last)) == 1
    if stubborn or len(talk.said) > profile.patience:
        return Move("thank" if talk.satisfied else "leave", leaves=True)
    return None


def _consent(talk: Talk, profile: Profile, random: Random) -> Move:
    """The agent asks to agree to something."""
    acts = [wish for wish in talk.view.wishes if wish.kind == "act"]
    wanted = next((wish for wish in acts if covers(talk.now, wish)), None)
    if wanted is not None:
        again = any(asks_confirmation(t) and covers(t, wanted) for t in talk.heard[:-1])
        if not again and random.random() < profile.challenge:
            return Move("challenge")
        return Move("confirm")
    facts = tuple(f for f in talk.asked(talk.now) if not mentions(talk.now, f.value))
    if facts:
        return _answer(talk, facts, profile, random)
    close = next((wish for wish in acts if _has(talk.now, wish.verbs)), None)
    if close is not None:
        wrong = [
            fact
            for fact in talk.view.facts
            if fact.value in close.mentions
            and not mentions(talk.now, fact.value)
            and talk.told(fact)
        ]
        if wrong:
            return Move("amend", (wrong[0],))
    wish = close.text if close is not None else talk.open_wish
    return Move("correct" if acts else "restate", wish=wish)


def _answer(talk: Talk, facts: tuple[Fact, ...], profile: Profile, random: Random) -> Move:
    """The agent asks for facts; at the first time the user may ask back."""
    before = {fact.name for text in talk.heard[:-1] if asks(text) for fact in talk.asked(text)}
    fresh = not any(fact.name in before for fact in facts)
    if fresh and random.random() >= profile.cooperativeness:
        return Move("clarify", facts[:1])
    if random.random() < profile.expertise:
        spare = [f for f in talk.view.facts if f not in facts and not talk.told(f)]
        facts = (*facts, *spare[:1])
    if len(facts) > 1:
        return Move("several", facts)
    return Move("repeat" if talk.told(facts[0]) else "inform", facts)


def _unanswered(talk: Talk) -> Move:
    """The agent asks for what the user does not know, or is thanked all the same."""
    return Move("thank", leaves=True) if talk.satisfied else Move("unknown")


def _listen(talk: Talk, profile: Profile, random: Random) -> Move:
    """The agent states something, offers help, or makes no sense."""
    news = [
        wish
        for wish in talk.view.wishes
        if talk.met(wish, len(talk.heard)) and not talk.met(wish, len(talk.heard) - 1)
    ]
    if any(wish.kind == "know" for wish in news) and random.random() < profile.challenge:
        return Move("doubt")
    if promises(talk.now):
        return Move("wait")
    if talk.satisfied:
        return Move("thank", leaves=True)
    wish = talk.open_wish
    if news:
        return Move("wait") if wish == NOTHING_MORE else Move("more", wish=wish)
    if offers(talk.now):
        return Move("want", wish=wish)
    if not any(letter.isalnum() for letter in talk.now):
        return Move("confused")
    return Move("still", wish=wish) if talk.view.wishes else Move("wait")


def topic_of(fact: str) -> str:
    """`order` for `order` and `order_2`."""
    head, _, tail = fact.rpartition("_")
    return head if tail.isdigit() else fact


def covers(text: str, wish: Wish) -> bool:
    """The words are about the wish: they have one of its verbs and all its values."""
    return _has(text, wish.verbs) and all(mentions(text, value) for value in wish.mentions)


def says_done(text: str, wish: Wish) -> bool:
    """The words can be taken to say that the wish is done; not strict, for people are not."""
    if promises(text) or (asks(text) and not offers(text)):
        return False
    return (
        reports(text)
        or _has(text, wish.verbs)
        or any(mentions(text, value) for value in wish.mentions)
    )
