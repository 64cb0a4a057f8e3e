"""Runs whose process is gone though they still count as running."""

import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from progrl.config import Config
from progrl.tracking.recorder import HEARTBEAT, PROCESS
from progrl.tracking.store import Store, exists, open_store, reaching

if TYPE_CHECKING:
    from mlflow.entities import Run

SILENCE = 900.0
"""Seconds without a sign of life after which a run on another machine counts as dead."""


@dataclass(frozen=True, slots=True)
class Zombie:
    """A run that no process works on.

    Attributes:
        run: its id.
        name: its name.
        silent: seconds since its last sign of life.
    """

    run: str
    name: str
    silent: float


def zombie_runs(project: Path, config: Config) -> list[Zombie]:
    """The experiment's zombies; none where nothing was ever recorded.

    Raises:
        TrackingError: the store cannot be reached.
    """
    if config.tracking.kind == "none" or not exists(project):
        return []
    return find(open_store(project, config.tracking.experiment))


def end_zombies(project: Path, config: Config) -> list[Zombie]:
    """End the experiment's zombies as KILLED; returns them.

    Raises:
        TrackingError: the store cannot be reached.
    """
    if config.tracking.kind == "none" or not exists(project):
        return []
    return sweep(open_store(project, config.tracking.experiment))


def find(store: Store) -> list[Zombie]:
    """The zombies in an open store; runs that progrl did not start are left alone."""
    now = time.time()
    with reaching(store.uri):
        running = store.client.search_runs(
            [store.experiment], f"attributes.status = 'RUNNING' AND tags.`{PROCESS}` LIKE '%'"
        )
    return [
        Zombie(run.info.run_id, run.info.run_name or "", silent)
        for run in running
        if (silent := _silent(run, now)) is not None
    ]


def sweep(store: Store) -> list[Zombie]:
    """End the zombies in an open store as KILLED; returns them."""
    zombies = find(store)
    with reaching(store.uri):
        for zombie in zombies:
            store.client.set_terminated(zombie.run, "KILLED")
    return zombies


def _silent(run: "Run", now: float) -> float | None:
    """Seconds since the last sign of life of a dead run; None for one that lives."""
    import psutil

    last = float(run.data.tags.get(HEARTBEAT, run.info.start_time / 1000))
    host, number, started = run.data.tags[PROCESS].rsplit(":", 2)
    if host != platform.node():
        alive = now - last < SILENCE
    else:
        try:
            process = psutil.Process(int(number))
            alive = (
                abs(process.create_time() - int(started)) < 2
                and process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.NoSuchProcess:
            alive = False
    return None if alive else now - last
