"""What a stage is, and how one is run.

Outputs are functions of configuration, inputs and sources alone. What is not (times, the tracking
run's id, checkpoints of work in progress) goes to `runs/<stage>/<input hash>/`, outside DVC.
"""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Protocol

from progrl.config import Config, resolved
from progrl.config.agent import EmbeddedAgent, LocalEngine
from progrl.environments.registry import plugin_sources
from progrl.errors import ConfigurationError, DataError
from progrl.files import digest, exclusive, file_digest, read_json, remove_leftovers, write_json
from progrl.ranks import ALONE, Ranks, launched
from progrl.tracking.contracts import Metrics, Recorder, Silent

__all__ = [
    "NAMES",
    "Context",
    "Metrics",
    "Progress",
    "Recorder",
    "Stage",
    "find_stage",
    "input_hash",
    "is_done",
    "run_stage",
]

logger = logging.getLogger(__name__)

NAMES = ("generate", "sft", "grpo", "evaluate", "report", "register")


class Progress(Protocol):
    """Tells a person how far a stage has come."""

    def __call__(self, done: int, total: int, text: str = "") -> None:
        """`done` of `total` units of the stage's own."""
        ...


def _show_nothing(done: int, total: int, text: str = "") -> None:
    pass


@dataclass(frozen=True)
class Context:
    """What a stage is given.

    Attributes:
        config: the whole configuration; a stage reads its own sections.
        root: folder that all inputs and outputs are relative to.
        project: folder that paths in the configuration are relative to.
        work: the stage's own folder for checkpoints and timings, kept between attempts.
        recorder: the run in the tracking.
        progress: tells a person.
        ranks: this process among those that share the stage's work; only the leading one writes
            outputs.
    """

    config: Config
    root: Path
    project: Path
    work: Path
    recorder: Recorder = field(default_factory=Silent)
    progress: Progress = _show_nothing
    ranks: Ranks = ALONE


@dataclass(frozen=True)
class Stage:
    """A step of the pipeline.

    Attributes:
        name: as in dvc.yaml.
        sections: of the configuration, whose change makes the stage run again.
        inputs: files and folders read, relative to the root; written by earlier stages.
        outputs: files and folders written, each atomically.
        packages: of progrl (or single modules, as `stages/base.py`), whose change makes the
            stage run again.
        run: does it; returns the figures that sum it up, and must be able to resume from
            `context.work` after being killed anywhere.
        divided: whether several processes can share its work.
    """

    name: str
    sections: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    packages: tuple[str, ...]
    run: Callable[[Context], Metrics]
    divided: bool = False


def find_stage(name: str) -> Stage:
    """The stage of that name.

    Raises:
        ConfigurationError: there is none.
    """
    if name not in NAMES:
        raise ConfigurationError(f"No stage {name!r}: there are {', '.join(NAMES)}.")
    from progrl.stages.definitions import STAGES

    return STAGES[name]


def _modules(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(p for p in path.rglob("*") if p.suffix in (".py", ".cpp", ".h"))


@cache
def _source_digest(packages: tuple[str, ...]) -> str:
    top = Path(__file__).parent.parent
    shared = sorted(top.glob("*.py"))
    files = shared + [f for p in packages for f in _modules(top / p)]
    return digest([[f.relative_to(top).as_posix(), file_digest(f)] for f in files])


def input_hash(stage: Stage, config: Config, root: Path) -> str:
    """16 hex digits over the stage's sections, inputs and sources, those of plug-ins included.

    Raises:
        DataError: an input is missing; the message names the stage that writes it.
    """
    tree = resolved(config)
    inputs = {}
    for name in stage.inputs:
        path = root / name
        if not path.exists():
            writer = next((s for s in NAMES if name in find_stage(s).outputs), None)
            hint = (
                f"Run `progrl {writer}` with the same options (or `dvc repro {writer}`) first."
                if writer
                else ""
            )
            raise DataError(f"{path}: missing, and stage {stage.name} reads it. {hint}".strip())
        inputs[name] = file_digest(path)
    sections = {name: tree[name] for name in stage.sections}
    given = [stage.name, sections, inputs, _source_digest(stage.packages)]
    if "domains" in stage.sections:
        names = (*config.domains.train, *config.domains.held_out)
        plugins = {n: [file_digest(f) for f in plugin_sources(n)] for n in names}
        given.append({name: files for name, files in plugins.items() if files})
    return digest(given)[:16]


def _outputs(stage: Stage, root: Path) -> dict[str, str]:
    return {name: file_digest(root / name) for name in stage.outputs if (root / name).exists()}


def is_done(stage: Stage, config: Config, root: Path) -> bool:
    """The stage has ended on these very inputs, and its outputs are as it left them.

    Raises:
        DataError: an input is missing.
    """
    done = root / "runs" / stage.name / input_hash(stage, config, root) / "done.json"
    if not done.exists():
        return False
    try:
        noted = read_json(done)
    except DataError:  # a note that cannot be read is none
        return False
    return isinstance(noted, dict) and noted.get("outputs") == _outputs(stage, root)


def _run(stage: Stage, context: Context) -> Metrics:
    """Run a stage in as many processes as the configuration says, where it can be divided."""
    if "threads" in stage.sections and context.config.threads == "auto":
        from progrl.agent.threads import settled

        settle = settled(context.config, context.project, context.work)
        context = replace(context, config=settle)
    if not stage.divided:
        return stage.run(context)
    _check_kernels(context.config)
    if context.config.processes == 1:
        return stage.run(context)
    from progrl.stages.processes import together

    with together(stage.name, context) as ranks:
        return stage.run(replace(context, ranks=ranks))


def _check_kernels(config: Config) -> None:
    """Raise ConfigurationError where this machine cannot compile what the configuration wants."""
    from progrl.agent.native import require_compiler

    agent, engine = config.agent, config.engine
    if isinstance(agent, EmbeddedAgent) and agent.compile:
        require_compiler("agent.compile")
    if isinstance(engine, LocalEngine) and engine.compile:
        require_compiler("engine.compile")


def _place(stage: Stage, config: Config) -> Ranks:
    """This process among those of a launcher, if there is one.

    Raises:
        ConfigurationError: there are others than the configuration says.
    """
    ranks = launched() or ALONE
    if ranks.size > 1 and stage.divided and ranks.size != config.processes:
        raise ConfigurationError(
            f"processes: {config.processes}, but a launcher has started {ranks.size}. Set "
            f"processes={ranks.size}: results depend on their number in the last digits."
        )
    return ranks


def _follow(stage: Stage, context: Context) -> Metrics:
    """Share what another process leads, which alone locks, records and writes."""
    return _run(stage, context) if stage.divided else {}


Opener = Callable[[Stage, Config, Path, Path, Path], AbstractContextManager[Recorder]]
"""Opens the tracking run, given stage, configuration, root, project and work folder."""


def run_stage(
    stage: Stage,
    config: Config,
    root: Path,
    project: Path,
    progress: Progress | None = None,
    open_run: Opener | None = None,
) -> Metrics:
    """Run a stage under its lock, with its tracking run, and note how long it took.

    Of several processes that a launcher has started (`torchrun`, `accelerate launch`), which all
    must see the same `root`, the first leads and the others do their share.

    Args:
        open_run: opens the tracking run.

    Raises:
        BusyError: the same stage already runs on this root.
        ProgrlError: whatever the user can mend.
    """
    if not _place(stage, config).leads:
        work = root / "runs" / stage.name / input_hash(stage, config, root)
        return _follow(stage, Context(config, root, project, work))
    with exclusive(root / "runs" / f"{stage.name}.lock", f"Stage {stage.name}"):
        work = root / "runs" / stage.name / input_hash(stage, config, root)
        work.mkdir(parents=True, exist_ok=True)
        for name in stage.outputs:
            remove_leftovers(root / name)
        start = time.time()
        given = (stage, config, root, project, work)
        opened = open_run(*given) if open_run else nullcontext(Silent())
        with opened as recorder:
            context = Context(config, root, project, work, recorder, progress or _show_nothing)
            logger.info("stage %s starts (inputs %s)", stage.name, work.name)
            metrics = _run(stage, context)
            missing = [name for name in stage.outputs if not (root / name).exists()]
            if missing:
                raise DataError(f"Stage {stage.name} ended without writing {', '.join(missing)}.")
            recorder.metrics({f"final/{name}": value for name, value in metrics.items()})
        seconds = time.time() - start
        done = {"seconds": seconds, "metrics": dict(metrics), "outputs": _outputs(stage, root)}
        write_json(work / "done.json", done)
        logger.info("stage %s done in %.1f s", stage.name, seconds)
        return metrics
