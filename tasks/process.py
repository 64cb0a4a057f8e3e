"""Runs a stage's process: its lines are passed on, and it never outlives the flow."""

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.leash import GRACE, end_group

_live: "dict[subprocess.Popen[str], int]" = {}
"""What runs, and the thread that has started it."""
_stopping = threading.Event()

KEPT = 400
"""Lines of the output that are kept: enough for a long traceback."""


STOPPED = 128 + signal.SIGTERM
"""Exit code of what was ended from here."""


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
    if _stopping.is_set():
        return Ended(STOPPED, ("stopped before it began",))
    lines: deque[str] = deque(maxlen=KEPT)
    process = leash(command, folder, {"PYTHONUNBUFFERED": "1", **environment})
    reader = threading.Thread(target=_pass_on, args=(process, lines, tell), daemon=True)
    reader.start()
    _live[process] = threading.get_ident()
    try:
        if _stopping.is_set():
            release(process)
        process.wait()
    finally:
        del _live[process]
        release(process)
        reader.join(GRACE)
    code = process.returncode
    return Ended(code if code >= 0 else 128 - code, tuple(lines))


def stop_all() -> None:
    """End the commands of all threads, and let none begin any more: this program is to end."""
    _stopping.set()
    for process in list(_live):
        _let_go(process)


def stop(thread: int) -> None:
    """End the command of one thread, if it runs one."""
    for process, starter in list(_live.items()):
        if starter == thread:
            _let_go(process)


def _let_go(process: "subprocess.Popen[str]") -> None:
    if process.stdin is not None:
        process.stdin.close()


def leash(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], silent: bool = False
) -> "subprocess.Popen[str]":
    """Start a command that ends when `release` is called, or when this process ends in any way.

    Args:
        silent: throw its output away; else it must be read.
    """
    output = subprocess.DEVNULL if silent else subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).with_name("leash.py")), *command],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.DEVNULL if silent else subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _pass_on(
    process: "subprocess.Popen[str]", lines: deque[str], tell: Callable[[str], None]
) -> None:
    for line in process.stdout or ():
        lines.append(line.rstrip())
        tell(line.rstrip())


def release(process: "subprocess.Popen[str]") -> None:
    """End what `leash` has started, if it has not ended, and wait until all of it is gone."""
    _let_go(process)
    try:
        process.wait(GRACE + 10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.returncode < 0:
        # Killed itself, it could not do its work.
        end_group(process.pid)
