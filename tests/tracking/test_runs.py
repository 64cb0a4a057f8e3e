"""Runs of stages: who their parent is, how they end, that a resume doubles and loses nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from progrl.config import Config
from progrl.errors import ProgrlError, TrackingError
from progrl.files import write_json
from progrl.stages.base import Context, Metrics, run_stage
from progrl.tracking import end_zombies, open_pipeline, open_run, page, run_of, zombie_runs
from progrl.tracking.recorder import MlflowRecorder
from progrl.tracking.runs import PIPELINE, flattened
from progrl.tracking.store import Store, open_store
from tests.tracking.conftest import make_stage

STEPS = 7


def _runs(store: Store) -> dict[str, Any]:
    return {run.info.run_name: run for run in store.client.search_runs([store.experiment])}


def _told(store: Store, run: str, key: str) -> list[tuple[int, float]]:
    return sorted((m.step, m.value) for m in store.client.get_metric_history(run, key))


def _training(context: Context) -> Metrics:
    """Resumes at its checkpoint, every third step; `stop` says before which step it fails."""
    checkpoint = context.work / "step.json"
    stop = context.work / "stop.json"
    first = json.loads(checkpoint.read_text()) if checkpoint.exists() else 0
    last = json.loads(stop.read_text()) if stop.exists() else STEPS
    for step in range(first, last):
        context.recorder.metrics({"loss": 1 / (step + 1), "time": time.time()}, step)
        if step % 3 == 2:
            write_json(checkpoint, step + 1)
    if last < STEPS:
        stop.unlink()
        raise OSError("the power went off")
    return {"loss": 0.5}


def _work(project: Path) -> Path:
    return next((project / "runs" / "sft").iterdir())


def test_a_stage_is_the_child_of_a_pipeline(project: Path, config: Config, store: Store) -> None:
    run_stage(make_stage(_training), config, project, project, open_run=open_run)
    runs = _runs(store)
    child, parent = runs["sft"], runs["pipeline"]
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert child.info.status == parent.info.status == "FINISHED"
    assert child.data.params["sft.schedule.kind"] == "trapezoid"
    assert child.data.params["seed"] == "1"
    assert parent.data.params["memory.capacity"] == "10000"
    assert child.data.tags["progrl.configuration"] == parent.data.tags["progrl.configuration"]
    assert child.data.metrics["final/loss"] == 0.5
    told = run_of(_work(project))
    assert told == {
        "run": child.info.run_id,
        "experiment": store.experiment,
        "parent": parent.info.run_id,
    }
    assert child.info.run_id in page(project, store.experiment, child.info.run_id)


def test_stages_of_a_configuration_share_a_pipeline(
    project: Path, config: Config, store: Store
) -> None:
    run_stage(make_stage(_training), config, project, project, open_run=open_run)
    run_stage(make_stage(_training, "grpo"), config, project, project, open_run=open_run)
    runs = _runs(store)
    assert len(runs) == 3
    parents = {runs[name].data.tags["mlflow.parentRunId"] for name in ("sft", "grpo")}
    assert parents == {runs["pipeline"].info.run_id}


def test_a_flow_names_the_pipeline(
    project: Path, config: Config, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_pipeline(project, config, project / "outputs" / "other") as pipeline:
        assert pipeline.run is not None
        monkeypatch.setenv(PIPELINE, pipeline.run)
        run_stage(make_stage(_training), config, project, project, open_run=open_run)
    runs = _runs(store)
    assert sorted(runs) == ["pipeline outputs/other", "sft"]
    assert runs["sft"].data.tags["mlflow.parentRunId"] == pipeline.run
    monkeypatch.setenv(PIPELINE, "0" * 32)
    with pytest.raises(TrackingError, match="no such run"):
        run_stage(make_stage(_training), config, project, project, open_run=open_run)


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_a_resumed_stage_continues_its_run_without_doubling_a_step(
    project: Path, config: Config, store: Store, stop: int
) -> None:
    stage = make_stage(_training)

    def failing(context: Context) -> Metrics:
        write_json(context.work / "stop.json", stop)
        return _training(context)

    with pytest.raises(OSError, match="power"):
        run_stage(make_stage(failing), config, project, project, open_run=open_run)
    first = _runs(store)["sft"]
    assert first.info.status == "FAILED"
    run_stage(stage, config, project, project, open_run=open_run)
    again = _runs(store)["sft"]
    assert (again.info.run_id, again.info.status) == (first.info.run_id, "FINISHED")
    losses = [(step, pytest.approx(1 / (step + 1))) for step in range(STEPS)]
    assert _told(store, first.info.run_id, "loss") == losses
    assert [step for step, _ in _told(store, first.info.run_id, "time")] == list(range(STEPS))


def test_what_was_told_but_not_sent_is_sent_after_a_kill(
    project: Path, config: Config, store: Store
) -> None:
    """As after `kill -9`: the journal has what the store lacks, and its last line is torn."""
    run = store.client.create_run(store.experiment).info.run_id
    journal = project / "metrics.journal"
    whole = [["loss", 0.5, 0, 1000], ["loss", 0.25, 1, 2000]]
    journal.write_text("".join(json.dumps(entry) + "\n" for entry in whole) + '["loss", 0.1')
    store.client.log_metric(run, "loss", 0.5, timestamp=1000, step=0)
    recorder = MlflowRecorder(store.client, run, journal)
    recorder.metrics({"loss": 0.25}, 1)
    recorder.metrics({"loss": 0.125}, 2)
    recorder.close("FINISHED")
    assert _told(store, run, "loss") == [(0, 0.5), (1, 0.25), (2, 0.125)]


def test_numbers_that_are_none_are_kept_once(project: Path, config: Config, store: Store) -> None:
    run = store.client.create_run(store.experiment).info.run_id
    for _ in range(2):
        recorder = MlflowRecorder(store.client, run, project / "metrics.journal")
        recorder.metrics({"loss": float("nan"), "norm": float("inf")}, 3)
        recorder.close("FINISHED")
    assert [step for step, _ in _told(store, run, "loss")] == [3]
    assert [step for step, _ in _told(store, run, "norm")] == [3]


def test_secrets_are_not_recorded(
    project: Path, config: Config, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATOR_API_KEY", "abc-very-private")
    options = {"retail": {"api_key": "plain", "note": "uses abc-very-private", "max_tokens": 5}}
    open_to = config.model_copy(
        update={"domains": config.domains.model_copy(update={"options": options})}
    )

    def telling(context: Context) -> Metrics:
        context.recorder.tags({"said": "abc-very-private"})
        return {}

    run_stage(make_stage(telling), open_to, project, project, open_run=open_run)
    runs = _runs(store)
    recorded = json.dumps([[run.data.params, run.data.tags] for run in runs.values()])
    assert "private" not in recorded and "plain" not in recorded
    assert runs["pipeline"].data.params["domains.options.retail.api_key"] == "(hidden)"
    assert runs["pipeline"].data.params["domains.options.retail.max_tokens"] == "5"


def test_parameters_are_flattened() -> None:
    tree = {"a": {"b": {"c": 1}, "d": [1, "x"]}, "e": None, "f": {}, "token": "t"}
    assert flattened(tree) == {
        "a.b.c": "1", "a.d": '[1,"x"]', "e": "null", "f": "{}", "token": "(hidden)",
    }  # fmt: skip


def test_artifacts_are_kept(project: Path, config: Config, store: Store) -> None:
    def keeping(context: Context) -> Metrics:
        write_json(context.work / "told.json", {"a": 1})
        context.recorder.artifact(context.work / "told.json")
        return {}

    run_stage(make_stage(keeping), config, project, project, open_run=open_run)
    run = _runs(store)["sft"].info.run_id
    assert [found.path for found in store.client.list_artifacts(run)] == ["told.json"]
    assert list((project / ".state" / "mlartifacts").rglob("told.json"))


def test_nothing_is_recorded_where_that_is_configured(
    project: Path, config: Config, root: Path
) -> None:
    from progrl.config import load_config

    silent = load_config(project / "params.yaml", overrides=["tracking={kind: none}"])
    run_stage(make_stage(_training), silent, project, project, open_run=open_run)
    assert not (project / ".state").exists()
    assert zombie_runs(project, silent) == end_zombies(project, silent) == []


def test_a_store_that_is_away_is_told_without_its_password(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:hunter2@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(TrackingError, match=r"http://127.0.0.1:9 cannot be reached") as caught:
        open_store(project, "progrl")
    assert "hunter2" not in str(caught.value)


STAGE = """
import sys, time
from pathlib import Path
from progrl.cli import main, stages
from tests.tracking.conftest import make_stage

def run(context):
    context.recorder.metrics({"loss": 1.0}, 0)
    Path("started").touch()
    time.sleep(60)
    return {}

stages.find_stage = lambda name: make_stage(run)
sys.argv = ["progrl", "stage", "sft"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_stopped_stage_ends_its_run(
    project: Path, config: Config, store: Store, number: signal.Signals
) -> None:
    """By itself after SIGTERM and Ctrl-C; after `kill -9` when the next run sweeps."""
    process = subprocess.Popen(
        [sys.executable, "-c", STAGE], cwd=project, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not (project / "started").exists() and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.05)
    assert zombie_runs(project, config) == []
    os.kill(process.pid, number)
    process.wait(30)
    if number == signal.SIGKILL:
        assert {run.info.status for run in _runs(store).values()} == {"RUNNING"}
        assert sorted(zombie.name for zombie in zombie_runs(project, config)) == ["pipeline", "sft"]
        end_zombies(project, config)
    assert {run.info.status for run in _runs(store).values()} == {"KILLED"}
    assert zombie_runs(project, config) == []


def test_a_silent_run_of_another_machine_is_a_zombie(
    project: Path, config: Config, store: Store
) -> None:
    for name, last in (("old", time.time() - 7200), ("new", time.time())):
        tags = {"progrl.process": "elsewhere:1:1", "progrl.heartbeat": str(int(last))}
        store.client.create_run(store.experiment, run_name=name, tags=tags)
    store.client.create_run(store.experiment, run_name="not ours")
    assert [zombie.name for zombie in zombie_runs(project, config)] == ["old"]


def test_a_user_error_is_passed_on_and_the_run_fails(
    project: Path, config: Config, store: Store
) -> None:
    def wrong(context: Context) -> Metrics:
        raise ProgrlError("mend this")

    with pytest.raises(ProgrlError, match="mend this"):
        run_stage(make_stage(wrong), config, project, project, open_run=open_run)
    assert _runs(store)["sft"].info.status == "FAILED"


def test_a_project_does_not_open_the_store_of_the_one_before(store: Store, tmp_path: Path) -> None:
    other = open_store(tmp_path / "other", "progrl")
    assert other.uri != store.uri
    assert other.client.search_runs([other.experiment]) == []
    assert "MLFLOW_TRACKING_URI" not in os.environ
