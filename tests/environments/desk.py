"""What the tests of service domains share."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, cast

from progrl.dialogue.messages import Action, ToolCall
from progrl.dialogue.tasks import Split, Task
from progrl.dialogue.users import UserReply
from progrl.environments.contracts import State
from progrl.environments.registry import domain
from progrl.environments.service import ServiceDomain, ServiceEnvironment
from progrl.environments.service.plans import compile_plan

NAMES = ("retail", "airline")
YES = UserReply("yes , please do", "confirm")
NO = UserReply("no , not that", "correct")


def made(name: str, **options: Any) -> ServiceDomain:
    """A service domain."""
    return cast(ServiceDomain, domain(name, options))


def some(desk: ServiceDomain, count: int, split: Split = "train", seed: int = 7) -> list[Task]:
    """The first tasks of a stream."""
    return list(islice(desk.tasks(split, seed), count))


def of_family(desk: ServiceDomain, family: str, seed: int = 7) -> Task:
    """The first task of a family."""
    return next(task for task in desk.tasks("train", seed) if task.family == family)


def started(desk: ServiceDomain, task: Task) -> ServiceEnvironment:
    """An environment at the task's start."""
    environment = desk.environment()
    environment.reset(task)
    return environment


def writes(desk: ServiceDomain, task: Task, goal: Mapping[str, Any]) -> list[ToolCall]:
    """The writes that a goal needs."""
    plan = compile_plan(desk.service, goal, desk.service.start(task.setup["seed"]))
    return [wish.write for wish in plan.wishes if wish.write is not None]


def identify(environment: ServiceEnvironment) -> None:
    """Find the user, as if the e-mail had been told."""
    environment.step(ToolCall("find_user", {"email": environment.plan.person["email"]}))


def advice(desk: ServiceDomain, task: Task, environment: ServiceEnvironment) -> Action:
    """What the expert would do now."""
    return desk.expert().next_action(State(task, environment, []))
