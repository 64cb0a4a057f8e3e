"""Stages run as processes that never outlive the flow."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tasks.process import run

# Notes its own pid and that of a grandchild, then waits.
FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}")
time.sleep(60)
"""

# Runs FAMILY by `run`, as a flow does.
PARENT = """
import sys
from pathlib import Path
from tasks.process import run
run([sys.executable, "-c", sys.argv[1], sys.argv[2]], Path(), {}, print)
"""


def _pids(path: Path) -> list[int]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if path.exists() and len(words := path.read_text().split()) == 2:
            return [int(word) for word in words]
        time.sleep(0.02)
    raise AssertionError("the processes did not start")


def _gone(pids: list[int], seconds: float = 20) -> bool:
    def alive(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    deadline = time.monotonic() + seconds
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_lines_and_exit_code_are_passed_on() -> None:
    told: list[str] = []
    code = "import sys; print('one'); print('two', file=sys.stderr); sys.exit(3)"
    ended = run([sys.executable, "-c", code], Path(), {}, told.append)
    assert ended.code == 3
    assert told == list(ended.lines) == ["one", "two"]


def test_environment_reaches_the_command() -> None:
    code = "import os; print(os.environ['SAID'])"
    assert run([sys.executable, "-c", code], Path(), {"SAID": "so"}, print).lines == ("so",)


def test_a_command_killed_by_a_signal_is_told_as_such() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run([sys.executable, "-c", code], Path(), {}, print).code == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_a_killed_flow(
    number: signal.Signals, tmp_path: Path, root: Path
) -> None:
    note = tmp_path / "pids"
    flow = subprocess.Popen([sys.executable, "-c", PARENT, FAMILY, str(note)], cwd=root)
    pids = _pids(note)
    os.kill(flow.pid, number)
    flow.wait(20)
    assert _gone(pids)


def test_what_a_command_leaves_behind_is_ended(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    code = FAMILY.rpartition("time")[0]
    assert run([sys.executable, "-c", code, str(note)], Path(), {}, print).code == 0
    assert _gone(_pids(note), seconds=0.5)


def test_a_killed_leash_leaves_nothing(tmp_path: Path, root: Path) -> None:
    note = tmp_path / "pids"
    flow = subprocess.Popen([sys.executable, "-c", PARENT, FAMILY, str(note)], cwd=root)
    pids = _pids(note)
    leash = psutil.Process(pids[0]).parent()
    assert leash is not None and leash.pid != flow.pid
    leash.kill()
    assert flow.wait(20) == 0
    assert _gone(pids)
