"""What gyms share: options, the stream of tasks, and an episode's book-keeping."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from progrl.dialogue.messages import Action, Message, Say, ToolSpec, words
from progrl.dialogue.tasks import Milestone, Split, Task, content_hash, read_tasks, split_of
from progrl.dialogue.trajectories import Outcome, assistant_message
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.choices import Choices, Interface
from progrl.environments.contracts import Environment, Expert, State, StepResult
from progrl.errors import ConfigurationError, MalformedAction
from progrl.seeds import Seed

MOST_TURNS = 16
"""An episode of the published evaluation has no more; every task can be solved within them."""

Level = Annotated[int, Field(ge=1, le=5)]
_ENDED = StepResult("error: the conversation has ended", failed=True)


class GymOptions(BaseModel):
    """What may be chosen of a gym."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    published: bool = Field(
        default=False,
        description="Turn rewards and ends of UserRL's published code, where these differ.",
    )
    levels: tuple[Level, ...] = Field(
        default=(1, 2, 3, 4, 5),
        min_length=1,
        description="Levels that tasks are drawn from, in turn.",
    )
    imported: Path | None = Field(
        default=None,
        description="The file of tasks that `progrl import` wrote, instead of tasks of our own.",
    )


@dataclass(frozen=True, slots=True)
class Draft:
    """A task's content. `steps` names its milestones, which weigh the same."""

    family: str
    query: str
    goal: Mapping[str, Any]
    setup: Mapping[str, Any]
    steps: tuple[str, ...] = ("solved",)


class GymEnvironment(ABC):
    """An episode: its tools take one text each, or nothing, and tell by rule what they are worth.

    Success is that the milestones of `needed` were reached.
    """

    reward_bounds: tuple[float, float] = (0.0, 1.0)

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._tools = tuple(tools)
        self._arguments = {
            tool.name: (tool, next(iter(tool.parameters["properties"]), "")) for tool in tools
        }

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Begin the task."""
        self._weights = {m.name: m.weight for m in task.milestones}
        self._reached: list[str] = []
        self._ended = False
        self.begin(task)
        return self._tools

    def step(self, action: Action) -> StepResult:
        """Apply a call, or take note of words; nothing that an agent does raises."""
        if self._ended:
            return _ENDED
        if isinstance(action, Say):
            self._ended = action.closing
            return StepResult() if action.closing else self.said(action.text)
        known = self._arguments.get(action.name)
        if known is None:
            return self.error(f"no tool {action.name}")
        tool, argument = known
        given = action.arguments
        try:
            if len(given) != bool(argument) or not all(type(v) is str for v in given.values()):
                tool.check(given)
            if argument and argument not in given:
                tool.check(given)
        except MalformedAction as error:
            return self.error(str(error))
        return self.call(action.name, given[argument] if argument else "")

    def hear(self, reply: UserReply) -> StepResult:
        """Take in the user's answer."""
        self._ended = self._ended or reply.leaves
        return StepResult()

    def outcome(self) -> Outcome:
        """The verdict as things stand."""
        progress = min(1.0, sum(self._weights[name] for name in self._reached))
        success = all(name in self._reached for name in self.needed())
        return Outcome(success, progress, tuple(self._reached), True, self.score())

    @abstractmethod
    def begin(self, task: Task) -> None:
        """Build the first state."""

    @abstractmethod
    def call(self, tool: str, content: str) -> StepResult:
        """What a call of `tool` leads to."""

    def said(self, text: str) -> StepResult:
        """What the agent's words to the user are worth; nothing where the gym does not say."""
        return StepResult()

    def needed(self) -> Sequence[str]:
        """The milestones that make success: all, where the gym does not say."""
        return tuple(self._weights)

    def score(self) -> float:
        """r_domain in [0, 1]: the share of what is needed, where the gym does not say."""
        needed = self.needed()
        return sum(name in self._reached for name in needed) / len(needed)

    def result(
        self, observation: str = "", reward: float = 0.0, steps: Sequence[str] = ()
    ) -> StepResult:
        """A result that reaches `steps`, and ends the episode where all that is needed is done."""
        new = tuple(s for s in dict.fromkeys(steps) if s not in self._reached)
        self._reached += new
        gain = sum(self._weights[name] for name in new)
        done = bool(new) and all(name in self._reached for name in self.needed())
        self._ended = self._ended or done
        return StepResult(observation, reward, new, gain, done)

    def ended(self, result: StepResult) -> StepResult:
        """The result, after which the episode ends."""
        self._ended = True
        return replace(result, done=True)

    def error(self, text: str) -> StepResult:
        """A call that failed."""
        return StepResult(f"error: {text}", failed=True)


class Gym(ABC):
    """A gym as a domain. Subclasses name theirs, draw tasks, and answer as the user."""

    Options: ClassVar[type[GymOptions]] = GymOptions
    interface: ClassVar[Interface] = "three_choice"
    name: str
    description: str
    policy: str
    tools: tuple[ToolSpec, ...]
    choices: ClassVar[Choices]
    kinds: ClassVar[Mapping[int, str]]
    """The family of tasks by level."""

    def __init__(self, options: GymOptions | None = None) -> None:
        self.options = options or GymOptions()

    def families(self) -> list[tuple[str, int]]:
        """Name and level of each family of tasks."""
        return [(name, level) for level, name in sorted(self.kinds.items())]

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """Unlimited tasks, the levels in turn; those that were imported, where they are."""
        if self.options.imported is not None:
            yield from self._imported(self.options.imported, split)
            return
        root = Seed.root(seed).child("domain", self.name)
        for slot in count():
            for level in self.options.levels:
                yield self._task(split, root.child("level", level).child("slot", slot), level)

    def task_count(self, split: Split) -> int | None:
        """How many tasks a split has; None where they are unlimited."""
        file = self.options.imported
        return None if file is None else sum(1 for _ in self._imported(file, split))

    def _imported(self, file: Path, split: Split) -> Iterator[Task]:
        for task in read_tasks(file):
            if task.domain != self.name:
                raise ConfigurationError(
                    f"{file}: holds tasks of {task.domain!r}, not of {self.name!r}."
                )
            if split_of(task.content_hash) == split and task.level in self.options.levels:
                yield task

    @abstractmethod
    def draft(self, random: Random, level: int) -> Draft | None:
        """Draw a task's content; None where the draw is no good."""

    @abstractmethod
    def environment(self) -> Environment:
        """A fresh environment."""

    @abstractmethod
    def expert(self) -> Expert:
        """The expert."""

    @abstractmethod
    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """What the scripted user answers."""

    def user_view(self, task: Task) -> UserView:
        """A user who knows nothing beyond the opening words."""
        return UserView(self.name, task.query, (), (), task.seed)

    def _task(self, split: Split, place: Seed, level: int) -> Task:
        """The first candidate of this place that falls into the split and can be solved."""
        tried = 0
        while True:
            seed = place.child("try", tried)
            tried += 1
            made = self.draft(seed.random(), level)
            if made is None:
                continue
            task = self.made(made, level, seed.value)
            if split_of(task.content_hash) == split and (turns := self.expert_turns(task)):
                return replace(task, expert_turns=turns)

    def made(self, draft: Draft, level: int, seed: int) -> Task:
        """The task of a draft, its expert's turns not yet counted."""
        key = content_hash(self.name, draft.query, draft.goal, draft.setup, {})
        weight = 1 / len(draft.steps)
        return Task(
            f"{self.name}-{key[:16]}",
            self.name,
            draft.family,
            level,
            draft.query,
            draft.goal,
            draft.setup,
            {},
            tuple(Milestone(name, weight) for name in draft.steps),
            expert_turns=0,
            seed=seed,
        )

    def expert_turns(self, task: Task) -> int:
        """The turns that the expert takes with the scripted user; 0 where it has no success."""
        environment, expert, view = self.environment(), self.expert(), self.user_view(task)
        environment.reset(task)
        random = Random(task.seed)
        history = [Message("user", task.query)]
        for turn in range(1, MOST_TURNS + 1):
            action = expert.next_action(State(task, environment, history))
            history.append(assistant_message(action, ""))
            result = environment.step(action)
            if result.done:
                return turn if environment.outcome().success else 0
            if isinstance(action, Say):
                reply = self.answer(words(history), view, random)
                environment.hear(reply)
                history.append(Message("user", reply.text))
            else:
                history.append(Message("tool", result.observation))
        return 0
