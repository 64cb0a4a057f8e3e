"""What the tests of gyms share."""

from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Any

from progrl.agent.seats import Agent
from progrl.dialogue.messages import ToolCall
from progrl.dialogue.tasks import Split, Task
from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import encoder
from progrl.environments.contracts import Domain, Environment, StepResult
from progrl.environments.registry import domain
from progrl.rollout import EpisodeSpec, collect
from progrl.seeds import Seed
from progrl.users.contracts import UserSimulator
from progrl.users.profiles import draw
from progrl.users.replies import build_reply_memory
from progrl.users.scripted import ScriptedUser, own_user

HORIZON = 20


@cache
def _scripted(name: str) -> ScriptedUser:
    return ScriptedUser(build_reply_memory(domain(name), encoder("hashed"), 1, 120, 400))


def user_of(played: Domain) -> UserSimulator:
    """The domain's own user, or the scripted one."""
    return own_user(played) or _scripted(played.name)


def episodes(
    played: Domain, agent: Agent, tasks: Sequence[Task], horizon: int = HORIZON, family: str = "a"
) -> list[Trajectory]:
    """One episode a task."""
    specs = []
    for task in tasks:
        seed = Seed.root(3).child("task", task.id)
        profile = draw(family, seed)
        specs.append(EpisodeSpec(task, seed, seed.child("user").value, horizon, profile))
    return collect(specs, lambda name: played, agent, lambda name: user_of(played), 16)


def stream(played: Domain, count: int, split: Split = "train", seed: int = 7) -> list[Task]:
    """The first tasks of a split."""
    return list(islice(played.tasks(split, seed), count))


def do(environment: Environment, choice: str, content: str = "") -> StepResult:
    """A choice."""
    return environment.step(ToolCall("interact_with_env", {"choice": choice, "content": content}))


def gym(name: str, **options: Any) -> Domain:
    """A gym, behind three choices unless `interface` says otherwise."""
    return domain(name, options)
