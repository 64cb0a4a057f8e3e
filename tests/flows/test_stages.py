"""What the flows make of a process's end, and what they are asked for."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from progrl.config import load_config
from progrl.errors import ConfigurationError
from progrl.stages import NAMES, find_stage
from tasks.environment import variables
from tasks.job import MAIN, make_job
from tasks.process import Ended
from tasks.stage import message, outcome

LOG = "2026-01-02 03:04:05,678 INFO progrl.stages.base: stage sft starts"


@pytest.mark.parametrize(
    "line",
    ["Stage 'sft' didn't change, skipping", "Stage 'sft' is cached - skipping run, checking"],
)
def test_what_dvc_skips_is_unchanged(line: str) -> None:
    assert outcome(Ended(0, [line])).unchanged
    assert not outcome(Ended(0, ["Running stage 'sft':", LOG])).unchanged


def test_the_stages_own_exit_code_is_found_behind_dvcs() -> None:
    said = [
        "Running stage 'sft':",
        "> progrl stage sft",
        LOG,
        "data/x.jsonl, line 3: not valid JSON.",
        "Mend it.",
        "ERROR: failed to reproduce 'sft': failed to run: progrl stage sft, exited with 2",
    ]
    found = outcome(Ended(255, said))
    assert (found.code, found.retry) == (2, False)
    assert found.message == "data/x.jsonl, line 3: not valid JSON.\nMend it."


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: '/project/data/tasks' is busy, it is being blocked by:",
        "ERROR: Unable to acquire lock. Most likely another DVC process is running",
        "The MLflow store http://127.0.0.1:5005 cannot be reached: it said nothing.",
    ],
)
def test_what_may_pass_is_tried_again(line: str) -> None:
    assert outcome(Ended(255, [LOG, line])).retry


@pytest.mark.parametrize(
    "line", ["Stage sft is already running (lock x).", "The MLflow store x refused: a wrong name."]
)
def test_what_the_user_must_mend_is_not_tried_again(line: str) -> None:
    found = outcome(Ended(2, [LOG, line]))
    assert (found.retry, found.message) == (False, line)


def test_a_traceback_is_told_by_its_last_line() -> None:
    lines = [LOG, "Traceback (most recent call last):", "  File x", "ValueError: so it is", ""]
    assert message(lines) == (
        "a fault of the program's own, whose traceback is in the log: ValueError: so it is"
    )
    assert message([LOG, "sft: 3/10 (30%) after 4 s"]) == "it ended without a word"


def test_the_main_path_is_the_project_itself(root: Path) -> None:
    job = make_job(MAIN)
    assert job.main and job.root == root
    assert job.config == load_config(root / "params.yaml")
    with pytest.raises(ConfigurationError, match="takes no overrides"):
        make_job(MAIN, ["seed=3"])


def test_other_profiles_have_folders_of_their_own(root: Path) -> None:
    job = make_job("tiny", ["seed=3"])
    assert not job.main and job.root == root / "outputs" / "tiny"
    assert job.config.seed == 3
    with pytest.raises(ConfigurationError, match="No profile 'none'"):
        make_job("none")


def test_everything_stays_local(tmp_path: Path) -> None:
    found = variables(tmp_path)
    assert Path(found["PREFECT_HOME"]).is_absolute()
    assert found["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert found["DO_NOT_TRACK"] == found["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert found["DVC_NO_ANALYTICS"] == "1"


def _dvc(root: Path) -> dict[str, dict[str, Any]]:
    stages: dict[str, dict[str, Any]] = yaml.safe_load((root / "dvc.yaml").read_text())["stages"]
    return stages


def test_dvc_has_the_stages_but_the_last(root: Path) -> None:
    assert tuple(_dvc(root)) == NAMES[:-1]
    assert NAMES[-1] == "register"


@pytest.mark.parametrize("name", NAMES[:-1])
def test_dvc_agrees_with_the_stages(root: Path, name: str) -> None:
    stage, told = find_stage(name), _dvc(root)[name]
    assert told["cmd"] == f"PATH=.venv/bin:$PATH progrl stage {name}"
    shared = {f"progrl/{path.name}" for path in (root / "progrl").glob("*.py")}
    packages = {f"progrl/{package}" for package in stage.packages}
    assert set(told["deps"]) == {*stage.inputs, *shared, *packages}
    assert all((root / path).exists() for path in shared | packages)
    assert tuple(told["params"]) == stage.sections
    outputs = [*told.get("outs", []), *told.get("metrics", [])]
    names = [next(iter(out)) if isinstance(out, dict) else out for out in outputs]
    assert sorted(names) == sorted(stage.outputs)
    uncached = {next(iter(out)) for out in outputs if isinstance(out, dict)}
    assert uncached == {name for name in stage.outputs if name.startswith("metrics/")}
    options = [next(iter(out.values())) for out in outputs if isinstance(out, dict)]
    assert all(option == {"cache": False} for option in options)


def test_dvc_tells_nobody(root: Path) -> None:
    settings = (root / ".dvc" / "config").read_text().split()
    assert " ".join(settings) == "[core] analytics = false check_update = false autostage = true"


def test_deployments_name_no_machine(root: Path) -> None:
    text = (root / "prefect.yaml").read_text()
    told = yaml.safe_load(text)
    assert {one["name"] for one in told["deployments"]} == {"cpu", "smollm"}
    for one in told["deployments"]:
        path, function = one["entrypoint"].split(":")
        assert f"def {function}(" in (root / path).read_text()
        assert one["work_pool"]["name"] == "local"
    assert str(root) not in text and "/home/" not in text


def test_asking_what_a_stage_is_loads_nothing_of_what_it_computes_with() -> None:
    code = (
        "import sys; from progrl.stages import NAMES, find_stage; import tasks.stage\n"
        "assert all(find_stage(name).name == name for name in NAMES)\n"
        "print(sorted({'torch', 'transformers', 'faiss', 'mlflow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
