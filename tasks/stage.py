"""The task that runs a stage: by DVC on the main path, by the command line elsewhere."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from filelock import FileLock, Timeout
from prefect import task
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.states import Completed, Failed

from progrl.errors import ProgrlError
from progrl.files import read_json
from progrl.stages import find_stage, input_hash, is_done
from progrl.tracking import run_of
from progrl.tracking.runs import PIPELINE
from progrl.tracking.store import AWAY
from tasks.job import Job, make_job
from tasks.process import Ended, run

BUSY, CACHED = "Busy", "Cached"
"""Names of states: a retry may help; nothing had to be done."""

DELAYS = (5, 20, 60)
"""Seconds before each retry."""

_RETRY = re.compile(
    # DVC's lock on the repository or on a path; a tracking store that is away or locked.
    rf"is busy, it is being blocked by|Unable to acquire lock|The MLflow store \S+ {AWAY}"
)
_UNCHANGED = re.compile(r"Stage '.*' (didn't change, skipping|is cached)")
_EXIT = re.compile(r"exited with (\d+)")
_NOISE = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d \d\d:\d\d:\d\d|\w+: \d+/\d+|Running stage|> |"
    r"ERROR: failed to reproduce|Stage '|\s*$"
)


@dataclass(frozen=True)
class Outcome:
    """How a stage's process ended.

    Attributes:
        code: exit code of the stage itself, also where DVC ran it.
        unchanged: nothing had to be done.
        message: what went wrong, in the stage's own words.
        retry: it may go well later.
    """

    code: int
    unchanged: bool = False
    message: str = ""
    retry: bool = False


class StageFailed(Exception):
    """A stage of a pipeline did not complete; `code` is its exit code."""

    def __init__(self, name: str, state: State[Any]) -> None:
        super().__init__(f"Stage {name}: {state.message or state.name}")
        self.code = exit_code(state)


def exit_code(state: State[Any]) -> int:
    """What a program ends with whose flow or task ended in this state."""
    if state.is_completed():
        return 0
    code = state.result(raise_on_failure=False)
    return code if isinstance(code, int) and code else 1


def outcome(process: Ended) -> Outcome:
    """What the end of a process means."""
    text = "\n".join(process.lines)
    if process.code == 0:
        return Outcome(0, unchanged=bool(_UNCHANGED.search(text)))
    told = _EXIT.search(text)
    code = int(told.group(1)) if told else process.code
    return Outcome(code, message=message(process.lines), retry=bool(_RETRY.search(text)))


def message(lines: Sequence[str]) -> str:
    """The last words of a process: what follows its last log or progress line.

    Of a traceback, the last line alone: the rest is in the log.
    """
    said: list[str] = []
    for line in reversed(lines):
        if not _NOISE.match(line):
            said.insert(0, line)
        elif said:
            break
    if any(line.startswith("Traceback (most") for line in lines) and said:
        return f"a fault of the program's own, whose traceback is in the log: {said[-1]}"
    return "\n".join(said) or "it ended without a word"


def may_help(task: Any, run: Any, state: State[Any]) -> bool:
    """A failed task is worth another try."""
    return state.name == BUSY


RETRIED: dict[str, Any] = {
    "retries": len(DELAYS),
    "retry_delay_seconds": list(DELAYS),
    "retry_condition_fn": may_help,
    "persist_result": False,
}
"""Of a Prefect task that is tried again while another process holds what it needs."""


@task(name="stage", task_run_name="{name}", **RETRIED)
def run_stage(
    name: str, profile: str, overrides: list[str], pipeline: str | None = None
) -> State[Any]:
    """Run a stage of a job in a process of its own.

    Args:
        pipeline: id of the pipeline's tracking run.
    """
    logger = get_run_logger()
    found = carry_out(make_job(profile, overrides), name, logger.info, pipeline)
    if found.unchanged:
        logger.info("Stage %s is unchanged: its results stand.", name)
    return ended(found)


def carry_out(
    job: Job, name: str, tell: Callable[[str], None], pipeline: str | None = None
) -> Outcome:
    """Run a stage, unless its results stand already."""
    if not job.main and name != "register" and is_done(find_stage(name), job.config, job.root):
        return Outcome(0, unchanged=True)
    return attempt(job, name, tell, pipeline)


def ended(found: Outcome) -> State[Any]:
    """The state that a task ends in."""
    if found.code:
        return Failed(
            message=found.message, name=BUSY if found.retry else "Failed", data=found.code
        )
    if found.unchanged:
        return Completed(message="unchanged", name=CACHED)
    return Completed(message="done")


def attempt(
    job: Job, name: str, tell: Callable[[str], None], pipeline: str | None = None
) -> Outcome:
    """Run a stage's process once; on the main path one at a time."""
    environment = {PIPELINE: pipeline} if pipeline else {}
    if not job.main:
        command = [sys.executable, "-m", "progrl.cli", "stage", name, "--profile", job.profile]
        command += ["--root", str(job.root)]
        command += [word for override in job.overrides for word in ("--set", override)]
        return outcome(run(command, job.project, environment, tell))
    if name == "register":
        command = [sys.executable, "-m", "progrl.cli", "stage", name]
    else:
        command = [sys.executable, "-m", "dvc", "repro", "--single-item", name]
    state = job.project / ".state"
    state.mkdir(exist_ok=True)
    lock = FileLock(state / "stages.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        tell("Another flow runs a stage on the main path; waiting for it.")
        lock.acquire()
    try:
        return outcome(run(command, job.project, environment, tell))
    finally:
        lock.release()


def recorded(job: Job, name: str) -> dict[str, str] | None:
    """The tracking run of a stage that has run on what is there now, if it was recorded."""
    work = job.root / "runs" / name / input_hash(find_stage(name), job.config, job.root)
    return run_of(work)


def registration(job: Job) -> dict[str, Any] | None:
    """What stage `register` has noted."""
    stage = find_stage("register")
    work = job.root / "runs" / "register" / input_hash(stage, job.config, job.root)
    path = work / "registration.json"
    return dict(read_json(path)) if path.exists() else None


def run_alone(name: str, profile: str, overrides: list[str]) -> State[Any]:
    """What the flow of a single stage does: run it, and end as it ended."""
    try:
        make_job(profile, overrides)
    except ProgrlError as error:
        return Failed(message=str(error), data=error.exit_code)
    state: State[Any] = run_stage(name, profile, overrides, return_state=True)
    if state.is_completed():
        return state
    failure = StageFailed(name, state)
    return Failed(message=str(failure), data=failure.code)
