"""Runs a command so that nothing of it outlives whoever started it.

    python -m tasks.leash COMMAND ...

The command's whole process group is ended when standard input closes, which the operating system
does whatever ends the parent, `kill -9` included; and when the command itself ends or is killed,
what it has left behind is ended too. SIGTERM comes first, so that runs are closed properly.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import psutil

GRACE = 30.0
"""Seconds between SIGTERM and SIGKILL."""


def main(command: list[str]) -> int:
    """Run the command; its exit code, 128 + n after signal n."""
    if os.getpgid(0) != os.getpid():
        os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_default_signals)
    # Of two reasons to end the group only one sends signals: a second SIGTERM would interrupt what
    # the first has started.
    once = threading.Lock()
    threading.Thread(target=_end_with_input, args=(once,), daemon=True).start()
    code = child.wait()
    with once:
        end_group(os.getpgid(0))
    return code if code >= 0 else 128 - code


def _default_signals() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end_with_input(once: threading.Lock) -> None:
    while os.read(0, 1024):
        pass
    with once:
        end_group(os.getpgid(0))


def end_group(group: int, grace: float = GRACE) -> None:
    """End all other processes of a group: SIGTERM, and SIGKILL for what is left after `grace`."""
    deadline = time.monotonic() + grace
    for member in members(group):
        _send(member, signal.SIGTERM)
    while members(group):
        if time.monotonic() > deadline:
            for member in members(group):
                _send(member, signal.SIGKILL)
        time.sleep(0.05)


def members(group: int) -> list[psutil.Process]:
    """The living processes of a group but this one."""
    found = []
    for process in psutil.process_iter():
        try:
            if (
                process.pid != os.getpid()
                and os.getpgid(process.pid) == group
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def _send(process: psutil.Process, number: int) -> None:
    with contextlib.suppress(psutil.Error):
        process.send_signal(number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
