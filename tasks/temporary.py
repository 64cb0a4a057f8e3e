"""A Prefect server for as long as one flow runs, where none stands.

Prefect would start one by itself, but leaves it behind when the flow is killed; this one is on the
leash.
"""

import atexit
import os
import socket
import sys
import time

from prefect.context import refresh_global_settings_context
from prefect.settings import PREFECT_API_URL

from progrl.errors import TrackingError
from tasks.environment import ADDRESS, PROJECT
from tasks.process import leash, release
from tasks.servers import PATIENCE, answers

ATTEMPTS = 3
"""A free port may be taken by another program before the server has it."""


def use_prefect_server() -> None:
    """Use the server that stands, or start one that lives until this program ends.

    Raises:
        TrackingError: none could be started.
    """
    url = PREFECT_API_URL.value()
    # Settings that a server has left behind when it was killed are not believed.
    if url and ("PREFECT_API_URL" in os.environ or answers(f"{url}/health")):
        return
    for _ in range(ATTEMPTS):
        url = _started()
        if url is not None:
            os.environ["PREFECT_API_URL"] = url
            # In all threads: those that send logs and events would start a server of their own.
            refresh_global_settings_context()
            return
    raise TrackingError(
        "No temporary Prefect server could be started. `prefect server start` may tell why; "
        "`make serve` starts a standing one."
    )


def _started() -> str | None:
    """A server's address once it answers; None if it ended, or does not answer in time."""
    port = _free_port()
    command = [sys.executable, "-m", "prefect", "server", "start", "--no-ui"]
    command += ["--host", ADDRESS, "--port", str(port), "--log-level", "ERROR"]
    server = leash(command, PROJECT, {}, silent=True)
    # Not before Prefect's last logs and events are sent, which it does when the program ends.
    atexit.register(release, server)
    url = f"http://{ADDRESS}:{port}/api"
    deadline = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < deadline:
        if answers(f"{url}/health"):
            return url
        time.sleep(0.2)
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])
