"""Running the command line, in process and in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from progrl.cli.app import app

Run = Callable[..., Result]
Start = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def same_environment() -> Iterator[None]:
    """Commands set variables for the libraries they use; they are undone."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `progrl ARGS` in this process, in the repository."""
    monkeypatch.chdir(root)

    def call(*args: str, typed: str | None = None) -> Result:
        return CliRunner().invoke(app, list(args), input=typed, prog_name="progrl")

    return call


@pytest.fixture
def start(root: Path) -> Start:
    """Run `progrl ARGS` in a process of its own, in the repository or in `folder`."""

    def call(*args: str, folder: Path = root) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "progrl.cli", *args],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return call
