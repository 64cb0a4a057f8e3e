"""The gym `tau`: the service desks behind three choices, paid once, for how things end."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from progrl.dialogue.messages import Action, Say, ToolSpec
from progrl.dialogue.tasks import Split, Task, content_hash
from progrl.dialogue.trajectories import Outcome
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.airline import Airline
from progrl.environments.choices import Interface
from progrl.environments.contracts import State, StepResult
from progrl.environments.retail import Retail
from progrl.environments.service import (
    ServiceDomain,
    ServiceEnvironment,
    ServiceExpert,
    ServiceOptions,
)

Desk = Literal["retail", "airline"]
_DESKS: dict[Desk, type[ServiceDomain]] = {"retail": Retail, "airline": Airline}


class TauOptions(ServiceOptions):
    """What may be chosen of the gym."""

    desks: tuple[Desk, ...] = Field(
        default=("retail", "airline"),
        min_length=1,
        description="Desks that tasks are drawn from, in turn.",
    )


class TauEnvironment:
    """A desk. The end pays 1 where the final state is the wanted one and all was told, else 0.

    Attributes:
        desk: the desk's own environment.
    """

    reward_bounds = (0.0, 1.0)

    def __init__(self, desks: dict[str, ServiceDomain]) -> None:
        self._desks = desks

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Open the task's desk; its tools."""
        self.desk: ServiceEnvironment = self._desks[task.setup["desk"]].environment()
        self._paid = False
        return self.desk.reset(task)

    def step(self, action: Action) -> StepResult:
        """As the desk does; closing words end the episode."""
        result = self.desk.step(action)
        return self._ended(result) if isinstance(action, Say) and action.closing else result

    def hear(self, reply: UserReply) -> StepResult:
        """As the desk does; a user who leaves ends the episode."""
        result = self.desk.hear(reply)
        return self._ended(result) if reply.leaves else result

    def outcome(self) -> Outcome:
        """The desk's verdict."""
        return self.desk.outcome()

    def _ended(self, result: StepResult) -> StepResult:
        if self._paid:
            return result
        self._paid = True
        return replace(result, reward=1.0 if self.outcome().success else 0.0)


class TauExpert:
    """The desks' expert."""

    def __init__(self) -> None:
        self._inner = ServiceExpert()

    def next_action(self, state: State) -> Action:
        """What the desks' expert does.

        Raises:
            EnvironmentFault: the episode is not one of this gym.
        """
        desk = state.played_in(TauEnvironment).desk
        return self._inner.next_action(replace(state, environment=desk))


class Tau:
    """Retail and airline as one gym. A task is in the split that it is in at its own desk."""

    Options = TauOptions
    interface: ClassVar[Interface] = "three_choice"
    name = "tau"
    description = "Two service desks, retail and airline, paid for the final state alone."

    def __init__(self, options: TauOptions | None = None) -> None:
        self.options = options or TauOptions()
        own = ServiceOptions(**self.options.model_dump(exclude={"desks"}))
        self._desks: dict[str, ServiceDomain] = {
            name: _DESKS[name](own) for name in dict.fromkeys(self.options.desks)
        }
        known = {tool.name: tool for desk in self._desks.values() for tool in desk.tools}
        self.tools: tuple[ToolSpec, ...] = tuple(known.values())
        self.policy = "".join(desk.policy for desk in self._desks.values())

    def families(self) -> list[tuple[str, int]]:
        """Name and level of each family of tasks, by desk."""
        return [
            (f"{name}_{family}", level)
            for name, desk in self._desks.items()
            for family, level in desk.families()
        ]

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """Unlimited tasks, the desks in turn."""
        streams = {name: desk.tasks(split, seed) for name, desk in self._desks.items()}
        while True:
            for name, stream in streams.items():
                yield self._own(name, next(stream))

    def environment(self) -> TauEnvironment:
        """A fresh environment."""
        return TauEnvironment(self._desks)

    def expert(self) -> TauExpert:
        """The expert."""
        return TauExpert()

    def user_view(self, task: Task) -> UserView:
        """The desk's view."""
        return self._desks[task.setup["desk"]].user_view(task)

    def _own(self, name: str, task: Task) -> Task:
        setup = {**task.setup, "desk": name}
        key = content_hash(self.name, task.query, task.goal, setup, task.schedule)
        family = f"{name}_{task.family}"
        own = f"{self.name}-{key[:16]}"
        return replace(task, id=own, domain=self.name, family=family, setup=setup)
