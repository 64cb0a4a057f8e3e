"""The contracts of a domain: the whole of what the author of one must know, with `UserView`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol, TypeVar, runtime_checkable

from progrl.dialogue.messages import Action, Message, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.dialogue.trajectories import Outcome
from progrl.dialogue.users import UserReply, UserView
from progrl.errors import EnvironmentFault

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class StepResult:
    """What an action, or a user's reply, led to.

    Attributes:
        observation: a tool's result as the agent reads it; "" where nothing is to be read (the
            agent spoke, or a user's reply was taken in).
        reward: the environment's own turn reward, within its `reward_bounds`.
        milestones: newly reached, each at most once an episode.
        gain: the sum of their weights.
        done: the episode ends here.
        failed: a call that returned an error.
        said: what a call has said to the user, who answers it as it does a `Say`.
        tools: the tools from now on, where they changed.
    """

    observation: str = ""
    reward: float = 0.0
    milestones: tuple[str, ...] = ()
    gain: float = 0.0
    done: bool = False
    failed: bool = False
    said: str = ""
    tools: tuple[ToolSpec, ...] | None = None


class Environment(Protocol):
    """One episode's world. Deterministic for a task; never sees tokens.

    `reward_bounds` are the least and the most that a turn earns in `StepResult.reward`. Where they
    differ, these are the episode's turn rewards; (0, 0) says that there are none of its own, and
    turn rewards are made of milestones.
    """

    reward_bounds: tuple[float, float]

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Build the task's first state; the tools that the agent starts with."""
        ...

    def step(self, action: Action) -> StepResult:
        """Apply a call, or take note of words to the user.

        A call that is wrong in any way (unknown tool, arguments that break the schema, a rule of
        the system) is no exception: its observation says what is wrong and `failed` is true.
        """
        ...

    def hear(self, reply: UserReply) -> StepResult:
        """Take in the user's answer, or apply the one call in it of the user's own tools: the
        observation is what that returned, for the user alone."""
        ...

    def outcome(self) -> Outcome:
        """The verdict on the state as it stands."""
        ...


@dataclass(frozen=True, slots=True)
class State:
    """An episode as it stands, for experts."""

    task: Task
    environment: Environment
    history: Sequence[Message]

    def played_in(self, kind: type[E]) -> E:
        """The environment, for an expert that knows this kind alone.

        Raises:
            EnvironmentFault: it is of another kind.
        """
        if not isinstance(self.environment, kind):
            raise EnvironmentFault(
                f"The expert of {kind.__name__} cannot play in {type(self.environment).__name__}."
            )
        return self.environment


class Expert(Protocol):
    """Solves the tasks of a domain, from any state of an episode.

    It may read the task's hidden goal, but acts only on what the conversation and the tools have
    shown: it asks for what the user has not told.
    """

    def next_action(self, state: State) -> Action:
        """The best action in `state`."""
        ...


class Domain(Protocol):
    """A family of tasks with tools and a policy, found by name in the registry."""

    name: str
    description: str
    policy: str
    tools: tuple[ToolSpec, ...]

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """Unlimited tasks of a split, over all families and levels, the same for the same seed."""
        ...

    def environment(self) -> Environment:
        """A fresh environment; one an episode."""
        ...

    def user_view(self, task: Task) -> UserView:
        """The whole of what a user of this task may ever know."""
        ...

    def expert(self) -> Expert:
        """The expert of this domain."""
        ...


@runtime_checkable
class StaticDomain(Domain, Protocol):
    """A domain whose tasks can be put in one opening query, for training without users."""

    def static(self, task: Task) -> Task:
        """The same task, which now tells all of its goal at once, never changes it, and has the
        user's consent to what it asks for; with the expert's turns in it."""
        ...


@runtime_checkable
class Answering(Domain, Protocol):
    """A domain whose scripted user answers by a rule of its own.

    The users of other domains want things done and are known by their `UserView` alone.
    """

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """Answer the last words of `history`, which holds words alone; a pure function."""
        ...
