"""The gym `telepathy`: guess what the user thinks of by questions that are answered yes or no."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from progrl.dialogue.acts import normal
from progrl.dialogue.messages import Action, Message, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import Fact, UserReply, UserView
from progrl.environments.choices import Choices, Use
from progrl.environments.contracts import State, StepResult
from progrl.environments.gyms.base import Draft, Gym, GymEnvironment
from progrl.environments.gyms.recognise import Judge, JudgedOptions, judge, stems
from progrl.environments.gyms.things import CUES, QUESTIONS, THINGS, telling, things_in, traits_in
from progrl.environments.service.tools import spec

GUESS = "guess"
YES, NO = "yes", "no"
SIZES: Mapping[int, int] = {1: 4, 2: 6, 3: 9, 4: 13, 5: 18}
"""How many things are to choose from, by level."""

_VERDICT = re.compile(r"\b(yes|yeah|yep|no|nope)\b")
_NEGATED = re.compile(r"\b(not|never)\b|n't\b")
_WORDINGS = {
    YES: ("yes", "yes , it is so", "yeah", "yes , right", "yep"),
    NO: ("no", "no , not at all", "nope", "no , sorry", "no , it is not so"),
}
_AROUND = re.compile(
    r"^(?:(?:is it|it is|its|i guess|my guess is|my answer is|i think it is) )?(?:(?:the|an?) )?"
)
_QUERIES = (
    "i think of one of these : {things} . ask about it , then name it",
    "one of these is in my mind : {things} . which one ?",
    "guess what i think of . it is one of {things}",
    "i have chosen one of {things} . find out which",
    "can you read my mind ? it is one of these : {things}",
)


def named_by(text: str) -> str:
    """The name in a guess, without what stands around it."""
    plain = re.sub(r"[^\w\s]", "", normal(text).replace("-", " "))
    return _AROUND.sub("", " ".join(plain.split()))


def names_of(title: str, entity: str) -> list[str]:
    """What an imported thing may be called: by its title, or before the dash of its description."""
    first = re.split(r"\s+[-–—:]\s+|,|\(", entity)[0]
    plain = re.sub(r"\s*(?<!\w)['\"‘“].+?['\"’”](?!\w)\s*", " ", title)
    return [name for name in dict.fromkeys(map(named_by, (title, first, plain))) if name]


class TelepathyEnvironment(GymEnvironment):
    """What the user thinks of. `left` are the things that fit the answers, for experts."""

    def __init__(self, tools: Sequence[ToolSpec], judged: Judge | None) -> None:
        super().__init__(tools)
        self._judge = judged

    def begin(self, task: Task) -> None:
        """The user has chosen."""
        self._thing: str = task.goal["thing"]
        self.left: list[str] = list(task.setup["things"])
        self._asked = ""
        self._names: list[str] = task.goal.get("names", [])
        self.category: str = task.setup.get("category", "")
        self.asked = 0

    def call(self, tool: str, content: str) -> StepResult:
        """Judge a guess."""
        if self._names:
            right = named_by(content) in self._names
            return self.result("right", 1.0, ["solved"]) if right else self.result("wrong")
        named = things_in(content)
        if len(named) > 1:
            return self.error("name one thing")
        if named == (self._thing,):
            return self.result("right", 1.0, ["solved"])
        self.left = [thing for thing in self.left if thing not in named]
        return self.result("wrong")

    def said(self, text: str) -> StepResult:
        """Remember the question; it earns nothing."""
        self._asked = text
        self.asked += 1
        return StepResult()

    def hear(self, reply: UserReply) -> StepResult:
        """Rule out what does not fit the answer."""
        verdict = _VERDICT.search(reply.text)
        asked = traits_in(self._asked, self._judge)
        if verdict is not None and len(asked) == 1 and not _NEGATED.search(self._asked):
            holds = verdict[1].startswith("y")
            self.left = [thing for thing in self.left if (asked[0] in THINGS[thing]) == holds]
        return super().hear(reply)


class TelepathyExpert:
    """Asks what halves the things that are left, and names the last."""

    def next_action(self, state: State) -> Action:
        """A question, or a guess.

        Raises:
            EnvironmentFault: the episode is not one of this gym.
        """
        environment = state.played_in(TelepathyEnvironment)
        if environment.category:  # an imported thing, which nobody can narrow down from a list
            if not environment.asked:
                return Say(f"does it have to do with {environment.category.replace('_', ' ')} ?")
            return ToolCall(GUESS, {"thing": state.task.goal["thing"]})
        left = environment.left
        if not left:
            return Say("i do not know", closing=True)
        if len(left) == 1:
            return ToolCall(GUESS, {"thing": left[0]})
        return Say(QUESTIONS[telling(tuple(left))])


class Telepathy(Gym):
    """Things to be guessed."""

    Options = JudgedOptions
    name = "telepathy"
    description = "What does the user think of? Found by questions answered yes or no."
    policy = (
        "The user thinks of one of the things that it names. Ask questions that can be answered "
        "yes or no, then guess the thing.\n"
    )
    tools = (spec(GUESS, "Guess what the user thinks of.", {"thing": "its name"}),)
    choices: ClassVar[Choices] = {"action": None, "answer": Use(GUESS, "thing")}
    kinds: ClassVar[Mapping[int, str]] = {level: f"of_{size}" for level, size in SIZES.items()}

    def __init__(self, options: JudgedOptions | None = None) -> None:
        super().__init__(options)
        self._judge = judge((options or JudgedOptions()).recogniser, self.name)

    def draft(self, random: Random, level: int) -> Draft:
        """Things to choose from, and the one that is meant."""
        things = random.sample(sorted(THINGS), SIZES[level])
        query = random.choice(_QUERIES).format(things=" , ".join(things))
        goal = {"thing": random.choice(things)}
        return Draft(self.kinds[level], query, goal, {"things": things})

    def environment(self) -> TelepathyEnvironment:
        """A fresh environment."""
        return TelepathyEnvironment(self.tools, self._judge)

    def expert(self) -> TelepathyExpert:
        """The expert."""
        return TelepathyExpert()

    def user_view(self, task: Task) -> UserView:
        """A yes or no for each trait, and for each thing: told when asked for, never at once.

        The values differ by what they are about: having said one yes gives no other away.
        """
        thing: str = task.goal["thing"]
        if "about" in task.goal:
            words = sorted(stems(task.goal["about"]))
            true = tuple(Fact(word, f"{word} {YES}", (word,)) for word in words)
            return UserView(self.name, task.query, true, (), task.seed)
        held = {name: name in THINGS[thing] for name in QUESTIONS}
        held |= {name: name == thing for name in task.setup["things"]}
        facts = [
            Fact(name, f"{name} {YES if holds else NO}", CUES.get(name, (name,)))
            for name, holds in held.items()
        ]
        return UserView(self.name, task.query, tuple(facts), (), task.seed)

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """Yes where all that the question asks for holds; a name is asked for by naming it."""
        question = history[-1].content
        true = {fact.name for fact in view.facts if fact.value.endswith(YES)}
        ours = QUESTIONS.keys() <= {fact.name for fact in view.facts}
        asked: Sequence[str] = tuple(stems(question))
        if ours:
            things = things_in(question)
            asked = (*things, *traits_in(question, None if things else self._judge))
        if not asked:
            return UserReply("i can say yes or no only", "unknown")
        right = true.issuperset(asked) != bool(_NEGATED.search(question))
        return UserReply(random.choice(_WORDINGS[YES if right else NO]), "inform")
