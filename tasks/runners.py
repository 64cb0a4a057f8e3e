"""What a sweep's cells run on: threads of this program, or a cluster of Dask's."""

import importlib
import os
import socket
from typing import Any, cast
from urllib.parse import urlsplit

from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from progrl.errors import ConfigurationError
from progrl.extras import install_line
from tasks.environment import ADDRESS, PROJECT, STATE

THREADS, DASK = "threads", "dask"
RUNNERS = (THREADS, DASK)

PATIENCE = 10.0
"""Seconds that a cluster's address has to answer."""

Runner = TaskRunner[PrefectFuture[Any]]


def make_runner(kind: str, workers: int, address: str | None = None) -> Runner:
    """The task runner of that kind.

    Args:
        kind: one of RUNNERS.
        workers: cells at a time, on this machine.
        address: of a cluster that stands, which has workers of its own; None for threads, or for a
            cluster on this machine that lives as long as the flow.

    Raises:
        ConfigurationError: a package is missing, nothing answers at the address, or the kind has no
            cluster.
    """
    if address is not None:
        if kind == THREADS:
            raise ConfigurationError("--address: threads have none; add --runner dask.")
        _check_answer(address)
    if kind == DASK:
        return _dask(workers, address)
    # Its own declaration of futures is narrower than what flows ask for.
    return cast("Runner", ThreadPoolTaskRunner(workers))


def _dask(workers: int, address: str | None) -> Runner:
    # Read when Dask is imported: Prefect shows its accounts of connections otherwise.
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "error")
    try:
        package: Any = importlib.import_module("prefect_dask")
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"--runner {DASK} needs {error.name}: {install_line(DASK)}"
        ) from None
    if address is not None:
        return cast("Runner", package.DaskTaskRunner(address=address))
    cluster = {
        "n_workers": workers,
        "threads_per_worker": 1,
        "host": ADDRESS,
        "dashboard_address": f"{ADDRESS}:0",
        "local_directory": str(PROJECT / STATE / "dask"),
    }
    return cast("Runner", package.DaskTaskRunner(cluster_kwargs=cluster))


def _check_answer(address: str) -> None:
    """Dask waits long, in a flow that has begun, where nothing answers."""
    try:
        found = urlsplit(address if "://" in address else f"//{address}")
        place = (found.hostname, found.port)
    except ValueError:
        place = (None, None)
    if place[0] is None or place[1] is None:
        raise ConfigurationError(f"--address {address}: write it as HOST:PORT.")
    try:
        socket.create_connection((place[0], place[1]), PATIENCE).close()
    except OSError as error:
        raise ConfigurationError(
            f"--address {address}: nothing answers ({error.strerror or error}). Start the cluster "
            "first, or leave the option out for one on this machine."
        ) from None
