"""Runs a stage's process: its lines are passed on, and it never outlives the flow."""

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.leash import GRACE, end_group

KEPT = 400
"""Lines of the output that are kept: enough for a long traceback."""


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        code: exit code; 128 + n after signal n.
        lines: the last of its output.
    """

    code: int
    lines: Sequence[str]


def run(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    tell: Callable[[str], None],
) -> Ended:
    """Run a command in a folder, passing each line of its output on as it comes.

    If the caller is interrupted, or dies, the command and all its children are ended too: SIGTERM
    first, SIGKILL for what is left.

    Args:
        tell: called from a thread.
    """
    lines: deque[str] = deque(maxlen=KEPT)
    leash = subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).with_name("leash.py")), *command],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    reader = threading.Thread(target=_pass_on, args=(leash, lines, tell), daemon=True)
    reader.start()
    try:
        leash.wait()
    finally:
        if leash.stdin is not None:
            leash.stdin.close()
        _await(leash)
        reader.join(GRACE)
    code = leash.returncode
    return Ended(code if code >= 0 else 128 - code, tuple(lines))


def _pass_on(
    leash: "subprocess.Popen[str]", lines: deque[str], tell: Callable[[str], None]
) -> None:
    for line in leash.stdout or ():
        lines.append(line.rstrip())
        tell(line.rstrip())


def _await(leash: "subprocess.Popen[str]") -> None:
    """Wait for the leash, whose input is closed; if it was killed itself, do its work."""
    try:
        leash.wait(GRACE + 10)
    except subprocess.TimeoutExpired:
        leash.kill()
        leash.wait()
    if leash.returncode < 0:
        end_group(leash.pid)
