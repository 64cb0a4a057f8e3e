"""The gym `intention`: find out by focused questions what a vague want leaves open."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from progrl.dialogue.acts import asks, mentions
from progrl.dialogue.messages import Action, Message, Say, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import Fact, UserReply, UserView
from progrl.environments.choices import Choices
from progrl.environments.contracts import State, StepResult
from progrl.environments.gyms.base import Draft, Gym, GymEnvironment
from progrl.environments.gyms.recognise import Judge, JudgedOptions, Subject, about, judge
from progrl.environments.gyms.wants import DETAILS, SUBJECTS, WANTS

WORTH: Mapping[int, float] = {3: 1.0, 2: 0.7, 1: 0.4}
"""What a question earns, by the highest importance among the details that it newly covers."""
FURTHER = 0.2
"""What is taken off for each further detail that the same question covers."""
MISSING: Mapping[int, int] = {1: 2, 2: 3, 3: 4, 4: 5, 5: 7}
"""How many details are missing, by level; the opening words tell the others."""

_QUERIES = (
    "i want to {want} . please find out what i have in mind{told}",
    "help me to {want}{told} . what do you need to know ?",
    "hi , i would like to {want}{told}",
    "can you assist me ? i am going to {want}{told}",
    "i have decided to {want} , and need your advice{told}",
)
_TELLS = ("{v}", "{v} , i think", "i would say {v}", "best {v}", "{v} please")


def worth(importances: Sequence[int]) -> float:
    """The turn reward of a question that newly covers details of these importances."""
    if not importances:
        return 0.0
    # Rounded, for 0.7 less 0.2 is no round number in binary.
    return max(0.0, round(WORTH[max(importances)] - FURTHER * (len(importances) - 1), 6))


def subjects_of(facts: Sequence[Fact]) -> list[Subject]:
    """What can be asked of a user."""
    return [SUBJECTS.get(f.name) or Subject(f.name, f.cues, f.name) for f in facts]


class IntentionEnvironment(GymEnvironment):
    """The details. `questions` are for experts: of those that are neither told nor covered."""

    def __init__(self, judged: Judge | None) -> None:
        super().__init__(())
        self._judge = judged

    def begin(self, task: Task) -> None:
        """Nothing is covered."""
        missing: Sequence[Mapping[str, Any]] = task.goal["missing"]
        self._importance: dict[str, int] = {d["name"]: d["importance"] for d in missing}
        self._subjects = subjects_of(facts_of(task))
        self.questions: dict[str, str] = {d["name"]: d["inquiry"] for d in missing}

    def call(self, tool: str, content: str) -> StepResult:
        """There are no tools."""
        return self.error(f"no tool {tool}")

    def said(self, text: str) -> StepResult:
        """A question that covers what is missing is worth something."""
        if not asks(text):
            return self.result()
        new = [name for name in about(text, self._subjects, self._judge) if name in self.questions]
        for name in new:
            del self.questions[name]
        reward = worth([self._importance[name] for name in new])
        return self.result(reward=reward, steps=[f"covered {name}" for name in new])


class IntentionExpert:
    """Asks for the details one by one."""

    def next_action(self, state: State) -> Action:
        """The next question.

        Raises:
            EnvironmentFault: the episode is not one of this gym.
        """
        environment = state.played_in(IntentionEnvironment)
        return Say(next(iter(environment.questions.values()), "that is all"))


def facts_of(task: Task) -> tuple[Fact, ...]:
    """What the user knows: the details, told or missing."""
    told = [Fact(n, v, SUBJECTS[n].cues, True) for n, v in task.goal.get("told", {}).items()]
    return (
        *told,
        *(Fact(d["name"], d["value"], tuple(d["cues"])) for d in task.goal["missing"]),
    )


class Intention(Gym):
    """Wants to be made out."""

    Options = JudgedOptions
    name = "intention"
    description = "A vague want: find out by focused questions what it leaves open."
    policy = (
        "The user wants something and leaves open what matters. Ask for each detail that is "
        "missing by a question of its own; what matters most first.\n"
    )
    tools: tuple[ToolSpec, ...] = ()
    choices: ClassVar[Choices] = {"action": None}
    kinds: ClassVar[Mapping[int, str]] = {level: f"{n}_missing" for level, n in MISSING.items()}

    def __init__(self, options: JudgedOptions | None = None) -> None:
        super().__init__(options)
        self._judge = judge((options or JudgedOptions()).recogniser, self.name)

    def draft(self, random: Random, level: int) -> Draft:
        """A want, and which of its details are missing."""
        want = random.choice(list(WANTS))
        names = list(WANTS[want])
        wanted = {name: random.choice(DETAILS[name].values) for name in names}
        missing = set(random.sample(names, MISSING[level]))
        told = {name: wanted[name] for name in names if name not in missing}
        words = " , ".join(f"{name} {value}" for name, value in told.items())
        query = random.choice(_QUERIES).format(want=want, told=f" ; {words}" if told else "")
        left = [_missing(random, name, wanted[name]) for name in names if name in missing]
        goal = {"told": told, "missing": left}
        steps = tuple(f"covered {detail['name']}" for detail in left)
        return Draft(self.kinds[level], query, goal, {}, steps)

    def environment(self) -> IntentionEnvironment:
        """A fresh environment."""
        return IntentionEnvironment(self._judge)

    def expert(self) -> IntentionExpert:
        """The expert."""
        return IntentionExpert()

    def user_view(self, task: Task) -> UserView:
        """The details, each told when asked for."""
        return UserView(self.name, task.query, facts_of(task), (), task.seed)

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """What the question asks for, all of it."""
        question = history[-1].content
        asked = about(question, subjects_of(view.facts), self._judge) if asks(question) else []
        if not asked:
            if about(question, list(SUBJECTS.values())):
                return UserReply("that does not matter to me", "unknown")
            return UserReply("what do you want to know ?", "clarify")
        values = {fact.name: fact.value for fact in view.facts}
        words = " and ".join(f"for {name} {values[name]}" for name in asked)
        said = " ".join(m.content for m in history if m.role == "user")
        known = all(mentions(said, values[name]) for name in asked)
        if known:
            return UserReply(f"as i said , {words}", "repeat")
        return UserReply(random.choice(_TELLS).format(v=words), "inform")


def _missing(random: Random, name: str, value: str) -> dict[str, Any]:
    """A detail that the opening words leave open; to some it matters more or less than to most."""
    detail = DETAILS[name]
    own = random.random() < 0.25
    return {
        "name": name,
        "importance": random.randint(1, 3) if own else detail.importance,
        "inquiry": detail.question,
        "cues": list(SUBJECTS[name].cues),
        "value": value,
    }
