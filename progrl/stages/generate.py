"""Stage `generate`: tasks by split, reply memories of users, dialogues of expert and user."""

from collections.abc import Mapping
from itertools import islice
from statistics import fmean

from progrl.agent.seats import ExpertAgent
from progrl.config import Config
from progrl.dialogue.tasks import Split, Task, check_disjoint, write_tasks
from progrl.dialogue.trajectories import Trajectory, write_trajectories
from progrl.environments.contracts import Domain
from progrl.files import new_folder, write_json
from progrl.rollout import check_faults
from progrl.seeds import Seed
from progrl.stages.base import Context, Metrics
from progrl.stages.definitions import TEST_IDS
from progrl.stages.parts import (
    DIALOGUES,
    TASKS,
    USERS,
    domains_of,
    encoder_of,
    make_world,
    set_threads,
)
from progrl.users.replies import ReplyMemory, build_reply_memory
from progrl.users.scripted import ScriptedUser, own_user

IN_FLIGHT = 256
BENCHMARK = Seed.root(0).child("benchmark")
"""Of the test tasks, whatever the run's seed is."""


def run(context: Context) -> Metrics:
    """Write tasks, the ids of the test tasks, users, dialogues and metrics/generate.json."""
    config, seed = context.config, Seed.root(context.config.seed).child("generate")
    domains = domains_of(config)
    set_threads(config, context.project)
    context.progress(0, 4, "tasks")
    splits = _tasks(domains, config, seed)
    check_disjoint(**{f"{name} {split}": tasks for (name, split), tasks in splits.items()})
    with new_folder(context.root / TASKS) as folder:
        for (name, split), tasks in splits.items():
            write_tasks(folder / f"{name}_{split}.jsonl", tasks)
    tests = {name: [t.id for t in ts] for (name, split), ts in splits.items() if split == "test"}
    write_json(context.root / TEST_IDS, tests)
    context.progress(1, 4, "users")
    memories = _users(context, domains, seed)
    context.progress(2, 4, "dialogues")
    train = _easy(splits, "train", config)
    validation = _easy(splits, "validation", config)
    dialogues = _dialogues(train, domains, memories, config, seed.child("train"))
    probes = _dialogues(validation, domains, memories, config, seed.child("validation"))
    context.progress(3, 4, "writing")
    with new_folder(context.root / DIALOGUES) as folder:
        write_trajectories(folder / "train.jsonl", dialogues)
        write_trajectories(folder / "validation.jsonl", probes)
    figures = _figures(splits, dialogues, memories)
    write_json(context.root / "metrics" / "generate.json", figures)
    context.progress(4, 4, "done")
    return figures


def _tasks(
    domains: Mapping[str, Domain], config: Config, seed: Seed
) -> dict[tuple[str, Split], list[Task]]:
    generate = config.generate
    counts: dict[Split, int] = {
        "train": generate.train_tasks,
        "validation": generate.validation_tasks,
        "test": generate.test_tasks,
    }
    splits = {}
    for name, domain in domains.items():
        for split, count in counts.items():
            if split == "test" or name in config.domains.train:
                # Results of different seeds must be about the same problems.
                tree = BENCHMARK if split == "test" else seed
                node = tree.child("tasks", name).child("split", split)
                splits[name, split] = list(islice(domain.tasks(split, node.value), count))
    return splits


def _users(context: Context, domains: Mapping[str, Domain], seed: Seed) -> dict[str, ReplyMemory]:
    generate, encoder = context.config.generate, encoder_of(context)
    memories = {}
    with new_folder(context.root / USERS) as folder:
        for name, domain in domains.items():
            if own_user(domain) is not None:
                continue
            node = seed.child("users", name)
            memory = build_reply_memory(
                domain, encoder, node.value, generate.responses, generate.pool
            )
            memory.save(folder / name)
            memories[name] = memory
    return memories


def _easy(
    splits: Mapping[tuple[str, Split], list[Task]], split: Split, config: Config
) -> list[Task]:
    """Of each training domain the first `dialogues` tasks of the allowed levels."""
    generate = config.generate
    return [
        task
        for name in config.domains.train
        for task in [t for t in splits[name, split] if t.level <= generate.max_level][
            : generate.dialogues
        ]
    ]


def _dialogues(
    tasks: list[Task],
    domains: Mapping[str, Domain],
    memories: Mapping[str, ReplyMemory],
    config: Config,
    seed: Seed,
) -> list[Trajectory]:
    """Expert and user over the tasks."""
    users = {
        name: own_user(domain) or ScriptedUser(memories[name]) for name, domain in domains.items()
    }
    world = make_world(domains, users, config.user.family, IN_FLIGHT)
    specs = [
        world.spec(
            task,
            seed.child("task", task.id),
            seed.child("task", task.id).child("agent"),
            config.generate.horizon,
            {"agent": "expert"},
        )
        for task in tasks
    ]
    dialogues = world.play(specs, ExpertAgent())
    check_faults(dialogues, 0.0)
    return dialogues


def _figures(
    splits: Mapping[tuple[str, Split], list[Task]],
    dialogues: list[Trajectory],
    memories: Mapping[str, ReplyMemory],
) -> dict[str, float]:
    figures: dict[str, float] = {
        f"tasks/{name}_{split}": len(tasks) for (name, split), tasks in splits.items()
    }
    figures["dialogues"] = len(dialogues)
    figures["expert/success"] = fmean(d.success for d in dialogues)
    figures["expert/turns"] = fmean(len(d.turns) for d in dialogues)
    for name, memory in memories.items():
        for key, value in memory.diversity.items():
            figures[f"users/{name}/{key}"] = value
    return figures
