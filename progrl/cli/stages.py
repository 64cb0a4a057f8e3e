"""The pipeline's stages: `stage` for dvc.yaml, one command each for people, `run` for all."""

import importlib
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Group
from rich.table import Table

from progrl.cli.command import Result, Shared, command
from progrl.cli.output import grid, progress
from progrl.config import Config
from progrl.errors import ConfigurationError
from progrl.files import read_json
from progrl.offline import LOCAL
from progrl.ranks import launched
from progrl.stages import NAMES, find_stage, is_done, run_stage

logger = logging.getLogger(__name__)

PANEL = "Pipeline"
UserKind = Literal["scripted", "llm", "human"]
"""Who plays the user of a benchmark."""

PURPOSES = {
    "generate": "Make tasks, user wordings and expert dialogues.",
    "sft": "Make the model and warm it up on the best dialogues.",
    "grpo": "Train the agent by reinforcement within a growing horizon.",
    "evaluate": "Measure all agents on held-out tasks.",
    "report": "Write the report, one HTML file.",
    "register": "Register the model, and make it champion if it earned that.",
}

Output = Annotated[
    Path | None,
    typer.Option(
        help="Folder of inputs and outputs; without it outputs/PROFILE (or outputs/custom)."
    ),
]
_BENCHMARKS = "Benchmarks"
BenchmarkName = Annotated[
    str | None,
    typer.Option(
        help="Measure one agent on this benchmark, not the stage's agents on our tasks; "
        "`progrl benchmarks list` has the names.",
        rich_help_panel=_BENCHMARKS,
    ),
]
MeasuredAgent = Annotated[
    str | None,
    typer.Option(
        help="do_nothing, random, expert, the folder of a model, or the address of an endpoint of "
        "the OpenAI protocol.",
        metavar="WHO",
        rich_help_panel=_BENCHMARKS,
    ),
]
ModelName = Annotated[
    str | None, typer.Option(help="Of the endpoint.", rich_help_panel=_BENCHMARKS)
]
KeyVariable = Annotated[
    str,
    typer.Option(help="Environment variable with the endpoint's key.", rich_help_panel=_BENCHMARKS),
]
TaskLimit = Annotated[
    int | None, typer.Option(min=1, help="The first tasks alone.", rich_help_panel=_BENCHMARKS)
]
Temperature = Annotated[
    float, typer.Option(min=0, help="Of a model; 0 is greedy.", rich_help_panel=_BENCHMARKS)
]
Keep = Annotated[
    bool,
    typer.Option(
        "--keep",
        help="Keep the figures in metrics/benchmarks, where the report shows them.",
        rich_help_panel=_BENCHMARKS,
    ),
]
Trials = Annotated[
    int,
    typer.Option(min=1, help="Episodes a task, for pass^k.", rich_help_panel=_BENCHMARKS),
]
WhoIsUser = Annotated[
    UserKind | None,
    typer.Option(
        "--user",
        help="Who plays the user of tau2-bench and tau-bench; else as the configuration says.",
        rich_help_panel=_BENCHMARKS,
    ),
]
CorpusFolder = Annotated[
    Path | None,
    typer.Option(
        help="Of document_search: documents.jsonl and questions.jsonl.",
        rich_help_panel=_BENCHMARKS,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    command(app, "run", "run", "run --output outputs/short --set grpo.steps=10", panel=PANEL)(run)
    command(app, "stage", "stage generate", "stage grpo --root outputs/first", panel=PANEL)(stage)
    for name, purpose in PURPOSES.items():
        if name == "evaluate":
            command(
                app,
                name,
                "evaluate --output outputs/first",
                "evaluate --benchmark document_search --agent models/sft --limit 20",
                panel=PANEL,
            )(evaluate)
        else:
            _register_one(app, name, purpose)


def _register_one(app: typer.Typer, name: str, purpose: str) -> None:
    def body(shared: Shared, output: Output = None) -> Result | None:
        return _stage(shared, name, own_folder(shared, output))

    body.__doc__ = purpose
    command(app, name, f"{name} --output outputs/first", panel=PANEL)(body)


def evaluate(
    shared: Shared,
    output: Output = None,
    benchmark: BenchmarkName = None,
    agent: MeasuredAgent = None,
    model: ModelName = None,
    key_variable: KeyVariable = "",
    limit: TaskLimit = None,
    temperature: Temperature = 0.0,
    corpus: CorpusFolder = None,
    trials: Trials = 1,
    user: WhoIsUser = None,
    keep: Keep = False,
) -> Result | None:
    """Measure all agents on held-out tasks; or, with --benchmark, one agent on a benchmark."""
    if benchmark is None:
        given = {
            "--agent": agent,
            "--model": model,
            "--key-variable": key_variable,
            "--limit": limit,
            "--corpus": corpus,
            "--temperature": temperature,
            "--trials": trials - 1,
            "--user": user,
            "--keep": keep,
        }
        if idle := [option for option, value in given.items() if value]:
            raise ConfigurationError(f"{idle[0]} has no effect without --benchmark.")
        return _stage(shared, "evaluate", own_folder(shared, output))
    if output is not None or agent is None:
        wrong = "needs --agent" if agent is None else "writes nothing there, so takes no --output"
        raise ConfigurationError(f"evaluate --benchmark {benchmark} {wrong}.")
    from progrl.cli.benchmarks import evaluate_benchmark, kept

    found = evaluate_benchmark(
        shared, benchmark, agent, limit, temperature, corpus, model, key_variable, trials, user
    )
    return kept(shared, found) if keep else found


def stage(
    shared: Shared,
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.")],
    root: Annotated[
        Path, typer.Option(help="Folder that all inputs and outputs are relative to.")
    ] = Path(),
) -> Result | None:
    """Run one stage in the project itself, as dvc.yaml does; prefer `dvc repro`."""
    return _stage(shared, name, root)


def run(shared: Shared, output: Output = None) -> Result:
    """Run all stages in a folder of their own, skipping those whose results stand already.

    After an interruption the same command goes on where it stopped.
    """
    if launched() is not None:
        raise ConfigurationError(
            "progrl run starts its processes itself (key `processes`). Under a launcher run one "
            "stage after another: progrl stage sft, then grpo, then evaluate."
        )
    root = own_folder(shared, output)
    config = shared.config()
    stay_local(config)
    from progrl.stages.estimate import too_large

    if told := too_large(config, shared.project):
        logger.warning(told)
    results: dict[str, Any] = {}
    for name in NAMES:
        if is_done(find_stage(name), config, root):
            results[name] = {"skipped": True}
        else:
            metrics = _run(shared, config, name, root)
            results[name] = {"skipped": False, "metrics": metrics}
    skipped = [name for name, result in results.items() if result["skipped"]]
    lines = [f"Unchanged: {', '.join(skipped)}."] if skipped else []
    lines.append(f"Report: {root / 'reports' / 'index.html'}")
    shown = Group(_results(root), "", *lines)
    return Result({"root": str(root), "stages": results}, shown)


def stay_local(config: Config) -> None:
    """Set the environment that keeps libraries offline and torch on the configured threads."""
    for name, value in LOCAL.items():
        os.environ.setdefault(name, value)
    if config.threads == "auto":
        return
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(config.threads)
    if "torch" in sys.modules:
        importlib.import_module("torch").set_num_threads(config.threads)


def _stage(shared: Shared, name: str, root: Path) -> Result | None:
    config = shared.config()
    stay_local(config)
    metrics = _run(shared, config, name, root)
    ranks = launched()
    if ranks is not None and not ranks.leads:
        return None
    shown = _results(root) if name == "evaluate" else _line(metrics)
    return Result({"stage": name, "root": str(root), "metrics": metrics}, shown)


def _results(root: Path) -> Table:
    """The table of metrics/evaluate.json."""
    from progrl.reporting import results_table

    return grid(results_table(read_json(root / "metrics" / "evaluate.json")), "benchmark")


def _run(shared: Shared, config: Config, name: str, root: Path) -> Mapping[str, float]:
    from progrl.tracking import open_run

    ranks = launched()
    quiet = shared.quiet or (ranks is not None and not ranks.leads)
    with progress(name, quiet) as told:
        return run_stage(find_stage(name), config, root, shared.project, told, open_run)


def own_folder(shared: Shared, output: Path | None) -> Path:
    """Where a person's command writes: never among the results that DVC keeps.

    Raises:
        ConfigurationError: the folder is a project's own.
    """
    profile = Path(shared.profile).stem if shared.profile else "custom"
    folder = output or shared.project / "outputs" / profile
    if (folder / "dvc.yaml").exists():
        raise ConfigurationError(
            f"{folder.resolve()} holds the results that DVC keeps: name another folder with "
            "--output, or use `dvc repro` for those."
        )
    return folder


def _line(metrics: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in metrics.items())
