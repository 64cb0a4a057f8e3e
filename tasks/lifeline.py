"""Cells on a cluster end with the flow that asked for them, in whatever way it ends.

The flow holds a lock on a file in the project, which the operating system takes from it when it
dies; a cell that gets the lock knows that the flow is gone. A cluster's workers share the project's
folder in any case: cells read and write there.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from tasks.environment import PROJECT, STATE
from tasks.process import stop

PAUSE = 1.0
"""Seconds between two looks of a cell."""


def _folder(project: Path) -> Path:
    return project / STATE / "flows"


@contextmanager
def lifeline(project: Path = PROJECT) -> Iterator[str]:
    """Hold a new lock; gives the name by which cells find it."""
    folder = _folder(project)
    folder.mkdir(parents=True, exist_ok=True)
    for left in sorted(folder.iterdir()):
        is_gone(left.name, project)  # removes what flows that were killed have left
    path = folder / uuid4().hex
    with FileLock(path):
        try:
            yield path.name
        finally:
            path.unlink(missing_ok=True)


def is_gone(name: str, project: Path = PROJECT) -> bool:
    """Nobody holds the lock of that name any more, or it is not in this folder."""
    path = _folder(project) / name
    if not path.exists():
        return True
    try:
        with FileLock(path, timeout=0):
            path.unlink(missing_ok=True)
    except Timeout:
        return False
    return True


@contextmanager
def tied(name: str, project: Path = PROJECT) -> Iterator[None]:
    """Within, the commands of this thread are ended as soon as the lock's flow is gone."""
    left, caller = threading.Event(), threading.get_ident()

    def watch() -> None:
        gone = False
        while not left.wait(PAUSE):
            gone = gone or is_gone(name, project)
            if gone:
                stop(caller)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        left.set()
        watcher.join()
