"""`progrl benchmarks`, and `progrl evaluate --benchmark`: what others made, by their checkers."""

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from progrl.cli.command import Result, Shared, command
from progrl.cli.output import progress
from progrl.cli.players import closing, measured, player_of
from progrl.cli.stages import UserKind, stay_local
from progrl.errors import ConfigurationError

if TYPE_CHECKING:
    from progrl.benchmarks.contracts import Adapter

group = typer.Typer(
    name="benchmarks", help="Benchmarks that others made, and their gold.", no_args_is_help=True
)
Name = Annotated[str, typer.Argument(help="As `progrl benchmarks list` has it.")]
Limit = Annotated[int | None, typer.Option(min=1, help="The first tasks alone.")]
CorpusFolder = Annotated[
    Path | None,
    typer.Option("--corpus", help="Of document_search: documents.jsonl and questions.jsonl."),
]


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(group, rich_help_panel="Episodes")


@command(group, "list", "benchmarks list", "benchmarks list --json", configured=False)
def list_(shared: Shared) -> Result:
    """List all benchmarks: which can run, what the others lack, licences."""
    from progrl.benchmarks import BENCHMARKS

    rows = [
        {
            "name": each.name,
            "title": each.title,
            "status": each.status,
            "licence": each.licence,
            "install": each.install,
            "server": each.server,
            "why": each.why,
        }
        for each in BENCHMARKS.values()
    ]
    table = Table("name", "status", "licence", "to run it", box=None, header_style="bold")
    for row in rows:
        needed = row["install"] if row["status"] == "missing" else row["why"]
        table.add_row(row["name"], row["status"], row["licence"], needed)
    return Result(rows, table)


@command(
    group,
    "gold",
    "benchmarks gold textcraft --limit 50",
    "benchmarks gold document_search --corpus my/corpus --json",
    configured=False,
)
def gold(shared: Shared, name: Name, limit: Limit = None, corpus: CorpusFolder = None) -> Result:
    """Play the gold trajectories to the benchmark's own verdict."""
    from progrl.benchmarks import find
    from progrl.benchmarks import gold as play_gold

    tests = find(name).tests
    adapter = find(name).open_gold() if tests else opened(name, corpus)
    with progress(f"gold of {name}", shared.quiet) as told:
        played = play_gold(
            adapter,
            limit,
            lambda done: told(done, limit or 0, "episodes"),
            lambda made: told(made, limit or 0, "tasks read"),
        )
    won = sum(t.valid and t.success for t in played)
    what = "reference answers" if tests else "gold trajectories"
    lines = [f"{won} of {len(played)} {what} of {name} succeed.", *filter(None, [tests])]
    lines += [
        f"  {t.task_id}: {t.fault or t.end.value}" for t in played if not (t.valid and t.success)
    ]
    found = {"n": len(played), "success": won / len(played), **({"tests": tests} if tests else {})}
    return Result(found, "\n".join(lines))


@command(group, "install", "benchmarks install bfcl_v3_multi_turn", configured=False)
def install(shared: Shared, name: Name) -> Result:
    """Install a benchmark whose dependencies would change ours, without them; then try its gold."""
    from progrl.benchmarks import find, isolated
    from progrl.benchmarks import gold as play_gold

    benchmark = find(name)
    if not benchmark.isolated:
        reason = benchmark.why or f"is installed by {benchmark.install}"
        raise ConfigurationError(f"{name}: nothing to install by this command; it {reason}")
    typer.echo(f"Running {' '.join(isolated.line(benchmark.place, benchmark.isolated))}", err=True)
    folder = isolated.install(benchmark.place, benchmark.isolated)
    played = play_gold(benchmark.open_gold(), 20)
    won = sum(t.valid and t.success for t in played)
    found = {"folder": str(folder), "n": len(played), "success": won / len(played)}
    shown = f"Installed in {folder}; {won} of {len(played)} gold trajectories succeed."
    return Result(found, shown, code=int(won < len(played)))


def opened(name: str, corpus: Path | None) -> "Adapter":
    """The adapter of a benchmark, or of document search in a corpus of the user's own.

    Raises:
        ConfigurationError: it cannot run here, or the corpus has no effect.
        DataError: the corpus is broken.
    """
    from progrl.benchmarks import find

    if corpus is None:
        return find(name).open()
    if name != "document_search":
        raise ConfigurationError(f"--corpus has no effect on {name}: document_search has one.")
    find(name).open()
    from progrl.benchmarks.documents import DocumentSearch

    return DocumentSearch(corpus)


def evaluate_benchmark(
    shared: Shared,
    name: str,
    agent: str,
    limit: int | None,
    temperature: float,
    corpus: Path | None,
    model: str | None = None,
    key_variable: str = "",
    trials: int = 1,
    user: UserKind | None = None,
) -> Result:
    """An agent on a benchmark, with the do-nothing agent beside it.

    The exit code is that of a fault where more episodes break than `evaluation.max_fault_share`.

    Args:
        agent: as for `agent_of`, or an endpoint's address, which has the `model`; its key stands
            in the environment variable `key_variable`.
        trials: episodes a task.
        user: who plays the user; None for the one of the configuration.
    """
    from progrl.benchmarks import find, verdict
    from progrl.benchmarks.play import IN_FLIGHT, first_tasks, play
    from progrl.benchmarks.players import ScenarioUser
    from progrl.cli.episodes import fault_code
    from progrl.cli.play import Quit

    config = shared.config()
    stay_local(config)
    adapter = opened(name, corpus)
    tasks = first_tasks(adapter, limit)
    total = len(tasks) * trials
    person = user == "human"
    seat = measured(shared, config, agent, model, key_variable, temperature)
    player = player_of(shared, config, adapter, user)
    try:
        with closing(seat, player), progress(f"{agent} on {name}", shared.quiet or person) as told:
            at_a_time = 1 if person else IN_FLIGHT
            ended = functools.partial(told, total=total, text="episodes")
            played = play(adapter, tasks, seat, ended, trials, player, at_a_time)
    except BaseExceptionGroup as group:
        if group.subgroup(Quit) is None:
            raise
        return Result({"quit": True}, "Ended.")
    found = verdict(adapter, tasks, played)
    figures = {
        "benchmark": name,
        "licence": find(name).licence,
        "agent": seat.name,
        **found.json(),
        **({"user": player.spent()} if isinstance(player, ScenarioUser) else {}),
    }
    table = Table(*figures, box=None, header_style="bold")
    table.add_row(*map(_shown, figures.values()))
    return Result(figures, table, code=fault_code(played, config.evaluation.max_fault_share))


def kept(shared: Shared, measured: Result) -> Result:
    """Write an agent's figures where the report finds them; not those of an interrupted game."""
    from progrl.files import write_json
    from progrl.reporting.outside import FOLDER

    figures = measured.value
    if "benchmark" in figures:
        agent = re.sub(r"[^\w.-]+", "_", figures["agent"])
        write_json(shared.project / FOLDER / f"{figures['benchmark']}--{agent}.json", figures)
    return measured


def _shown(value: object) -> str:
    """A figure for people; several, by name, a line each."""
    if isinstance(value, dict):
        return "\n".join(f"{name}: {_shown(each)}" for name, each in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)
