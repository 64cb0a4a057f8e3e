"""`python -m tasks.servers start|stop|status`: Prefect server, worker and MLflow server, local."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from progrl.errors import BusyError, ProgrlError, TrackingError
from progrl.files import write_json, write_text
from progrl.tracking import tracking_uri
from tasks.environment import (
    ADDRESS,
    MLFLOW_PORT,
    PREFECT_PORT,
    PROJECT,
    STATE,
    apply,
    note_of,
    port,
    running,
)

POOL = "local"
PATIENCE = 240.0
"""Seconds that a server may take to start on a busy machine."""
GRACE = 45.0
"""Seconds that a process may take to end by itself."""


@dataclass(frozen=True)
class Server:
    """A process that `start` leaves running.

    Attributes:
        name: of its note and log.
        command: without the interpreter.
        port: that it listens on; None for a worker.
        healthy: whether it can be used.
    """

    name: str
    command: Sequence[str]
    port: int | None
    healthy: Callable[[], bool]


def start(project: Path = PROJECT) -> None:
    """Start what is not running yet, one after another, and deploy the flows.

    Raises:
        BusyError: a port is taken by something else.
        TrackingError: a server did not start; the message names its log.
    """
    apply(project)
    prefect, worker, mlflow = _servers(project)
    os.environ["PREFECT_API_URL"] = f"http://{ADDRESS}:{prefect.port}/api"
    todo = [server for server in (prefect, mlflow) if server and not running(project, server.name)]
    for server in todo:
        _check_port(server)
    try:
        for server in todo:
            _launch(project, server)
        for server in todo:
            _await(project, server)
        _settings(project)
        _prefect(project, "work-pool", "create", POOL, "--type", "process", "--overwrite")
        _prefect(project, "deploy", "--all", "--prefect-file", str(project / "prefect.yaml"))
        if not running(project, worker.name):
            _launch(project, worker)
            _await(project, worker)
    except BaseException:
        stop(project)
        raise


def stop(project: Path = PROJECT) -> list[str]:
    """Stop the worker, then the servers, with all their children: the names of those that ran."""
    stopped: list[str] = []
    for name in ("worker", "prefect", "mlflow"):
        server = running(project, name)
        if server is not None:
            _end(server.process)
            stopped.append(name)
        note_of(project, name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        (project / "prefect.toml").unlink()
    return stopped


def status(project: Path = PROJECT) -> dict[str, str]:
    """A line for each of them."""
    told = {}
    for name in ("prefect", "worker", "mlflow"):
        server = running(project, name)
        place = f", http://{ADDRESS}:{server.port}" if server and server.port else ""
        told[name] = f"running, process {server.process.pid}{place}" if server else "not running"
    return told


def _servers(project: Path) -> tuple[Server, Server, Server | None]:
    """Prefect server, worker, and MLflow server, which only a local store needs."""
    api, pages = port(PREFECT_PORT), port(MLFLOW_PORT)
    prefect = Server(
        "prefect",
        ("prefect", "server", "start", "--host", ADDRESS, "--port", str(api)),
        api,
        lambda: answers(f"http://{ADDRESS}:{api}/api/health"),
    )
    worker = Server(
        "worker",
        ("prefect", "worker", "start", "--pool", POOL, "--name", POOL, "--type", "process"),
        None,
        lambda: _worker_online(api),
    )
    uri = tracking_uri(project)
    if uri.startswith(("http://", "https://")):
        return prefect, worker, None
    mlflow = ["mlflow", "server", "--host", ADDRESS, "--port", str(pages), "--workers", "1"]
    mlflow += ["--backend-store-uri", uri]
    mlflow += ["--default-artifact-root", (project / STATE / "mlartifacts").as_uri()]
    healthy = partial(answers, f"http://{ADDRESS}:{pages}/health")
    return prefect, worker, Server("mlflow", mlflow, pages, healthy)


def _log(project: Path, name: str) -> Path:
    return project / STATE / "servers" / f"{name}.log"


def _check_port(server: Server) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, server.port or 0))
        except OSError:
            variable = PREFECT_PORT if server.name == "prefect" else MLFLOW_PORT
            raise BusyError(
                f"Port {server.port} on {ADDRESS}, which the {server.name} server needs, is taken "
                f"by another program. End that, or choose a port: {variable}=NUMBER make serve."
            ) from None


def _launch(project: Path, server: Server) -> None:
    log = _log(project, server.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", *server.command],
            cwd=project,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    created = psutil.Process(process.pid).create_time()
    note = {"pid": process.pid, "created": created, "port": server.port}
    write_json(note_of(project, server.name), note)


def _await(project: Path, server: Server) -> None:
    deadline = time.monotonic() + PATIENCE
    while not server.healthy():
        log = _log(project, server.name)
        if running(project, server.name) is None:
            raise TrackingError(f"The {server.name} process ended at once; see {log}.")
        if time.monotonic() > deadline:
            raise TrackingError(f"The {server.name} process does not answer; see {log}.")
        time.sleep(0.5)


def _ask(url: str, body: Mapping[str, object] | None = None) -> bytes | None:
    """What a server on this machine answers; None if it does not, or not well."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=5) as answer:
            return bytes(answer.read())
    except OSError:
        return None


def answers(url: str) -> bool:
    """A server on this machine answers well there."""
    return _ask(url) is not None


def _worker_online(api: int) -> bool:
    found = _ask(f"http://{ADDRESS}:{api}/api/work_pools/{POOL}/workers/filter", {})
    return any(worker["status"] == "ONLINE" for worker in json.loads(found or b"[]"))


def _settings(project: Path) -> None:
    """What makes a bare `prefect` in the project's folder find this server."""
    write_text(
        project / "prefect.toml",
        "# Made by `make serve`, removed by `make stop`.\n"
        f'home = "{os.environ["PREFECT_HOME"]}"\n\n'
        f'[api]\nurl = "{os.environ["PREFECT_API_URL"]}"\n\n'
        "[server]\nanalytics_enabled = false\n",
    )


def _prefect(project: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-2000:]
        raise TrackingError(f"`prefect {' '.join(arguments)}` failed:\n{said}")


def _end(process: psutil.Process) -> None:
    """End a process and all that descends from it: by itself first, then by force."""
    family = [process]
    with contextlib.suppress(psutil.Error):
        family += process.children(recursive=True)
    with contextlib.suppress(psutil.Error):
        process.terminate()
    _, left = psutil.wait_procs(family, timeout=GRACE)
    for member in left:
        with contextlib.suppress(psutil.Error):
            member.kill()
    psutil.wait_procs(left, timeout=GRACE)


def main(arguments: Sequence[str]) -> int:
    """Entry point."""
    if len(arguments) != 1 or arguments[0] not in ("start", "stop", "status"):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    apply()
    try:
        if arguments[0] == "stop":
            stopped = stop()
            sys.stdout.write(f"Stopped: {', '.join(stopped)}.\n" if stopped else "Nothing ran.\n")
            return 0
        if arguments[0] == "start":
            start()
    except ProgrlError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    for name, text in status().items():
        sys.stdout.write(f"{name}: {text}\n")
    if arguments[0] == "start":
        sys.stdout.write(
            "Run `.venv/bin/prefect deployment run 'pipeline/cpu'` in this folder; "
            "`make stop` ends all of it.\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
