"""Stages in processes that a launcher has started, as on several machines or devices."""

import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from progrl.cli.app import app
from tests.stages.conftest import EASY, finish, line, run
from tests.stages.test_kill import Copy, assert_same, rows
from tests.stages.test_processes import TWO, close

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2")
SFT = ("models/untrained", "models/sft", "metrics/sft.jsonl")
FEW = "sft.steps=20"


def launch(name: str, root: Path, launcher: Sequence[str], *more: str) -> tuple[int, str, str]:
    """Exit code and what was said, to programs and to people."""
    command = [sys.executable, *launcher, "-m", "progrl.cli", *line(name, root, *EASY, *more)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=400)
    return done.returncode, done.stdout, done.stderr


def accelerate(root: Path, how: str) -> list[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = root / "configs" / "accelerate" / f"{how}.yaml"
    module = ("-m", "accelerate.commands.launch", "--config_file", str(file))
    return [*module, "--num_processes", "2", "--main_process_port", str(port)]


@pytest.mark.slow
def test_torchrun_gives_what_the_stages_own_processes_give(copy: Copy, tmp_path: Path) -> None:
    own, launched = copy("own", "data"), copy("launched", "data")
    finish("sft", own, tmp_path / "own.log", FEW, TWO)
    code, result, said = launch("sft", launched, TORCHRUN, FEW, TWO)
    assert code == 0, said
    assert result.count('"stage": "sft"') == 1  # of the leading process alone
    assert_same(own, launched, *SFT)
    assert (launched / "runs/sft").exists()
    assert len(list((launched / "runs/sft").glob("*/done.json"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("how", ["ddp", "fsdp"])
def test_accelerates_configurations_train_alike(
    how: str, copy: Copy, tmp_path: Path, root: Path
) -> None:
    own, launched = copy("own", "data"), copy("launched", "data")
    finish("sft", own, tmp_path / "own.log", FEW, TWO)
    code, _, said = launch("sft", launched, accelerate(root, how), FEW, TWO)
    assert code == 0, said
    close(rows(own, "sft"), rows(launched, "sft"), "loss", "gradient_norm")


def test_another_number_of_processes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "0")
    refused = run("sft", tmp_path, TWO)
    assert refused.exit_code == 2
    assert "processes: 2, but a launcher has started 4" in refused.output


def test_a_whole_run_is_no_launchers_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    refused = CliRunner().invoke(app, ["run", "--profile", "tiny", "--output", str(tmp_path)])
    assert refused.exit_code == 2
    assert "one stage after another" in refused.output


def test_what_is_not_divided_is_the_leading_processs_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    followed = run("generate", tmp_path, TWO)
    assert (followed.exit_code, followed.output) == (0, "")
    assert list(tmp_path.iterdir()) == []
