"""A full disk costs a run of the command: one message, exit code 2, nothing half-written."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stages.conftest import line

ROOM = 20_000  # bytes that a file may have


def limit() -> None:
    """No file grows past ROOM: writing more fails, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, resource.RLIM_INFINITY))


@pytest.mark.slow
def test_every_stage_says_that_the_disk_is_full(tmp_path: Path) -> None:
    for name in ("generate", "sft", "grpo", "evaluate", "report"):
        command = [sys.executable, "-m", "progrl.cli", *line(name, tmp_path), "--quiet"]
        refused = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True)
        assert refused.returncode == 2, refused.stderr
        assert "could not be written" in refused.stderr
        assert "Traceback" not in refused.stderr
        assert [p for p in tmp_path.rglob("*") if p.name.startswith(".")] == []
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
