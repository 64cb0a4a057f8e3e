"""A gym of one's own: find out what somebody wants of a meeting, then name all of it."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from progrl.dialogue.acts import contains, mentions
from progrl.dialogue.messages import Action, Message, Say, ToolCall
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import Fact, UserReply, UserView
from progrl.environments.choices import Choices, Use
from progrl.environments.contracts import State, StepResult
from progrl.environments.gyms import Draft, Gym, GymEnvironment, spec

PROPOSE = "propose"
DETAILS: Mapping[str, tuple[str, ...]] = {
    "day": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday"),
    "hour": ("eight", "nine", "ten", "eleven", "noon", "one", "two", "three"),
    "place": ("office", "library", "park", "station", "museum", "market"),
    "drink": ("tea", "coffee", "water", "juice", "milk", "cocoa"),
    "topic": ("budget", "garden", "travel", "music", "school", "garage"),
}
"""What a meeting consists of. No value may be a word of another."""


class MeetingEnvironment(GymEnvironment):
    """Knows what is wanted, and judges proposals; what is said to the user earns nothing."""

    def begin(self, task: Task) -> None:
        """An episode of this task begins."""
        self._wanted: Mapping[str, str] = task.goal

    def call(self, tool: str, content: str) -> StepResult:
        """A proposal is right that names what is wanted, and of no detail two values."""
        for name, values in DETAILS.items():
            named = [value for value in values if mentions(content, value)]
            if len(named) > 1:
                return self.error(f"name one {name}")
            if named != [self._wanted[name]]:
                return self.result("wrong")
        return self.result("right", reward=1.0, steps=["solved"])


class MeetingExpert:
    """Asks for each detail that it has not heard of, then proposes."""

    def next_action(self, state: State) -> Action:
        """A question, or the proposal."""
        heard = " ".join(m.content for m in state.history if m.role == "user")
        for name, value in state.task.goal.items():
            if not mentions(heard, value):
                return Say(f"which {name} do you want ?")
        return ToolCall(PROPOSE, {"meeting": " ".join(state.task.goal.values())})


class Meeting(Gym):
    """People who want to meet."""

    name = "meeting"
    description = "Find out when, where and about what somebody wants to meet."
    policy = "Ask for what the user leaves open, one thing at a time, then propose the meeting.\n"
    tools = (spec(PROPOSE, "Propose the meeting.", {"meeting": "day, hour, place, drink, topic"}),)
    choices: ClassVar[Choices] = {"action": None, "answer": Use(PROPOSE, "meeting")}
    kinds: ClassVar[Mapping[int, str]] = {level: f"open_{level}" for level in range(1, 6)}

    def draft(self, random: Random, level: int) -> Draft:
        """A meeting of which `level` details are left open."""
        goal = {name: random.choice(values) for name, values in DETAILS.items()}
        left = sorted(random.sample(sorted(goal), level))
        told = [f"{name} {value}" for name, value in goal.items() if name not in left]
        query = f"i want to meet ; {' , '.join([*told, 'ask me for the rest'])}"
        return Draft(self.kinds[level], query, goal, {"open": left})

    def environment(self) -> MeetingEnvironment:
        """A fresh environment for each episode."""
        return MeetingEnvironment(self.tools)

    def expert(self) -> MeetingExpert:
        """The expert."""
        return MeetingExpert()

    def user_view(self, task: Task) -> UserView:
        """All that the user knows: each detail, told when a question has its name."""
        facts = tuple(
            Fact(name, value, (name,), told=name not in task.setup["open"])
            for name, value in task.goal.items()
        )
        return UserView(self.name, task.query, facts, (), task.seed)

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """The first detail that is asked for."""
        question = history[-1].content
        for fact in view.facts:
            if contains(question, fact.cues):
                words = random.choice(("the {} is {}", "{} {} please", "for the {} i want {}"))
                return UserReply(words.format(fact.name, fact.value), "inform")
        return UserReply("what do you want to know ?", "unknown")
