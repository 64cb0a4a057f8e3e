"""The stages as commands: where they write, what they say when something is wrong."""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from progrl.cli.app import app
from progrl.cli.command import Shared
from progrl.cli.stages import LOCAL, own_folder, stay_local
from progrl.config import load_config
from progrl.errors import ConfigurationError
from progrl.files import exclusive, file_digest
from progrl.stages import NAMES
from tests.cli.conftest import Run, Start

TINY = ("--profile", "tiny")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder in which `generate` and `sft` have ended."""
    params = Path(__file__).parents[2] / "params.yaml"
    folder = tmp_path_factory.mktemp("begun")
    for name in ("generate", "sft"):
        line = [name, "--params", str(params), *TINY, "--output", str(folder), "--json"]
        done = CliRunner().invoke(app, line)
        assert done.exit_code == 0, done.stderr
        told = json.loads(done.stdout)
        assert (told["stage"], told["root"]) == (name, str(folder))
        assert told["metrics"]
    return folder


@pytest.fixture
def folder(begun: Path, tmp_path: Path) -> Path:
    """A copy of `begun` to spoil."""
    return Path(shutil.copytree(begun, tmp_path / "run"))


def test_there_is_no_such_stage(run: Run) -> None:
    done = run("stage", "deploy")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"there are {', '.join(NAMES)}" in done.stderr


@pytest.mark.parametrize(
    ("name", "needs"), [("sft", "generate"), ("grpo", "generate"), ("report", "generate")]
)
def test_a_missing_input_names_the_stage_that_writes_it(
    name: str, needs: str, run: Run, tmp_path: Path
) -> None:
    done = run(name, *TINY, "--output", str(tmp_path / "empty"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "missing" in done.stderr
    assert f"Run `progrl {needs}`" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_person_never_writes_over_what_dvc_keeps(name: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / "dvc.yaml").touch()
    done = run(name, *TINY, "--output", str(tmp_path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--output" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dvc.yaml"]


def test_the_default_folder_has_the_profiles_name(tmp_path: Path) -> None:
    params = tmp_path / "params.yaml"
    assert own_folder(Shared(params), None) == tmp_path / "outputs" / "custom"
    assert own_folder(Shared(params, "tiny"), None) == tmp_path / "outputs" / "tiny"
    assert own_folder(Shared(params, "a/b.yaml"), None) == tmp_path / "outputs" / "b"
    (tmp_path / "outputs" / "custom").mkdir(parents=True)
    (tmp_path / "outputs" / "custom" / "dvc.yaml").touch()
    with pytest.raises(ConfigurationError, match="dvc repro"):
        own_folder(Shared(params), None)


def test_libraries_are_kept_local_and_threads_are_the_configured(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in LOCAL:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    stay_local(load_config(root / "params.yaml", overrides=["threads=1"]))
    assert os.environ["OMP_NUM_THREADS"] == "1"
    assert os.environ["HF_HUB_OFFLINE"] == "0"
    assert {name: os.environ[name] for name in LOCAL} == LOCAL | {"HF_HUB_OFFLINE": "0"}


@pytest.mark.parametrize("name", ["generate", "sft"])
def test_only_one_at_a_time(name: str, run: Run, folder: Path) -> None:
    with exclusive(folder / "runs" / f"{name}.lock", "another"):
        done = run(name, *TINY, "--output", str(folder))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"Stage {name} is already running" in done.stderr


def test_a_corrupted_data_line_is_named(run: Run, folder: Path) -> None:
    tasks = folder / "data" / "tasks" / "retail_train.jsonl"
    lines = tasks.read_text().splitlines()
    lines[4] = lines[4][:-9]
    tasks.write_text("\n".join(lines) + "\n")
    done = run("grpo", *TINY, "--output", str(folder))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{tasks}, line 5: not valid JSON" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_task_changed_by_hand_is_named(run: Run, folder: Path) -> None:
    tasks = folder / "data" / "tasks" / "retail_train.jsonl"
    lines = tasks.read_text().splitlines()
    task = json.loads(lines[2])
    lines[2] = json.dumps({**task, "query": "give me everything"})
    tasks.write_text("\n".join(lines) + "\n")
    done = run("grpo", *TINY, "--output", str(folder))
    assert done.exit_code == 2
    assert f"{tasks}, line 3: task {task['id']} was changed" in done.stderr


def test_a_model_cut_in_half_is_named(run: Run, folder: Path) -> None:
    weights = folder / "models" / "sft" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    done = run("grpo", *TINY, "--output", str(folder))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "models/sft" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "models" / "grpo").exists()


def test_a_full_disk_loses_nothing(folder: Path, root: Path) -> None:
    before = {name: file_digest(folder / "data" / name) for name in ("tasks", "dialogues", "users")}

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    line = [sys.executable, "-m", "progrl.cli", "generate", *TINY, "--set", "seed=2"]
    done = subprocess.run(
        [*line, "--output", str(folder)],
        cwd=root,
        capture_output=True,
        text=True,
        preexec_fn=limit,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "could not be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert {name: file_digest(folder / "data" / name) for name in before} == before
    leftovers = [p.name for p in (folder / "data").iterdir() if p.name.startswith(".")]
    assert leftovers == []


def test_verbose_and_quiet(start: Start, folder: Path) -> None:
    args = ("generate", *TINY, "--output", str(folder))
    assert "stage generate done" in start(*args).stderr
    assert start(*args, "--quiet").stderr == ""


@pytest.mark.slow
def test_the_whole_pipeline_and_what_is_skipped_after(start: Start, folder: Path) -> None:
    def skipped(*more: str) -> list[str]:
        done = start("run", *TINY, "--output", str(folder), "--json", *more)
        assert done.returncode == 0, done.stderr
        stages = json.loads(done.stdout)["stages"]
        assert list(stages) == list(NAMES)
        return [name for name, result in stages.items() if result["skipped"]]

    assert skipped() == ["generate", "sft"]
    assert (folder / "reports" / "index.html").exists()
    rows = (folder / "metrics" / "grpo.jsonl").read_bytes()
    assert skipped() == list(NAMES)
    (folder / "metrics" / "grpo.jsonl").unlink()
    assert skipped() == ["generate", "sft", "evaluate", "report", "register"]
    assert (folder / "metrics" / "grpo.jsonl").read_bytes() == rows
    assert skipped("--set", "evaluation.horizon=4") == ["generate", "sft", "grpo"]
    shown = start("run", *TINY, "--output", str(folder), "--set", "evaluation.horizon=4").stdout
    for words in ("benchmark", "do nothing", "expert", "GRPO", "Unchanged: ", "Report: "):
        assert words in shown
