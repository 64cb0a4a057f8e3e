"""What several stages build from the configuration and from earlier stages' outputs."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from progrl.config import Config
from progrl.config.agent import FolderEncoder
from progrl.config.agent import VllmEngine as VllmConfig
from progrl.config.users import LlmUser as LlmConfig
from progrl.config.users import UserConfig
from progrl.dialogue.tasks import Split, Task, check_disjoint, read_tasks
from progrl.embedding import CachedEncoder, Encoder, encoder
from progrl.environments.contracts import Domain, StaticDomain
from progrl.environments.registry import domain
from progrl.errors import ConfigurationError, DataError
from progrl.files import read_json, write_json
from progrl.rollout import World
from progrl.stages.base import Context
from progrl.users.contracts import UserSimulator
from progrl.users.llm import LlmUser
from progrl.users.profiles import draw
from progrl.users.replies import ReplyMemory
from progrl.users.scripted import ScriptedUser, StaticUser, own_user

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from progrl.agent.engines.contracts import Engine

T = TypeVar("T")

logger = logging.getLogger(__name__)

TASKS, DIALOGUES, USERS = "data/tasks", "data/dialogues", "data/users"


def tasks_file(root: Path, name: str, split: str) -> Path:
    """The file with a domain's tasks of a split."""
    return root / TASKS / f"{name}_{split}.jsonl"


def tasks_of(context: Context, split: str, names: Sequence[str] | None = None) -> list[Task]:
    """The tasks of a split over the training domains (or `names`), in file order."""
    return [
        task
        for name in names or context.config.domains.train
        for task in read_tasks(tasks_file(context.root, name, split))
    ]


def in_turn(items: Iterable[T], part: Callable[[T], str]) -> list[T]:
    """The first of each part, then the second of each, and so on: however many are taken from the
    front, parts have equal shares as far as they last. Parts are in the order of their first."""
    parts: dict[str, list[T]] = {}
    for item in items:
        parts.setdefault(part(item), []).append(item)
    rounds = zip_longest(*parts.values(), fillvalue=None)
    return [item for one in rounds for item in one if item is not None]


def splits_of(context: Context) -> dict[Split, list[Task]]:
    """The tasks to train on, to probe with, and never to touch before evaluation.

    Raises:
        DataError: two splits share a task.
    """
    domains = context.config.domains
    splits: dict[Split, list[Task]] = {
        "train": tasks_of(context, "train"),
        "validation": tasks_of(context, "validation"),
        "test": tasks_of(context, "test", (*domains.train, *domains.held_out)),
    }
    check_disjoint(**splits)
    return splits


def domains_of(config: Config) -> dict[str, Domain]:
    """All domains of the configuration by name, training first."""
    names = (*config.domains.train, *config.domains.held_out)
    return {name: domain(name, config.domains.options.get(name, {})) for name in names}


def encoder_of(context: Context) -> Encoder:
    """The configured sentence encoder, with its cache on disk."""
    config = context.config.embedding
    folder = context.project / config.folder if isinstance(config, FolderEncoder) else None
    return CachedEncoder(encoder(config.kind, folder), context.project / ".cache" / "embeddings")


def world_of(
    context: Context, family: str, in_flight: int, user: UserConfig | None = None
) -> World:
    """Domains with their users: as `user` says, else scripted.

    Scripted users have the reply memories that `generate` has written.
    """
    domains = domains_of(context.config)
    users: dict[str, UserSimulator]
    if isinstance(user, LlmConfig):
        users = dict.fromkeys(domains, LlmUser(user, context.project))
    else:
        folder = context.root / USERS
        users = {
            name: own_user(domain) or ScriptedUser(ReplyMemory.load(folder / name))
            for name, domain in domains.items()
        }
    return replace(make_world(domains, users, family, in_flight), ranks=context.ranks)


def training_world(
    config: Config, world: World, tasks: Sequence[Task]
) -> tuple[World, Sequence[Task]]:
    """World and tasks of GRPO's episodes: the very same, or static queries without a user.

    Raises:
        ConfigurationError: queries shall be static, and a domain has none.
    """
    if config.user.kind != "static":
        return world, tasks
    for name in config.domains.train:
        if not isinstance(world.domains[name], StaticDomain):
            raise ConfigurationError(
                f"user.kind is static, but the domain {name!r} cannot put a task in one query: "
                "give it a method `static`, or train with user.kind=scripted."
            )
    users = dict.fromkeys(world.users, StaticUser())
    static = [cast("StaticDomain", world.domains[task.domain]).static(task) for task in tasks]
    return replace(world, users=users), static


def make_world(
    domains: Mapping[str, Domain],
    users: Mapping[str, UserSimulator],
    family: str,
    in_flight: int,
) -> World:
    """A world whose profiles are drawn from `family`."""
    return World(domains, users, lambda seed: draw(family, seed), in_flight)


def engine_of(config: Config, model: "PreTrainedModel", project: Path) -> "Engine":
    """The configured engine for a model, which may come from another profile.

    Its window is the smaller of the configuration's and the model's own.

    Args:
        project: folder that holds the environment of an engine that has its own.
    """
    from progrl.agent.engines.local import LocalEngine

    window = min(config.agent.window, model.config.max_position_embeddings)
    given = config.engine
    if not isinstance(given, VllmConfig):
        return LocalEngine(
            model, slots=given.slots, window=window, dtype=given.dtype, compile=given.compile
        )
    from progrl.agent.engines.vllm import VllmEngine
    from progrl.agent.threads import threads_of

    return VllmEngine(
        model,
        project=project,
        slots=given.slots,
        window=window,
        dtype=given.dtype,
        memory=given.memory,
        threads=threads_of(config, project),
        sleep=given.sleep,
    )


def set_threads(config: Config, project: Path) -> None:
    """Fix what decides the order of floating-point sums: threads and algorithms, numpy's too.

    Args:
        project: folder that paths in the configuration are relative to.
    """
    import torch
    from threadpoolctl import threadpool_limits

    from progrl.agent.threads import threads_of

    threads = threads_of(config, project)
    threadpool_limits(threads)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=True)


class Timings:
    """Seconds by component over all attempts of a stage, in `timings.json` of its work folder."""

    def __init__(self, work: Path) -> None:
        self._path = work / "timings.json"
        self._before: dict[str, float] = {}
        if self._path.exists():
            try:
                self._before = read_json(self._path)
            except DataError as error:
                logger.warning("%s Earlier seconds are not counted.", error)
        self._start = time.perf_counter()

    def save(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """Add this attempt's seconds by component, and its total, to the earlier attempts'."""
        now: dict[str, Any] = {**seconds, "total": time.perf_counter() - self._start}
        both = {k: self._before.get(k, 0.0) + now.get(k, 0.0) for k in {**self._before, **now}}
        write_json(self._path, both)
        return both
