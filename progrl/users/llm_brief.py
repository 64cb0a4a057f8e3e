"""What a language model that plays the user is told before a reply, and what it may answer.

The rules of the scripted user read the conversation first. The model gets a fact's value once the
agent has asked for it or the user has said it, and never a value that only tools know: whether
what the agent proposes is what the user wants, and whether the user has all that it came for, it
is told as a yes or a no.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from progrl.dialogue.acts import affirms, asks, asks_confirmation, mentions, offers, promises
from progrl.dialogue.users import Fact, UserView
from progrl.users.contracts import Profile
from progrl.users.decisions import NOTHING_MORE, Talk, covers, ending, topic_of

MOST_CHARACTERS = 600
_FORM = '{"act": ..., "text": ..., "done": true or false}'
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)

_RULES = """\
You play a customer who writes to a support agent of the domain {domain}. You are the customer
and never the agent.
Rules:
- Answer the agent's last words in one or two short sentences, in the style of your first message.
- Tell only what the agent asks for. Of facts you know only those listed below; never invent one.
- Write values exactly as they are listed, and call no tools.
- Agree to nothing but what you are told below to agree to.
- You end the conversation only when you are told below that you may.
Your manner: {manner}
Reply with one JSON object and nothing else: {form}
"act" is one of the acts that are allowed below, "text" what you say to the agent, "done" true only
if you end the conversation with it. For instance:
{{"act": "clarify", "text": "which one do you mean ?", "done": false}}"""


class BrokenForm(ValueError):
    """A model's reply that cannot be used; the text says why, in words for the model."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A reply as the model wrote it, in its form: the act, the words, and whether it leaves."""

    act: str
    text: str
    done: bool


@dataclass(frozen=True, slots=True)
class Brief:
    """What the user knows before a reply.

    Attributes:
        talk: the conversation.
        known: facts whose values the model may see.
        asked: those that the agent's last words ask for.
        acts: allowed now; the first fits best.
        situation: what the rules make of the agent's last words.
        may_leave: the user may end the conversation.
        must_leave: it has to.
    """

    talk: Talk
    known: tuple[Fact, ...]
    asked: tuple[Fact, ...]
    acts: tuple[str, ...]
    situation: str
    may_leave: bool
    must_leave: bool

    @classmethod
    def of(cls, talk: Talk, profile: Profile) -> "Brief":
        """By the rules of the scripted user."""
        asked = _asked(talk, talk.now)
        before = {fact.name for text in talk.heard for fact in _asked(talk, text)}
        known = tuple(f for f in talk.view.facts if f.name in before or talk.told(f))
        end = ending(talk, profile)
        if end is not None:
            words = "You have lost your patience and end the conversation now."
            if end.kind == "thank":
                words = "You have got all that you wanted and end the conversation now."
            return cls(talk, known, asked, (end.kind,), words, True, True)
        acts, situation = _situation(talk, asked, profile)
        return cls(talk, known, asked, acts, situation, talk.satisfied, False)

    def messages(self, profile: Profile) -> list[dict[str, str]]:
        """The prompt, as messages of the chat protocol."""
        view = self.talk.view
        rules = _RULES.format(form=_FORM, domain=view.domain, manner=" ".join(_manner(profile)))
        facts = [f"- {label_of(fact, view)}: {fact.value}" for fact in self.known]
        want = "nothing more" if self.talk.satisfied else self.talk.open_wish
        now = [
            "The conversation so far:",
            *_transcript(self.talk),
            "",
            f"What you want: {want}",
            "Facts that you may tell:",
            *(facts or ["- none"]),
            f"Now: {self.situation}",
            f"Allowed acts: {', '.join(self.acts)}. You "
            + ("may end the conversation." if self.may_leave else "may not end the conversation."),
        ]
        return [
            {"role": "system", "content": rules},
            {"role": "user", "content": "\n".join(now)},
        ]

    def read(self, content: str) -> Draft:
        """The reply in a model's answer; its thoughts and a fence around it are left out.

        Raises:
            BrokenForm: it is in another form, has an act that is not allowed, agrees where the act
                does not (or the other way round), leaves out what it tells, or gives away a fact.
        """
        draft = _parse(content)
        if draft.act not in self.acts:
            raise BrokenForm(f'the act "{draft.act}" is not one of {", ".join(self.acts)}')
        if asks_confirmation(self.talk.now) and affirms(draft.text) != (draft.act == "confirm"):
            raise BrokenForm(
                'the text must begin with "yes" for the act confirm, and must not agree otherwise'
            )
        tells = draft.act in {"inform", "repeat"} and self.asked
        if tells and not any(mentions(draft.text, fact.value) for fact in self.asked):
            raise BrokenForm("the text does not tell what was asked for, exactly as it is listed")
        if self._gives_away(draft.text):
            raise BrokenForm("the text tells something that the agent has not asked for")
        return draft

    def early(self, draft: Draft) -> bool:
        """The model wants to end a conversation that the rules do not let it end."""
        return draft.done and not self.may_leave

    def _gives_away(self, text: str) -> bool:
        """A guess can be right: then it names a fact that nobody has named yet."""
        names = {fact.name for fact in self.known}
        spoken = (*self.talk.heard, *self.talk.said)
        return any(
            mentions(text, fact.value)
            for fact in self.talk.view.facts
            if fact.name not in names and not any(mentions(said, fact.value) for said in spoken)
        )


def label_of(fact: Fact, view: UserView) -> str:
    """What people call a fact."""
    return view.labels.get(fact.name, topic_of(fact.name).replace("_", " "))


def correction(prompt: Sequence[Mapping[str, str]], content: str, why: str) -> list[dict[str, str]]:
    """The prompt of the second and last try, after an answer that cannot be used."""
    said = f"Your reply cannot be used: {why}. Reply again with one JSON object: {_FORM}"
    return [
        *(dict(message) for message in prompt),
        {"role": "assistant", "content": content[:MOST_CHARACTERS]},
        {"role": "user", "content": said},
    ]


def _parse(content: str) -> Draft:
    text = _THOUGHTS.sub("", content).strip()
    fenced = _FENCE.match(text)
    try:
        value: Any = json.loads(fenced.group(1) if fenced else text)
    except ValueError:
        raise BrokenForm("it is not one JSON object") from None
    if not isinstance(value, dict) or set(value) != {"act", "text", "done"}:
        raise BrokenForm("it must have the keys act, text, done and no others")
    act, words, done = value["act"], value["text"], value["done"]
    if not isinstance(act, str) or not isinstance(words, str) or not isinstance(done, bool):
        raise BrokenForm("act and text must be strings, done true or false")
    words = " ".join(words.split())
    if not 0 < len(words) <= MOST_CHARACTERS:
        raise BrokenForm(f"the text must have 1 to {MOST_CHARACTERS} characters")
    return Draft(act, words, done)


def _asked(talk: Talk, text: str) -> tuple[Fact, ...]:
    return talk.asked(text) if asks(text) or asks_confirmation(text) else ()


def _transcript(talk: Talk) -> list[str]:
    lines = []
    for number, said in enumerate(talk.said):
        lines.append(f"you: {said}")
        if number < len(talk.heard):
            lines.append(f"agent: {talk.heard[number]}")
    return lines


def _situation(talk: Talk, asked: Sequence[Fact], profile: Profile) -> tuple[tuple[str, ...], str]:
    """Acts that are allowed, and what there is to do."""
    if asks_confirmation(talk.now):
        return _consent(talk, profile)
    if asked:
        labels = ", ".join(label_of(fact, talk.view) for fact in asked)
        acts = ("repeat", "clarify") if all(map(talk.told, asked)) else ("inform", "clarify")
        return acts, f"The agent asks for: {labels}. Tell it, or ask back what is meant."
    if talk.satisfied:
        return ("thank",), "You have got all that you wanted. Thank, and end the conversation."
    if asks(talk.now) and not offers(talk.now):
        return (
            ("unknown", "clarify", "ask"),
            "The agent asks for something that is not listed: say that you do not know.",
        )
    if promises(talk.now):
        return ("wait", "ask"), "The agent is about to do something: let it."
    return ("ask", "wait", "challenge"), "You still want what stands above: say so."


def _consent(talk: Talk, profile: Profile) -> tuple[tuple[str, ...], str]:
    """The agent asks to agree to something; whether that is wanted is decided by rule."""
    acts = [wish for wish in talk.view.wishes if wish.kind == "act"]
    wanted = next((wish for wish in acts if covers(talk.now, wish)), None)
    if wanted is None:
        wish = talk.open_wish
        said = "" if wish == NOTHING_MORE else f" You want this: {wish}."
        return (
            ("correct", "inform", "clarify", "unknown"),
            "The agent asks you to agree to something that is not, or not all of, what you want. "
            f"Do not agree; say what is wrong or missing.{said}",
        )
    again = any(asks_confirmation(text) and covers(text, wanted) for text in talk.heard[:-1])
    said = "The agent asks you to agree to just what you want. Agree, beginning with yes."
    if again or profile.challenge == 0:
        return ("confirm",), said
    return ("confirm", "challenge"), f"{said} You may question it instead, this once."


def _manner(profile: Profile) -> list[str]:
    lines = [
        "You write full, friendly sentences." if profile.verbosity >= 0.5 else "You are brief."
    ]
    if profile.cooperativeness < 0.9:
        lines.append("You sometimes ask back before you answer.")
    if profile.challenge >= 0.15:
        lines.append("You are wary, and question what you are told.")
    if profile.typos > 0:
        lines.append("You mistype a word now and then, never a value.")
    return lines
