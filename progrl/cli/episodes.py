"""`progrl rollout` and `progrl play`: episodes outside of the pipeline."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from progrl.cli.command import Result, Shared, command
from progrl.cli.output import progress
from progrl.cli.stages import stay_local
from progrl.config import Config
from progrl.dialogue.tasks import Split, Task, read_tasks
from progrl.errors import ConfigurationError, ProgrlError
from progrl.seeds import Seed

if TYPE_CHECKING:
    from progrl.agent.seats import Agent
    from progrl.dialogue.trajectories import Trajectory
    from progrl.environments.contracts import Domain
    from progrl.users.contracts import UserSimulator

IN_FLIGHT = 128
PANEL = "Episodes"
SPLITS: tuple[Split, ...] = ("train", "validation", "test")

Environment = Annotated[str, typer.Option(help="A domain, of those in `progrl environments`.")]
Seat = Annotated[
    str, typer.Option(help="do_nothing, random, expert, or the folder of a model.", metavar="WHO")
]
SplitName = Annotated[Split, typer.Option(help="Where the tasks come from.")]
SeedOption = Annotated[int | None, typer.Option(min=0, help="Instead of the configuration's.")]
Horizon = Annotated[int | None, typer.Option(min=1, help="Most agent turns.")]
Root = Annotated[
    Path,
    typer.Option(
        help="Folder with data/users as `progrl generate` wrote it, if it did.",
        exists=True,
        file_okay=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(
        app,
        "rollout",
        "rollout --agent expert --episodes 20",
        "rollout --environment airline --agent models/grpo --temperature 1 --output a.jsonl",
        panel=PANEL,
    )(rollout)


def rollout(
    shared: Shared,
    environment: Environment = "retail",
    agent: Seat = "expert",
    user: Annotated[
        Literal["scripted", "llm"] | None,
        typer.Option(help="Who plays the user; else as the configuration says."),
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="One a task.")] = 20,
    split: SplitName = "validation",
    seed: SeedOption = None,
    horizon: Horizon = None,
    temperature: Annotated[float, typer.Option(min=0, help="Of a model; 0 is greedy.")] = 0.0,
    output: Annotated[Path | None, typer.Option(help="Write trajectories here (.jsonl).")] = None,
    root: Root = Path(),
) -> Result:
    """Play episodes and sum them up.

    Fails where more of them are lost to faults than `grpo.max_fault_share`.
    """
    from progrl.dialogue.trajectories import write_trajectories
    from progrl.stages.parts import make_world

    if output is not None and output.suffix != ".jsonl":
        raise ConfigurationError(f"--output {output}: name a file that ends in .jsonl.")
    config = shared.config()
    stay_local(config)
    node = root_seed(config, seed)
    played = domain_of(config, environment)
    tasks = list(islice(tasks_of(played, split, node), episodes))
    seat = agent_of(shared, config, agent, temperature)
    users = {environment: user_of(shared, config, environment, root, node, user)}
    world = make_world({environment: played}, users, config.user.family, IN_FLIGHT)
    episode = node.child("rollout")
    specs = [
        world.spec(
            task,
            episode.child("task", task.id).child("user"),
            episode.child("task", task.id).child("agent"),
            horizon or config.evaluation.horizon,
            {"agent": agent},
        )
        for task in tasks
    ]
    with progress("rollout", shared.quiet) as told:
        start = time.perf_counter()
        trajectories = world.play(specs, seat, done=lambda done: told(done, episodes, "episodes"))
        seconds = time.perf_counter() - start
    if output is not None:
        write_trajectories(output, trajectories)
    figures = {**summary(trajectories, config, seconds), **world.spent()}
    table = Table("episodes", *list(figures)[1:], box=None)
    table.add_row(*("-" if v is None else f"{v:.4g}" for v in figures.values()))
    return Result(figures, table, code=fault_code(trajectories, config.grpo.max_fault_share))


def fault_code(trajectories: "Sequence[Trajectory]", most: float) -> int:
    """The exit code of episodes: a fault's, and its cause is told, where more are lost than may."""
    from progrl.rollout import check_faults

    try:
        check_faults(trajectories, most)
    except ProgrlError as error:
        typer.echo(str(error), err=True)
        return error.exit_code
    return 0


def summary(
    trajectories: "list[Trajectory]", config: Config, seconds: float
) -> dict[str, float | None]:
    """Means over the episodes that are evidence; None where none is."""
    from progrl.rewards import episode_reward

    valid = [t for t in trajectories if t.valid]
    turns = sum(len(t.turns) for t in trajectories)
    return {
        "episodes": len(trajectories),
        "success": fmean(t.success for t in valid) if valid else None,
        "reward": fmean(episode_reward(t, config.reward) for t in valid) if valid else None,
        "turns": fmean(len(t.turns) for t in valid) if valid else None,
        "turns_per_second": turns / seconds,
        "faults": len(trajectories) - len(valid),
    }


def root_seed(config: Config, seed: int | None) -> Seed:
    """The seed tree of `--seed`, or of the configuration."""
    return Seed.root(config.seed if seed is None else seed)


def domain_of(config: Config, name: str) -> "Domain":
    """A domain with its configured options."""
    from progrl.environments.registry import domain

    return domain(name, config.domains.options.get(name, {}))


def tasks_of(domain: "Domain", split: Split, node: Seed) -> Iterator[Task]:
    """The very tasks that stage `generate` writes for the same seed, without end."""
    place = node.child("generate").child("tasks", domain.name).child("split", split)
    return domain.tasks(split, place.value)


def find_task(domain: "Domain", node: Seed, task_id: str, root: Path, most: int = 1000) -> Task:
    """A task by its id, of those that stage `generate` wrote, or would write first.

    Raises:
        ConfigurationError: it is not among them.
    """
    from progrl.stages.parts import tasks_file

    files = {split: tasks_file(root, domain.name, split) for split in SPLITS}
    known = [
        read_tasks(file) if file.exists() else islice(tasks_of(domain, split, node), most)
        for split, file in files.items()
    ]
    for task in chain.from_iterable(zip_longest(*known)):
        if task is not None and task.id == task_id:
            return task
    raise ConfigurationError(
        f"No task {task_id}: neither in {root / 'data' / 'tasks'} nor among the first {most} of "
        f"each split of {domain.name} with this seed."
    )


def agent_of(shared: Shared, config: Config, name: str, temperature: float) -> "Agent":
    """The agent of a name, or the model in a folder with the advice that is configured for it.

    Raises:
        ConfigurationError: it is neither, or its folder lacks the tool policy of the advice.
        CheckpointError: the folder is no whole model.
    """
    from progrl.agent.seats import Agent, DoNothingAgent, ExpertAgent, ModelAgent, RandomAgent

    scripts: dict[str, Callable[[], Agent]] = {
        "do_nothing": DoNothingAgent,
        "expert": ExpertAgent,
        "random": RandomAgent,
    }
    if name in scripts:
        if temperature:
            raise ConfigurationError("--temperature has no effect: the agent is no model.")
        return scripts[name]()
    if not Path(name).is_dir():
        raise ConfigurationError(
            f"--agent {name}: neither one of {', '.join(scripts)} nor the folder of a model. "
            "`make run` makes models/grpo, `progrl run --output FOLDER` FOLDER/models/grpo."
        )
    from progrl.agent.model import load_agent_folder
    from progrl.stages.advice import advisor_of
    from progrl.stages.base import Context
    from progrl.stages.parts import engine_of

    model, codec = load_agent_folder(Path(name))
    engine = engine_of(config, model, shared.project)
    context = Context(config, Path(), shared.project, Path("runs"))
    advisor = advisor_of(context, Path(name))
    return ModelAgent(engine, codec, temperature, config.engine.max_tokens, name, advisor)


def user_of(
    shared: Shared, config: Config, name: str, root: Path, node: Seed, kind: str | None = None
) -> "UserSimulator":
    """The configured user of a domain, or the scripted one where `kind` says so.

    Raises:
        ConfigurationError: `kind` is one that the configuration does not describe.
    """
    from progrl.config.users import LlmUser as LlmConfig
    from progrl.users.llm import LlmUser

    if kind != "scripted" and isinstance(config.user, LlmConfig):
        return LlmUser(config.user, shared.project)
    if kind == "llm":
        raise ConfigurationError(
            "--user llm: the configuration names no endpoint. Set the part `user`, or name a "
            "profile that does; docs/users.md shows how."
        )
    return scripted_user(shared, config, name, root, node)


def scripted_user(
    shared: Shared, config: Config, name: str, root: Path, node: Seed
) -> "UserSimulator":
    """The scripted user with the wordings of stage `generate`, which are made anew where missing;
    the domain's own where it brings one."""
    from progrl.stages.base import Context
    from progrl.stages.parts import USERS, encoder_of
    from progrl.users.replies import ReplyMemory, build_reply_memory
    from progrl.users.scripted import ScriptedUser, own_user

    own = own_user(domain_of(config, name))
    if own is not None:
        return own
    folder = root / USERS / name
    if folder.exists():
        return ScriptedUser(ReplyMemory.load(folder))
    encoder = encoder_of(Context(config, root, shared.project, root / "runs"))
    place = node.child("generate").child("users", name)
    generate = config.generate
    domain = domain_of(config, name)
    with progress(f"wordings of the users of {name}", shared.quiet):
        memory = build_reply_memory(domain, encoder, place.value, generate.responses, generate.pool)
    return ScriptedUser(memory)
