"""`progrl serve`: a page where a person plays, and the games that were saved there."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from progrl.cli.command import Result, Shared, command
from progrl.cli.episodes import (
    Horizon,
    Root,
    SeedOption,
    SplitName,
    agent_of,
    domain_of,
    root_seed,
    tasks_of,
    user_of,
)
from progrl.cli.output import printer
from progrl.cli.play import spec_of
from progrl.cli.stages import stay_local
from progrl.config import Config
from progrl.dialogue.tasks import Split
from progrl.errors import ConfigurationError, DataError, NotInstalled
from progrl.extras import install_line

if TYPE_CHECKING:
    from progrl.environments.contracts import Domain
    from progrl.serving import Dealer

HOST = "127.0.0.1"
PLAYED = Path("outputs") / "played"
TRAINED = ("models/grpo", "models/sft")
"""Offered where they are there, the better one first."""

logger = logging.getLogger(__name__)
group = typer.Typer(name="serve", help="Pages on this machine alone.", no_args_is_help=True)

Folder = Annotated[Path, typer.Option(help="Where games go that their players choose to save.")]


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(group)


@command(group, "play", "serve play", "serve play --agent models/grpo --port 8800", json=False)
def play(
    shared: Shared,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHO",
            help="Who serves a person that is the user: do_nothing, random, expert, or the folder "
            "of a model; again for more. Without it what is trained in models/, expert, random.",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    folder: Folder = PLAYED,
    split: SplitName = "validation",
    seed: SeedOption = None,
    horizon: Horizon = None,
    root: Root = Path(),
) -> None:
    """A page where a person plays the user against an agent, or the agent."""
    try:
        from progrl.serving import make_app, make_server
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"serve play needs {error.name}: {install_line('play')}") from None

    config = shared.config()
    stay_local(config)
    with listening(port) as listener:
        dealer = dealer_of(shared, config, agent, split, seed, horizon, root)
        port = listener.getsockname()[1]
        server = make_server(make_app(dealer, folder, port))
        printer().print(f"Play at http://{HOST}:{port}/ ; Ctrl-C ends it.")
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(server.serve(sockets=[listener]))


@contextlib.contextmanager
def listening(port: int) -> Iterator[socket.socket]:
    """A socket of this machine alone, before anything slow is done.

    Raises:
        ConfigurationError: another program has the port.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen(64)
        except OSError as error:
            raise ConfigurationError(
                f"Port {port} on {HOST} cannot be had ({error.strerror}): choose another by --port."
            ) from None
        yield listener


def dealer_of(
    shared: Shared,
    config: Config,
    agents: list[str] | None,
    split: Split,
    seed: int | None,
    horizon: int | None,
    root: Path,
) -> "Dealer":
    """All that can be played: every domain that is whole, and `agents`.

    Raises:
        ConfigurationError: an agent is none.
        CheckpointError: a folder is no whole model.
    """
    from progrl.rewards import episode_reward
    from progrl.serving import Dealer

    node = root_seed(config, seed)
    trained = [str(root / name) for name in TRAINED if (root / name).is_dir()]
    names = agents or [*trained, "expert", "random"]
    return Dealer(
        domains=dict(_domains(config)),
        agents={name: agent_of(shared, config, name, 0.0) for name in names},
        tasks=lambda domain: tasks_of(domain, split, node),
        simulator=lambda name: user_of(shared, config, name, root, node),
        spec=lambda task, role, agent: spec_of(config, node, task, role, agent, horizon),
        reward=lambda trajectory: episode_reward(trajectory, config.reward),
    )


def _domains(config: Config) -> "Iterator[tuple[str, Domain]]":
    from progrl.environments.registry import domains

    for name in domains():
        try:
            yield name, domain_of(config, name)
        except NotInstalled as error:
            logger.debug("%s is not offered: %s", name, error)
        except ConfigurationError as error:
            logger.warning("%s is not offered: %s", name, error)


@command(group, "saved", "serve saved", "serve saved --delete all", configured=False)
def saved(
    shared: Shared,
    folder: Folder = PLAYED,
    delete: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Delete this game for good; again for more; or all."),
    ] = None,
) -> Result:
    """List the games that were saved, or delete some."""
    from progrl.dialogue.trajectories import read_trajectories
    from progrl.serving.saved import delete as remove
    from progrl.serving.saved import saved as kept

    if delete:
        names = [path.stem for path in kept(folder)] if delete == ["all"] else delete
        missing = [name for name in names if not remove(folder, name)]
        if missing:
            raise DataError(f"{folder}: no saved game {', '.join(missing)}; the others are gone.")
        return Result({"deleted": names}, f"Deleted: {len(names)}.")
    found = []
    for path in kept(folder):
        (game,) = read_trajectories(path)
        tags = {key: game.tags.get(key) for key in ("agent", "person", "rating", "words")}
        found.append({"name": path.stem, "domain": game.domain, **tags, "success": game.success})
    table = Table("name", "domain", "agent", "person", "rating", "words", "success", box=None)
    for entry in found:
        table.add_row(*map(str, entry.values()))
    return Result(found, table)
