"""Stages of the profile `tiny`, made so small and easy that training really moves something."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from progrl.cli.app import app

# At full difficulty so small a model earns nothing, and GRPO would leave it as it was.
EASY = (
    "domains.options.retail.levels=[1]",
    "sft.steps=150",
    "sft.warmup.steps=40",
    "sft.checkpoint_every=20",
    "grpo.steps=10",
    "grpo.checkpoint_every=1",
    "grpo.keep=last",
    "orchestration={kind: hint, top: 2, drop: 0.3, policy: {context: {kind: decay, alpha: 0.7}, "
    "head: {kind: open, describe: 0.5}, width: 32, folds: 3, gold: {steps: 60, batch: 64, "
    "learning_rate: 0.003, weight_decay: 0.1, forget: 0.5}, improvement: {beta: 0.5, "
    "most_weight: 5.0, kl: 0.1, passes: 2, learning_rate: 0.001}}}",
)


def line(name: str, root: Path, *overrides: str) -> list[str]:
    """The arguments of `progrl` that run a stage on `root`."""
    params = Path(__file__).parents[2] / "params.yaml"
    given = [part for override in overrides for part in ("--set", override)]
    return [
        *("stage", name, "--root", str(root), "--params", str(params), "--profile", "tiny"),
        *("--set", "tracking.kind=none"),
        *given,
    ]


def start(name: str, root: Path, log: Path, *overrides: str) -> subprocess.Popen[bytes]:
    """Start a stage with `EASY` in a process of its own, whose messages go to `log`."""
    with log.open("wb") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "progrl.cli", *line(name, root, *EASY, *overrides)],
            stdout=stream,
            stderr=stream,
        )


def run(name: str, root: Path, *overrides: str) -> Result:
    """Run a stage in this process."""
    return CliRunner().invoke(app, line(name, root, *overrides))


def finish(name: str, root: Path, log: Path, *overrides: str) -> str:
    """Run a stage to its end in a process of its own; what it said."""
    code = start(name, root, log, *overrides).wait(timeout=240)
    said = log.read_text()
    assert code == 0, said
    return said


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root in which `generate` and `sft` have ended under `EASY`, never interrupted."""
    root = tmp_path_factory.mktemp("trained")
    for name in ("generate", "sft"):
        finish(name, root, root / f"{name}.log")
    return root


@pytest.fixture
def copy(trained: Path, tmp_path: Path) -> Callable[..., Path]:
    """Copies of `trained`, with the outputs of the named folders and files alone."""

    def make(name: str, *kept: str) -> Path:
        root = tmp_path / name
        for part in kept:
            shutil.copytree(trained / part, root / part)
        return root

    return make
