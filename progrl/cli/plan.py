"""`progrl plan`: which tools a learned tool policy would use for a query."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from progrl.cli.command import Result, Shared, command
from progrl.cli.episodes import PANEL, SeedOption, domain_of, root_seed
from progrl.cli.stages import stay_local
from progrl.config.orchestration import PlanConfig
from progrl.errors import ConfigurationError


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(
        app,
        "plan",
        'plan "i want to return a lamp" --domain retail',
        'plan "i want to return a lamp" --domain retail --choice sampled --policy models/sft/tools',
        panel=PANEL,
    )(plan)


def plan(
    shared: Shared,
    text: Annotated[str, typer.Argument(help="The user's opening words.", show_default=False)],
    domain: Annotated[str, typer.Option(help="Whose tools, of `progrl environments`.")],
    policy: Annotated[Path, typer.Option(help="Folder of a tool policy.")] = Path(
        "models/grpo/tools"
    ),
    memory: Annotated[
        Path | None,
        typer.Option(help="Folder of a long-term memory; else the policy's own, if it has one."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, help="Most steps; else evaluation.horizon.")
    ] = None,
    choice: Annotated[
        Literal["argmax", "sampled"],
        typer.Option(help="The most probable tool of each step, or one drawn by probability."),
    ] = "argmax",
    confidence: Annotated[
        Literal["chosen", "highest"],
        typer.Option(help="Probability of the chosen tool, or the highest of all tools."),
    ] = "chosen",
    seed: SeedOption = None,
) -> Result:
    """Plan the tools for a query: in which order, how surely, and what to try if one fails."""
    from progrl.memory import LongTermMemory
    from progrl.orchestration import Orchestrator, ToolPolicy
    from progrl.stages.advice import recalled_by
    from progrl.stages.base import Context
    from progrl.stages.parts import encoder_of

    if seed is not None and choice == "argmax":
        raise ConfigurationError("--seed has no effect: nothing is drawn with --choice argmax.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ConfigurationError("The text is not valid UTF-8.") from None
    config = shared.config()
    stay_local(config)
    tools = domain_of(config, domain).tools
    learned = ToolPolicy.load(policy)
    recalled = (
        LongTermMemory.load(memory, read_only=True) if memory is not None else recalled_by(policy)
    )
    root = Path()
    encoder = encoder_of(Context(config, root, shared.project, root / "runs"))
    made = Orchestrator(encoder, recalled).plan(
        PlanConfig(choice=choice, confidence=confidence),
        learned,
        text,
        tools,
        horizon or config.evaluation.horizon,
        root_seed(config, seed).child("plan").random(),
    )
    return Result(made.to_json(), _table(made))


def _table(made: Any) -> Table:
    table = Table("step", "tool", "confidence", "if it fails", box=None)
    rows = zip(made.sequence, made.confidence, made.fallback, strict=True)
    for number, (tool, sure, other) in enumerate(rows, start=1):
        table.add_row(str(number), tool, f"{sure:.3f}", other)
    return table
