"""A sweep as a whole, over stages that do their work in no time: failed, killed, resumed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from progrl.tracking.store import open_store
from tests.flows.test_pipeline import alive
from tests.flows.toys import FAIL, PAUSE, call, environment, make_project, table

pytestmark = pytest.mark.slow

SWEEP = ("--profile", "tiny", "--seeds", "1", "--variants")
TRACKED = ("fixed_horizon", "--set", "tracking={kind: mlflow, experiment: sweeps, model: agent}")
BOTH = "fixed_horizon,constant_lr"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("toy")
    make_project(folder)
    yield folder


def ablate(project: Path, name: str, *more: str, **how: Any) -> str:
    return call(project, "flows.ablate", "--name", name, *SWEEP, *more, **how)


def states(said: str) -> dict[str, str]:
    return dict(re.findall(r"Task run '([^']+)' - Finished in state (\w+)", said))


def test_a_failing_cell_fails_alone_and_is_made_good_later(project: Path) -> None:
    said = ablate(project, "failing", BOTH, code=2, extra=[f"{FAIL}=fixed"])
    assert states(said) == {
        "seed 1": "Completed",
        "full of seed 1": "Completed",
        "constant_lr of seed 1": "Completed",
        "fixed_horizon of seed 1": "Failed",
    }
    assert "fixed_horizon of seed 1: A toy that was told to fail." in said
    found = table(project, "failing")["variants"]
    assert found["constant_lr"]["seeds"] == found["full"]["seeds"] == [1]
    assert found["fixed_horizon"]["seeds"] == []
    assert "told to fail" in found["fixed_horizon"]["failed"]["1"]

    said = ablate(project, "failing", BOTH)
    assert {n for n, state in states(said).items() if state == "Cached"} == {
        "seed 1", "full of seed 1", "constant_lr of seed 1"
    }  # fmt: skip
    assert table(project, "failing")["variants"]["fixed_horizon"]["seeds"] == [1]


def test_a_cell_that_is_gone_or_broken_is_made_again_and_no_other(project: Path) -> None:
    """After the test before."""
    before = table(project, "failing")
    cell = project / "outputs" / "sweeps" / "failing" / "seed-1" / "constant_lr"
    breaks: list[Callable[[], object]] = [
        lambda: shutil.rmtree(cell),
        lambda: (cell / "models" / "grpo" / "config.json").write_text("{}"),
        lambda: (cell / "evaluation" / "results.json").unlink(),
    ]
    for broken in breaks:
        broken()
        ended = states(ablate(project, "failing", BOTH))
        assert {name for name, state in ended.items() if state != "Cached"} == {
            "constant_lr of seed 1"
        }
        assert ended["constant_lr of seed 1"] == "Completed"
        assert table(project, "failing") == before


def test_a_wrong_word_is_one_message_before_anything_starts(project: Path) -> None:
    for more, told in (
        (("no_users",), "did you mean 'no_user'?"),
        (("full", "--set", "grpo.stepz=3"), "grpo.stepz: unknown key"),
    ):
        said = ablate(project, "wrong", *more, code=2)
        assert said.count(told) == 1 and "server" not in said and "Traceback" not in said
    assert not (project / "outputs" / "sweeps" / "wrong").exists()


def test_a_sweep_killed_twice_and_resumed_gives_the_same_table(project: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        _kill(project, number)
    ablate(project, "killed", *TRACKED, "--workers", "2")
    ablate(project, "whole", *TRACKED)
    assert table(project, "killed") == table(project, "whole")


def _kill(project: Path, number: signal.Signals) -> None:
    """End the sweep in the middle of a cell; nothing of it may go on."""
    flow = subprocess.Popen(
        [sys.executable, "-m", "flows.ablate", "--name", "killed", *SWEEP, *TRACKED],
        cwd=project,
        env={**environment(project), PAUSE: "0.4"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    folder = project / "outputs" / "sweeps" / "killed"
    before = len(list(folder.glob("*/*/runs/grpo/*/rows.jsonl")))
    started = time.monotonic()
    while len(list(folder.glob("*/*/runs/grpo/*/rows.jsonl"))) == before:
        assert flow.poll() is None and time.monotonic() - started < 200
        time.sleep(0.1)
    os.kill(flow.pid, number)
    assert flow.wait(60) != 0
    deadline = time.monotonic() + 30
    while alive(project) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive(project) == []


def test_each_cell_is_a_child_of_the_sweeps_run(project: Path) -> None:
    """After the test before."""
    store = open_store(project, "sweeps")
    runs = {run.info.run_id: run for run in store.client.search_runs([store.experiment])}
    sweep = next(
        r for r in runs.values() if r.data.tags.get("progrl.root") == "outputs/sweeps/whole"
    )
    parts = [r for r in runs.values() if _parent(r) == sweep.info.run_id]
    folder = "outputs/sweeps/whole/seed-1"
    assert {run.data.tags["progrl.root"] for run in parts} == {
        f"{folder}/{name}" for name in ("base", "full", "fixed_horizon")
    }
    for part in parts:
        stages = {r.info.run_name for r in runs.values() if _parent(r) == part.info.run_id}
        base = part.data.tags["progrl.root"].endswith("base")
        assert stages == ({"generate", "sft"} if base else {"grpo", "evaluate"})
    assert {run.info.status for run in runs.values()} == {"FINISHED"}


def _parent(run: Any) -> str | None:
    found: str | None = run.data.tags.get("mlflow.parentRunId")
    return found
