"""The tasks of a sweep: the part that a seed's variants share, and one variant of one seed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefect import task
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger

from progrl.errors import ProgrlError
from progrl.evaluation.sweep import NOTE
from progrl.files import write_json
from progrl.stages import find_stage, is_done
from progrl.tracking import open_pipeline
from tasks.environment import apply
from tasks.job import Job
from tasks.lifeline import is_gone, tied
from tasks.process import STOPPED
from tasks.stage import RETRIED, Outcome, carry_out, ended
from tasks.sweep import make_sweep, prepare, share

Steps = Sequence[tuple[str, Job]]


@task(name="base", task_run_name="seed {seed}", **RETRIED)
def run_base(
    sweep: str, profile: str, overrides: list[str], seed: int, parent: str | None, flow: str
) -> State[Any]:
    """Make what all variants of a seed share.

    Args:
        parent: id of the sweep's tracking run.
        flow: name of the flow's lifeline.
    """
    logger = get_run_logger()
    found = _while_wanted(flow, lambda: make_base(sweep, profile, overrides, seed, parent))
    logger.info("Seed %d: %s", seed, _words(found))
    return ended(found)


@task(name="cell", task_run_name="{variant} of seed {seed}", **RETRIED)
def run_cell(
    sweep: str,
    profile: str,
    overrides: list[str],
    seed: int,
    variant: str,
    parent: str | None,
    flow: str,
) -> State[Any]:
    """Train and evaluate one variant with one seed.

    Args:
        parent: id of the sweep's tracking run.
        flow: name of the flow's lifeline.
    """
    logger = get_run_logger()
    found = _while_wanted(flow, lambda: make_cell(sweep, profile, overrides, seed, variant, parent))
    logger.info("%s of seed %d: %s", variant, seed, _words(found))
    return ended(found)


def _while_wanted(flow: str, work: Callable[[], Outcome]) -> Outcome:
    """Do the work in a process that may be a cluster's: set up like the flow's, and tied to it."""
    apply()
    if is_gone(flow):
        return Outcome(
            STOPPED,
            message="its flow has ended, or the worker has another folder of the project than the "
            "flow: all of a cluster share one",
        )
    with tied(flow):
        return work()


def make_base(
    name: str, profile: str, overrides: Sequence[str], seed: int, parent: str | None
) -> Outcome:
    """What `run_base` does; never raises what a user can mend."""
    try:
        job = make_sweep(name, profile, overrides).base(seed)
        prepare(job)
        return _carry_out([(stage, job) for stage in ("generate", "sft")], parent)
    except ProgrlError as error:
        return Outcome(error.exit_code, message=str(error))


def make_cell(
    name: str,
    profile: str,
    overrides: Sequence[str],
    seed: int,
    variant: str,
    parent: str | None,
) -> Outcome:
    """What `run_cell` does; never raises what a user can mend. How it ended is in cell.json."""
    try:
        sweep = make_sweep(name, profile, overrides)
        training, evaluation = sweep.cell(seed, variant), sweep.evaluation(seed, variant)
        prepare(training)
        prepare(evaluation)
        share(sweep.base(seed).root, training.root)
        found = _carry_out([("grpo", training), ("evaluate", evaluation)], parent)
    except ProgrlError as error:
        found = Outcome(error.exit_code, message=str(error))
    note = {"variant": variant, "seed": seed, "state": "failed" if found.code else "done"}
    write_json(sweep.folder(seed, variant) / NOTE, {**note, "message": found.message})
    return found


def _carry_out(steps: Steps, parent: str | None) -> Outcome:
    """Run stages one after the other, as children of one tracking run, until one fails."""
    first = steps[0][1]
    if _all_done(steps):
        return Outcome(0, unchanged=True)
    found = Outcome(0)
    try:
        with (
            open_pipeline(first.project, first.config, first.root, parent) as run,
            _log(first.root) as tell,
        ):
            for name, job in steps:
                found = carry_out(job, name, tell, run.run)
                if found.code:
                    raise SystemExit(found.code)
    except SystemExit:
        # Ends the tracking run as what happened, and nothing else.
        pass
    return replace(found, unchanged=False)  # whatever the last of them was


def _all_done(steps: Steps) -> bool:
    for name, job in steps:
        stage = find_stage(name)
        missing = [one for one in stage.inputs if not (job.root / one).exists()]
        if missing or not is_done(stage, job.config, job.root):
            return False
    return True


@contextmanager
def _log(root: Path) -> Iterator[Callable[[str], None]]:
    """Writes the lines of stages to the folder's log."""
    with (root / "log.txt").open("a", encoding="utf-8") as stream:

        def tell(line: str) -> None:
            stream.write(f"{line}\n")
            stream.flush()

        yield tell


def _words(found: Outcome) -> str:
    if found.code:
        return f"failed. {found.message}"
    return "unchanged" if found.unchanged else "done"
