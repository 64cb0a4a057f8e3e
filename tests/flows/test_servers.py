"""`make serve` and `make stop`: everything starts, works, and is gone again."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from progrl.errors import BusyError
from progrl.files import write_json
from tasks.environment import MLFLOW_PORT, PREFECT_PORT, note_of, running, standing
from tasks.servers import start, stop
from tests.flows.toys import call, make_project


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_taken_port_is_told_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "prefect"))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = other.getsockname()[1]
        monkeypatch.setenv(PREFECT_PORT, str(number))
        with pytest.raises(BusyError, match=f"Port {number} .* taken .*{PREFECT_PORT}=NUMBER"):
            start(tmp_path)
    assert running(tmp_path, "prefect") is None


def test_a_note_of_another_process_is_not_believed(tmp_path: Path) -> None:
    """The number may have been given to another process since."""
    write_json(note_of(tmp_path, "prefect"), {"pid": os.getpid(), "created": 1.0, "port": 1})
    assert running(tmp_path, "prefect") is None
    assert standing(tmp_path) is None
    created = psutil.Process().create_time()
    write_json(note_of(tmp_path, "prefect"), {"pid": os.getpid(), "created": created, "port": 7})
    assert standing(tmp_path) == "http://127.0.0.1:7/api"


def test_stopping_nothing_is_fine(tmp_path: Path) -> None:
    assert stop(tmp_path) == []


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[str]]]:
    folder = tmp_path_factory.mktemp("served")
    make_project(folder)
    ports = [f"{PREFECT_PORT}={free_port()}", f"{MLFLOW_PORT}={free_port()}"]
    call(folder, "tasks.servers", "start", extra=ports)
    try:
        yield folder, ports
    finally:
        call(folder, "tasks.servers", "stop", extra=ports)


@pytest.mark.slow
def test_a_deployment_runs_and_nothing_stays_behind(served: tuple[Path, list[str]]) -> None:
    folder, ports = served
    family: list[psutil.Process] = []
    for name in ("prefect", "worker", "mlflow"):
        server = running(folder, name)
        assert server is not None, name
        family += [server.process, *server.process.children(recursive=True)]
    for address in {
        c.laddr.ip for p in family for c in p.net_connections() if c.status == "LISTEN"
    }:
        assert address == "127.0.0.1"

    bare = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    prefect = [str(Path(sys.executable).with_name("prefect")), "deployment", "run", "--watch"]
    done = subprocess.run(
        [*prefect, "pipeline/cpu"], cwd=folder, env=bare, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "reports" / "index.html").exists()
    said = call(folder, "tasks.servers", "start", extra=ports)
    assert said.count("running, process") == 3

    call(folder, "tasks.servers", "stop", extra=ports)
    assert not any(process.is_running() for process in family)
    assert not (folder / "prefect.toml").exists()
    left = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(folder):
                left.append(process.cmdline())
        except (psutil.Error, OSError):
            continue
    assert left == []
