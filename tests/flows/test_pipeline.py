"""Flows, DVC, MLflow and the registry together, over stages that do their work in no time."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from progrl.config import load_config
from progrl.stages import NAMES
from progrl.tracking import zombie_runs
from progrl.tracking.store import open_store
from tests.flows.toys import PAUSE, STEPS, call, environment, git, make_project

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A toy project whose pipeline has run once."""
    folder = tmp_path_factory.mktemp("toy")
    make_project(folder)
    (folder / "first.txt").write_text(call(folder, "flows.pipeline"))
    yield folder


def _set(project: Path, key: str, value: str) -> None:
    path = project / "params.yaml"
    path.write_text(re.sub(rf"(?m)^(  {key}:) .*$", rf"\1 {value}", path.read_text(), count=1))


def _runs(project: Path) -> list[Any]:
    store = open_store(project, "progrl")
    return list(store.client.search_runs([store.experiment]))


def _states(said: str) -> dict[str, str]:
    return dict(re.findall(r"Task run '(\w+)' - Finished in state (\w+)", said))


def _start(project: Path) -> "subprocess.Popen[bytes]":
    """A pipeline in the middle of stage grpo."""
    flow = subprocess.Popen(
        [sys.executable, "-m", "flows.pipeline"],
        cwd=project,
        env={**environment(project), PAUSE: "0.4"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    started = time.monotonic()
    while not list(project.glob("runs/grpo/*/rows.jsonl")):
        assert flow.poll() is None and time.monotonic() - started < 120
        time.sleep(0.1)
    time.sleep(1)
    return flow


def alive(project: Path) -> list[str]:
    """Processes that work in the project: flows, stages, servers."""
    alive = []
    for process in psutil.process_iter():
        try:
            inside = Path(process.cwd()).is_relative_to(project)
            if inside and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(" ".join(process.cmdline()))
        except (psutil.Error, OSError):
            continue
    return alive


def _none_alive(project: Path) -> bool:
    deadline = time.monotonic() + 30
    while alive(project) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not alive(project)


def test_a_first_run_ends_with_the_table_and_a_champion(project: Path) -> None:
    said = (project / "first.txt").read_text()
    done = dict.fromkeys(NAMES, "Completed")
    assert _states(said).items() >= done.items()
    table = said[said.index("benchmark  agent") :]
    for agent in ("do nothing", "expert", "untrained", "SFT", "GRPO", "GRPO − SFT"):
        assert re.search(rf"^retail +{agent} +[+\d]", table, re.M), agent
    assert f"Report:  {project}/reports/index.html" in table
    assert re.search(r"^MLflow:  http://127.0.0.1:\d+/#/experiments/\d+/runs/\w{32} ", table, re.M)
    assert "Model:   models:/progrl-agent/1\n" in table
    assert "is better than the SFT model: +0.400" in table


def test_stages_are_children_of_one_pipeline(project: Path) -> None:
    runs = _runs(project)
    parents = [run for run in runs if run.data.tags["progrl.kind"] == "pipeline"]
    assert len(parents) == 1
    children = [run for run in runs if run.data.tags["progrl.kind"] == "stage"]
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parents[0].info.run_id}
    assert all(run.info.status == "FINISHED" for run in runs)
    commit = git(project, "rev-parse", "HEAD").strip()
    assert {run.data.tags["mlflow.source.git.commit"] for run in runs} == {commit}
    grpo = next(run for run in children if run.info.run_name == "grpo")
    assert grpo.data.params["grpo.steps"] and grpo.data.params["horizon.kind"] == "adaptive"
    lock = (project / "dvc.lock").read_text()
    used = {one.dataset.name: one.dataset.digest for one in grpo.inputs.dataset_inputs}
    assert set(used) == {"data/tasks", "data/users", "models/untrained", "models/sft"}
    assert all(f"md5: {digest}\n" in lock for digest in used.values())


def test_the_registered_model_can_be_fetched_with_its_card(project: Path, tmp_path: Path) -> None:
    from mlflow.artifacts import download_artifacts

    open_store(project, "progrl")
    folder = Path(download_artifacts("models:/progrl-agent@champion", dst_path=str(tmp_path)))
    assert "grpo of" in (folder / "config.json").read_text()
    assert "# Agent for conversations" in (folder / "README.md").read_text()
    record = json.loads((folder / "record.json").read_text())
    assert record["commit"] == git(project, "rev-parse", "HEAD").strip()
    assert record["dirty"] == [] and list(record["files"]) == ["config.json"]
    assert json.loads((folder / "evaluation" / "results.json").read_text())["retail"]["grpo"]


def test_a_second_run_does_nothing_and_says_so(project: Path) -> None:
    before = len(_runs(project))
    said = call(project, "flows.pipeline")
    done = dict.fromkeys(("generate", "sft", "grpo", "evaluate", "report"), "Cached")
    assert _states(said).items() >= done.items()
    assert "is champion already" in said
    assert len(_runs(project)) == before
    start = time.monotonic()
    assert "up to date" in call(project, "dvc", "repro")
    assert time.monotonic() - start < 6


def test_a_changed_key_reruns_what_depends_on_it_and_uncommitted_it_makes_no_champion(
    project: Path,
) -> None:
    _set(project, "probe_every", "11")
    try:
        said = call(project, "flows.pipeline")
    finally:
        git(project, "checkout", "params.yaml")
    states = _states(said)
    assert (states["generate"], states["sft"], states["grpo"]) == ("Cached", "Cached", "Completed")
    assert "The champion stays: sources, parameters or configurations are not committed" in said
    assert "params.yaml" in said[said.index("not committed") :]


def test_a_wrong_key_is_one_message_and_exit_code_2(project: Path) -> None:
    _set(project, "probe_every", "none")
    try:
        said = call(project, "flows.pipeline", code=2)
    finally:
        git(project, "checkout", "params.yaml")
    assert said.count("grpo.probe_every") == 1 and "Traceback" not in said
    assert "server" not in said  # none was started for it


def test_the_main_path_takes_no_overrides(project: Path) -> None:
    said = call(project, "flows.pipeline", "--set", "grpo.steps=30", code=2)
    assert "takes no overrides (grpo.steps=30)" in said and "Traceback" not in said


def test_another_profile_has_a_folder_of_its_own(project: Path) -> None:
    said = call(project, "flows.generate", "--profile", "tiny", "--set", "generate.train_tasks=400")
    assert _states(said)["generate"] == "Completed"
    assert (project / "outputs" / "tiny" / "metrics" / "generate.json").exists()
    again = call(
        project, "flows.generate", "--profile", "tiny", "--set", "generate.train_tasks=400"
    )
    assert _states(again)["generate"] == "Cached"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_pipeline_leaves_nothing_and_resumes_exactly(
    project: Path, number: signal.Signals
) -> None:
    _set(project, "max_fault_share", f"0.{20 + number}")
    git(project, "commit", "-qam", "Another")
    for path in project.glob("runs/grpo/*/rows.jsonl"):
        path.unlink()
    flow = _start(project)
    os.kill(flow.pid, number)
    assert flow.wait(60) != 0
    assert _none_alive(project), alive(project)
    grpo = [run for run in _runs(project) if run.info.run_name == "grpo"]
    killed = max(grpo, key=lambda run: run.info.start_time)
    assert killed.info.status == "KILLED"
    zombies = zombie_runs(project, load_config(project / "params.yaml"))
    assert [zombie.name for zombie in zombies] == ([] if number == signal.SIGTERM else ["pipeline"])

    said = call(project, "flows.pipeline")
    assert _states(said)["grpo"] == "Completed"
    assert zombie_runs(project, load_config(project / "params.yaml")) == []
    client = open_store(project, "progrl").client
    assert client.get_run(killed.info.run_id).info.status == "FINISHED"
    for key in ("grpo/success", "time/rollout"):
        history = client.get_metric_history(killed.info.run_id, key)
        assert sorted(metric.step for metric in history) == list(range(STEPS))
