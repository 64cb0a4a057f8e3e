"""`progrl transfer`: agents that were trained with one kind of user, evaluated with others."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from progrl.cli.command import Result, Shared, command
from progrl.cli.episodes import agent_of
from progrl.cli.output import grid, progress
from progrl.cli.stages import stay_local
from progrl.config import Config
from progrl.config.users import LlmUser
from progrl.errors import ConfigurationError, DataError
from progrl.files import write_json

if TYPE_CHECKING:
    from progrl.dialogue.tasks import Task
    from progrl.evaluation.metrics import Result as Row
    from progrl.rollout import World
    from progrl.stages.base import Context

FAMILIES = ("a", "b")
LLM = "llm"
TOGETHER = {"train": "all trained on", "held_out": "all held out"}


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(
        app,
        "transfer",
        "transfer a=outputs/user-a b=outputs/user-b --profile gyms",
        panel="Pipeline",
    )(transfer)


def transfer(
    shared: Shared,
    runs: Annotated[
        list[str],
        typer.Argument(help="A trained run each: the users of its training=its folder."),
    ],
    agent: Annotated[Literal["sft", "grpo"], typer.Option(help="The model of each run.")] = "grpo",
    output: Annotated[Path, typer.Option(help="Where the table goes.")] = Path(
        "metrics/transfer.json"
    ),
) -> Result:
    """Evaluate runs with users of both families, and with a language model where one is set."""
    folders = folders_of(runs)
    config = shared.config()
    stay_local(config)
    from progrl.evaluation.summary import Summariser
    from progrl.evaluation.transfer import transfer as table
    from progrl.seeds import Seed
    from progrl.stages.parts import set_threads

    set_threads(config, shared.project)
    results = _results(shared, config, folders, agent)
    evaluation, seed = config.evaluation, Seed.root(config.seed).child("transfer").value
    parts = {
        name: names if len(names) > 1 else ()
        for key, name in TOGETHER.items()
        for names in [tuple(getattr(config.domains, key))]
    }
    found = {
        "agent": agent,
        "seed": config.seed,
        "confidence": evaluation.confidence,
        "horizon": evaluation.horizon,
        "trials": evaluation.trials,
        **table(results, parts, Summariser(evaluation.confidence, evaluation.bootstrap, seed)),
    }
    write_json(output, found)
    return Result(found, grid(rows_of(found), "benchmark"))


def folders_of(runs: Sequence[str]) -> dict[str, Path]:
    """The folders of runs by the users of their training.

    Raises:
        ConfigurationError: one is not written as `users=folder`, or users are named twice.
    """
    folders: dict[str, Path] = {}
    for given in runs:
        name, _, folder = given.partition("=")
        if not name or not folder:
            raise ConfigurationError(
                f"{given}: write it as the users of its training=its folder, as a=outputs/user-a."
            )
        if name in folders:
            raise ConfigurationError(f"{given}: there is a run of {name} already.")
        if not Path(folder).is_dir():
            raise ConfigurationError(f"{given}: no such folder. `progrl run --output` makes one.")
        folders[name] = Path(folder)
    return folders


def _results(
    shared: Shared, config: Config, folders: Mapping[str, Path], agent: str
) -> "dict[str, dict[str, dict[str, list[Row]]]]":
    """By the users of training, those of evaluation, and benchmark."""
    from progrl.evaluation.protocol import Protocol, check_held_out
    from progrl.stages.base import Context
    from progrl.stages.parts import tasks_of

    results: dict[str, dict[str, dict[str, list[Row]]]] = {}
    common: dict[str, list[Task]] = {}
    for trained, folder in folders.items():
        model = folder / "models" / agent
        if not model.is_dir():
            raise DataError(f"{model}: missing. Give the folder of a run that has been trained.")
        context = Context(config, folder, shared.project, folder / "runs")
        names = (*config.domains.train, *config.domains.held_out)
        tasks = {name: tasks_of(context, "test", (name,)) for name in names}
        check_held_out([*tasks_of(context, "train"), *tasks_of(context, "validation")], tasks)
        common = common or tasks
        if tasks != common:
            raise DataError(f"{folder}: its test tasks are others than those of the first run.")
        seat = agent_of(shared, config, str(model), 0.0)
        results[trained] = {}
        for user, world in _worlds(context).items():
            protocol, text = Protocol(world, config.evaluation, config.reward), f"{trained}, {user}"
            with progress(f"trained with {trained}, evaluated with {user}", shared.quiet) as told:
                of: dict[str, list[Row]] = {}
                total, before = sum(map(len, tasks.values())), 0
                for name, given in tasks.items():
                    played = protocol.play(given, seat, text)
                    of[name] = protocol.results(given, played)
                    before += len(given)
                    told(before, total, name)
            results[trained][user] = of
    return results


def _worlds(context: "Context") -> "dict[str, World]":
    """Scripted users of each family, and the configured language model."""
    from progrl.stages.parts import world_of

    config = context.config
    slots = config.engine.slots
    worlds = {family: world_of(context, family, slots) for family in FAMILIES}
    if isinstance(config.user, LlmUser):
        worlds[LLM] = world_of(context, config.user.family, slots, config.user)
    return worlds


def rows_of(found: Mapping[str, Any]) -> list[dict[str, str]]:
    """The table for people: a row for each benchmark and agent, a column for each kind of user."""
    from progrl.reporting.tables import interval

    rows: list[dict[str, str]] = []
    for name, part in found["benchmarks"].items():
        users = part["evaluated_with"]
        for agent in next(iter(users.values()))["agents"]:
            cells = {f"with {u}": interval(t["agents"][agent]["success"]) for u, t in users.items()}
            rows.append({"benchmark": name, "trained with": agent, **cells})
        differences = [key for key in next(iter(users.values())) if key != "agents"]
        for key in differences:
            cells = {f"with {u}": interval(t[key], 3, signed=True) for u, t in users.items()}
            rows.append({"benchmark": name, "trained with": key.replace("_minus_", " − "), **cells})
    return rows
