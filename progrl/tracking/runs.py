"""Opens the run of a stage: a child of its pipeline's run, continued where a stage is resumed.

All stages on the same root, git commit and configuration share one pipeline, whoever starts them:
a flow, `dvc repro` or the command line.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from progrl.config import Config, resolved
from progrl.errors import TrackingError
from progrl.files import canonical, digest, read_json, write_json
from progrl.tracking.contracts import Described, Recorder, Silent
from progrl.tracking.data import data_hash
from progrl.tracking.provenance import provenance
from progrl.tracking.recorder import HEARTBEAT, LONGEST, PROCESS, MlflowRecorder, process_mark
from progrl.tracking.secrets import HIDDEN, is_private, redacted
from progrl.tracking.store import Store, open_store, reaching
from progrl.tracking.zombies import sweep

if TYPE_CHECKING:
    from mlflow.entities import Run

PIPELINE = "PROGRL_PIPELINE_RUN"
"""Variable that a flow hands to its stages: the id of the pipeline's run."""

_KEY = "progrl.pipeline_key"
_KILLED = (130, 143)
"""Exit codes after SIGINT and SIGTERM."""


@dataclass(frozen=True)
class Pipeline:
    """The run of a pipeline, open.

    Attributes:
        run: its id; None where nothing is recorded.
        experiment: its experiment's id.
        recorder: records it.
    """

    run: str | None
    experiment: str
    recorder: Recorder


@contextlib.contextmanager
def open_run(
    stage: Described, config: Config, root: Path, project: Path, work: Path
) -> Iterator[Recorder]:
    """The run of a stage, as `run_stage` wants it opened.

    A stage started again on the same inputs continues its run. Ended by SIGTERM or Ctrl-C the run
    becomes KILLED, by an exception FAILED.

    Raises:
        TrackingError: the store cannot be reached.
    """
    if config.tracking.kind == "none":
        yield Silent()
        return
    store = open_store(project, config.tracking.experiment)
    sweep(store)
    record = provenance(project, config)
    with contextlib.ExitStack() as stack:
        parent = os.environ.get(PIPELINE)
        if not parent:
            parent = stack.enter_context(_pipeline(store, config, root, project, record)).run
        with reaching(store.uri):
            if _find(store, parent) is None:
                raise TrackingError(
                    f"{PIPELINE}={parent}: no such run in the store. Unset the variable, or set "
                    "MLFLOW_TRACKING_URI as it was when that pipeline started."
                )
            run = _child(store, stage, config, root, work, record, parent)
            recorder = MlflowRecorder(store.client, run, work / "metrics.journal")
        with _ending(recorder):
            yield recorder


@contextlib.contextmanager
def open_pipeline(
    project: Path, config: Config, root: Path, parent: str | None = None
) -> Iterator[Pipeline]:
    """The run that the stages on this root, commit and configuration are children of.

    Args:
        parent: the run that it is itself a child of, as a sweep's cell is of the sweep.

    Raises:
        TrackingError: the store cannot be reached.
    """
    if config.tracking.kind == "none":
        yield Pipeline(None, "", Silent())
        return
    store = open_store(project, config.tracking.experiment)
    sweep(store)
    record = provenance(project, config)
    with _pipeline(store, config, root, project, record, parent) as recorder:
        yield Pipeline(recorder.run, store.experiment, recorder)


def run_of(work: Path) -> dict[str, str] | None:
    """What a stage's work folder says of its run: `run`, `experiment`, `parent`."""
    path = work / "run.json"
    return dict(read_json(path)) if path.exists() else None


@contextlib.contextmanager
def _pipeline(
    store: Store,
    config: Config,
    root: Path,
    project: Path,
    record: Mapping[str, Any],
    parent: str | None = None,
) -> Iterator[MlflowRecorder]:
    """The pipeline's run, opened, and made where there is none."""
    place = root.resolve()
    key = digest([str(place), record["commit"], record["configuration"]])[:16]
    home = project.resolve()
    shown = place.relative_to(home).as_posix() if place.is_relative_to(home) else place.name
    with reaching(store.uri), FileLock(store.lock):
        found = store.client.search_runs(
            [store.experiment],
            f"tags.`{_KEY}` = '{key}'",
            order_by=["attributes.start_time ASC"],
            max_results=1,
        )
        tags = {_KEY: key, "progrl.root": shown, **_alive(), **_told(record)}
        if parent:
            tags["mlflow.parentRunId"] = parent
        if found:
            run = found[0].info.run_id
            _resume(store, run, tags)
        else:
            name = "pipeline" if shown == "." else f"pipeline {shown}"
            run = _create(store, name, {"progrl.kind": "pipeline", **tags})
            _log_parameters(store, run, resolved(config))
    with reaching(store.uri):
        recorder = MlflowRecorder(store.client, run)
    with _ending(recorder):
        yield recorder


@contextlib.contextmanager
def _ending(recorder: MlflowRecorder) -> Iterator[None]:
    """End the run as what happened in the block."""
    status = "KILLED"
    try:
        yield
        status = "FINISHED"
    except Exception:
        status = "FAILED"
        raise
    except SystemExit as exit_:
        status = "KILLED" if exit_.code in _KILLED else "FAILED"
        raise
    finally:
        with _undisturbed():
            recorder.close(status)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore further SIGTERMs, which would leave a run half closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _child(
    store: Store,
    stage: Described,
    config: Config,
    root: Path,
    work: Path,
    record: Mapping[str, Any],
    parent: str,
) -> str:
    """The run of a stage's attempt: the unfinished one of its work folder, or a new one."""
    tags = {
        "mlflow.parentRunId": parent,
        "progrl.pipeline": parent,
        "progrl.inputs": work.name,
        **_alive(),
        **_told(record),
    }
    run = _earlier(store, work)
    if run is not None:
        _resume(store, run, tags)
    else:
        run = _create(store, stage.name, {"progrl.kind": "stage", **tags})
        tree = resolved(config)
        _log_parameters(store, run, {name: tree[name] for name in stage.sections})
        _log_data(store, run, root, stage.inputs)
        (work / "metrics.journal").unlink(missing_ok=True)
    told = {"run": run, "experiment": store.experiment, "parent": parent}
    write_json(work / "run.json", told)
    return run


def _earlier(store: Store, work: Path) -> str | None:
    """The run of an earlier attempt on the same inputs, if it is in this store."""
    told = run_of(work)
    run = _find(store, told["run"]) if told else None
    return run.info.run_id if run is not None and run.info.lifecycle_stage == "active" else None


def _find(store: Store, run: str) -> "Run | None":
    from mlflow.exceptions import MlflowException

    try:
        return store.client.get_run(run)
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise


def _create(store: Store, name: str, tags: Mapping[str, str]) -> str:
    made = store.client.create_run(store.experiment, run_name=name, tags=_clean(tags))
    return str(made.info.run_id)


def _resume(store: Store, run: str, tags: Mapping[str, str]) -> None:
    from mlflow.entities import RunTag

    store.client.update_run(run, status="RUNNING")
    store.client.log_batch(run, tags=[RunTag(k, v) for k, v in _clean(tags).items()])


def _clean(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: redacted(value)[:LONGEST] for key, value in tags.items()}


def _alive() -> dict[str, str]:
    return {PROCESS: process_mark(), HEARTBEAT: str(int(time.time()))}


def _told(record: Mapping[str, Any]) -> dict[str, str]:
    """The provenance record as tags."""
    dirty = record["dirty"]
    tags = {
        "progrl.seed": str(record["seed"]),
        "progrl.configuration": record["configuration"],
        "progrl.dirty": "yes" if dirty else "no",
        "progrl.dirty_files": ", ".join(dirty),
        "progrl.diff": record["diff"] or "",
        "progrl.dvc_lock": record["dvc_lock"] or "",
        "progrl.versions": canonical(record["versions"]),
        "mlflow.source.type": "LOCAL",
        "mlflow.source.name": "progrl",
    }
    if record["commit"]:
        tags["mlflow.source.git.commit"] = record["commit"]
    return tags


def _log_parameters(store: Store, run: str, tree: Mapping[str, Any]) -> None:
    from mlflow.entities import Param

    flat = [Param(key, value) for key, value in sorted(flattened(tree).items())]
    for start in range(0, len(flat), 100):
        store.client.log_batch(run, params=flat[start : start + 100])


def flattened(tree: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """`{"a": {"b": 1}}` as `{"a.b": "1"}`, without anything private."""
    flat: dict[str, str] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            flat |= flattened(value, f"{name}.")
        elif is_private(str(key)):
            flat[name] = HIDDEN
        else:
            text = value if isinstance(value, str) else canonical(value)
            flat[name] = redacted(text)[:LONGEST]
    return flat


def _log_data(store: Store, run: str, root: Path, names: tuple[str, ...]) -> None:
    """Note what the stage reads, by the hashes that DVC knows it by."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    used = [
        DatasetInput(
            Dataset(name, data_hash(root / name), "dvc", canonical({"path": name})),
            [InputTag("mlflow.data.context", "input")],
        )
        for name in names
        if (root / name).exists()
    ]
    if used:
        store.client.log_inputs(run, datasets=used)
