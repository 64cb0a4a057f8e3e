"""The gym `persuade`: find out what somebody holds against a thing, and argue for it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from random import Random
from typing import Any, ClassVar

from progrl.dialogue.acts import asks, mentions, normal
from progrl.dialogue.messages import Action, Message, Say, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import Fact, UserReply, UserView
from progrl.environments.choices import Choices
from progrl.environments.contracts import State, StepResult
from progrl.environments.gyms.base import Draft, Gym, GymEnvironment
from progrl.environments.gyms.concerns import ARGUMENTS, CONCERNS, TOPICS
from progrl.environments.gyms.recognise import (
    Judge,
    JudgedOptions,
    Subject,
    about,
    affirmed,
    holds,
    judge,
    sentences,
)

STANCES = (
    "strongly against it",
    "against it",
    "rather against it",
    "undecided",
    "rather for it",
    "for it",
    "strongly for it",
)
FAR_END = len(STANCES) - 1
AT_ONCE = 2
"""Arguments that a person takes in at once; of more none is heard."""
STRESS: Mapping[int, str] = {3: "above all", 2: "also", 1: "perhaps"}
"""How a person says that a concern weighs so many levels."""
WEIGHTS: Mapping[int, tuple[int, ...]] = {
    1: (3, 3),
    2: (3, 2, 1),
    3: (2, 2, 1, 1),
    4: (2, 1, 1, 1, 1),
    5: (1, 1, 1, 1, 1, 1),
}
"""What the concerns weigh, by level: together the whole scale."""

GENERAL: tuple[str, ...] = (
    "worries",
    "worry",
    "why",
    "matters",
    "matter to you",
    "concern",
    "concerns",
    "against",
)
GENERAL += ("objection", "objections", "object to", "problem", "what else", "reasons", "bothers")

_PRESSURE = re.compile(
    r"\b(you must|you have to|you are wrong|stupid|silly|nonsense|ridiculous|idiots?|foolish|"
    r"shut up|obey|just do it|no choice|ignorant)\b"
)
_SOOTHES = re.compile(
    r"\b(i understand|you are right|fair point|good point|i see your point|i see why|sorry|"
    r"i hear you|that is fair|makes sense|apologi[sz]e|my mistake|i respect)\b"
)
_QUERIES = (
    "i am strongly against {topic}{told} . can you change my mind ?",
    "{topic} ? i will have none of it{told}",
    "nobody will win me over to {topic}{told} . go on , try it",
    "they want me to agree to {topic} , and i do not{told}",
    "my view is firm : no to {topic}{told}",
)


def worth(levels: int) -> float:
    """The turn reward of so many levels gained beyond the best stance so far: 1 for all six."""
    return (exp(0.3 * levels) - 1) / (exp(0.3 * FAR_END) - 1)


@dataclass(frozen=True, slots=True)
class Worry:
    """A person's concern: what it weighs, how it is put, and what asks for it."""

    name: str
    weight: int
    words: str
    cues: tuple[str, ...]


def worries(facts: Sequence[Fact]) -> list[Worry]:
    """The concerns of a person, with their weights as it words them, and the cues of their own."""
    return [
        Worry(fact.name, weight, fact.value, fact.cues[len(GENERAL) :])
        for fact in facts
        for weight, words in STRESS.items()
        if fact.value.startswith(f"{words} ")
    ]


@dataclass(frozen=True, slots=True)
class Heard:
    """A message as it is taken in, whoever hears it.

    Attributes:
        said: its sentences that ask nothing.
        statements: the same without what they deny.
        question: what it asks; "" for nothing.
        about: the concerns that a cue in its statements meets.
        pressing: it presses the person.
        soothing: it shows understanding.
    """

    said: tuple[str, ...]
    statements: tuple[str, ...]
    question: str
    about: tuple[str, ...]
    pressing: bool
    soothing: bool


@lru_cache(maxsize=65536)
def heard(text: str) -> Heard:
    """Take in a message."""
    text = normal(text)
    said = tuple(sentence for sentence in sentences(text) if not sentence.endswith("?"))
    statements = tuple(map(affirmed, said))
    questions = [sentence for sentence in sentences(text) if sentence.endswith("?")]
    if not questions and asks(text):
        questions = list(statements)
    named = [name for s in statements for name in about(s, list(ARGUMENTS.values()))]
    return Heard(
        said,
        statements,
        " ".join(questions),
        tuple(dict.fromkeys(named)),
        bool(_PRESSURE.search(text)),
        bool(_SOOTHES.search(text)),
    )


def arguments(taken: Heard, judged: Judge | None) -> list[str]:
    """The concerns that a message meets: by its cues, or else as the judge finds them."""
    found: Sequence[str] = taken.about
    if not found and judged is not None:
        subjects = list(ARGUMENTS.values())
        found = [name for s in taken.statements for name in about(s, subjects, judged)]
    return list(dict.fromkeys(found))


class Mind:
    """A person's stance, moved by what it hears.

    A message gains what the concerns weigh that it newly meets, of one or two arguments; of more
    arguments at once none is heard. An argument beside the point, or pressure, costs a level each;
    to show that one understands wins one back.

    Attributes:
        told: the concerns that the person has told, in order.
        met: those that were met.
        stance: from 0, strongly against, to 6.
    """

    def __init__(self, concerns: Sequence[Worry], told: Sequence[str], judged: Judge | None):
        self._concerns = {worry.name: worry for worry in concerns}
        self._ours = self._concerns.keys() <= CONCERNS.keys()
        self._judge = judged
        self.told = list(told)
        self.met: set[str] = set()
        self.stance = 0
        self._gained = self._lost = 0

    def hears(self, text: str) -> list[str]:
        """Be moved by a message; the concerns that it argues about."""
        taken = heard(text)
        made = self._arguments(taken)
        offences = int(taken.pressing)
        if 0 < len(made) <= AT_ONCE:
            for name in made:
                worry = self._concerns.get(name)
                if worry is not None and name not in self.met:
                    self.met.add(name)
                    self._gained += worry.weight
            offences += any(name not in self._concerns for name in made)
        self._lost = min(self._lost + offences, self._gained)
        if taken.soothing and self._lost and not offences:
            self._lost -= 1
        self.stance = self._gained - self._lost
        return made

    def answers(self, text: str) -> UserReply:
        """Be moved by a message, and tell how, and what is asked for."""
        before = self.stance
        made, question = self.hears(text), heard(text).question
        words = [self._moved(before, made)] if made or self.stance != before else []
        act = "inform" if words else "clarify"
        if question:
            act, answer = self._told(question)
            words.append(answer)
        return UserReply(" . ".join(words) or "that says nothing to me", act)

    def _arguments(self, taken: Heard) -> list[str]:
        if self._ours:
            return arguments(taken, self._judge)
        # What is imported is known by its own words alone, denied or not.
        subjects = [Subject(w.name, w.cues, w.words) for w in self._concerns.values()]
        found = [name for sentence in taken.said for name in about(sentence, subjects, self._judge)]
        return list(dict.fromkeys(found))

    def _moved(self, before: int, made: Sequence[str]) -> str:
        if len(made) > AT_ONCE:
            return "that is too much at once"
        now = f"i am {STANCES[self.stance]} now"
        if self.stance > before:
            return now
        return f"that puts me off , {now}" if self.stance < before else f"still {now}"

    def note(self, question: str) -> str | None:
        """The concern that a question finds out, which counts as told; None where it finds none."""
        fresh = [name for name in self._asked(question) if name not in self.told]
        if fresh:
            self.told.append(fresh[0])
        return fresh[0] if fresh else None

    def _asked(self, question: str) -> list[str]:
        """The concerns that a question asks for: those it names, or else all."""
        named = [w.name for w in self._concerns.values() if holds(question, w.cues)]
        return named or (list(self._concerns) if holds(question, GENERAL) else [])

    def _told(self, question: str) -> tuple[str, str]:
        """The act and the words of the answer to a question."""
        fresh = self.note(question)
        if fresh is not None:
            return "inform", f"what i mind is {self._concerns[fresh].words}"
        if self._asked(question):
            return "repeat", "i have told you all that i mind"
        if any(holds(question, concern.asked_by) for concern in CONCERNS.values()):
            return "unknown", "no , that is not it"
        return "clarify", "what do you want to know ?"


class PersuadeEnvironment(GymEnvironment):
    """The stance. For experts: `mind`, `worries` and `heard`, the concerns that were told."""

    def __init__(self, judged: Judge | None, published: bool) -> None:
        super().__init__(())
        self._judge = judged
        self._published = published

    def begin(self, task: Task) -> None:
        """The person is strongly against it."""
        facts = facts_of(task)
        self.worries = worries(facts)
        self.cases: dict[str, str] = {c["name"]: c["case"] for c in task.goal["concerns"]}
        self.heard = {fact.name for fact in facts if fact.told}
        self.mind = Mind(self.worries, sorted(self.heard), self._judge)
        self._best = 0

    def call(self, tool: str, content: str) -> StepResult:
        """There are no tools."""
        return self.error(f"no tool {tool}")

    def said(self, text: str) -> StepResult:
        """Words that move the person are worth something."""
        before = self.mind.stance
        self.mind.hears(text)
        now = self.mind.stance
        gained = max(0, now - self._best)
        steps = [f"stance {level}" for level in range(self._best + 1, now + 1)]
        self._best = max(self._best, now)
        reward = max(0, now - before) / FAR_END if self._published else worth(gained)
        return self.result(reward=reward, steps=steps)

    def hear(self, reply: UserReply) -> StepResult:
        """Note the concerns that the person tells."""
        self.heard.update(w.name for w in self.worries if mentions(reply.text, w.words))
        return super().hear(reply)


class PersuadeExpert:
    """Asks for what is minded, and meets two concerns at once."""

    def next_action(self, state: State) -> Action:
        """A question, or an argument.

        Raises:
            EnvironmentFault: the episode is not one of this gym.
        """
        environment = state.played_in(PersuadeEnvironment)
        left = [w.name for w in environment.worries if w.name not in environment.mind.met]
        known = [name for name in left if name in environment.heard]
        if len(known) >= min(AT_ONCE, len(left)) > 0:
            return Say(" . ".join(environment.cases[name] for name in known[:AT_ONCE]))
        if left:
            return Say("what else worries you ?" if environment.heard else "what worries you ?")
        return Say("i understand you")


def facts_of(task: Task) -> tuple[Fact, ...]:
    """What the person minds."""
    return tuple(
        Fact(c["name"], f"{STRESS[c['weight']]} {c['worry']}", (*GENERAL, *c["cues"]), c["told"])
        for c in task.goal["concerns"]
    )


class Persuade(Gym):
    """Minds to be changed."""

    Options = JudgedOptions
    name = "persuade"
    description = "Somebody is strongly against a thing: win them over by arguments."
    policy = (
        "The user is strongly against something. Find out what they mind, and argue for it: an "
        "argument counts that meets a concern of theirs, two at most in one message. What is "
        "beside the point, or presses them, sets you back; to show understanding mends it.\n"
    )
    tools: tuple[ToolSpec, ...] = ()
    choices: ClassVar[Choices] = {"action": None}
    kinds: ClassVar[Mapping[int, str]] = {level: f"{len(w)}_minded" for level, w in WEIGHTS.items()}

    def __init__(self, options: JudgedOptions | None = None) -> None:
        super().__init__(options)
        self._judge = judge((options or JudgedOptions()).recogniser, self.name)

    def draft(self, random: Random, level: int) -> Draft:
        """Something that a person is against, and why; at levels 1 and 2 a part of it is told."""
        topic = random.choice(list(TOPICS))
        names = random.sample(TOPICS[topic], len(WEIGHTS[level]))
        concerns: list[dict[str, Any]] = [
            {
                "name": name,
                "weight": weight,
                "worry": CONCERNS[name].worry,
                "cues": list(CONCERNS[name].asked_by),
                "case": CONCERNS[name].case,
                "told": level <= 2 and number == 0,
            }
            for number, (name, weight) in enumerate(zip(names, WEIGHTS[level], strict=True))
        ]
        told = "".join(f" , {STRESS[c['weight']]} {c['worry']}" for c in concerns if c["told"])
        query = random.choice(_QUERIES).format(topic=topic, told=told)
        return Draft(self.kinds[level], query, {"concerns": concerns}, {"topic": topic}, steps())

    def environment(self) -> PersuadeEnvironment:
        """A fresh environment."""
        return PersuadeEnvironment(self._judge, self.options.published)

    def expert(self) -> PersuadeExpert:
        """The expert."""
        return PersuadeExpert()

    def user_view(self, task: Task) -> UserView:
        """The concerns, each told when asked for."""
        return UserView(self.name, task.query, facts_of(task), (), task.seed)

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """The stance after all that was said, and a concern where one is asked for."""
        told = [fact.name for fact in view.facts if fact.told]
        mind = Mind(worries(view.facts), told, self._judge)
        *before, now = (m.content for m in history if m.role == "assistant")
        for text in before:
            mind.hears(text)
            if question := heard(text).question:
                mind.note(question)
        return mind.answers(now)


def steps() -> tuple[str, ...]:
    """The milestones: each level of the scale above the first."""
    return tuple(f"stance {level}" for level in range(1, FAR_END + 1))
