"""A sweep on clusters of Dask's: the same table, and nothing outlives the flow."""

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.task_runners import ThreadPoolTaskRunner

from progrl.errors import ConfigurationError
from tasks.lifeline import is_gone, lifeline, tied
from tasks.process import STOPPED, run
from tasks.runners import make_runner
from tests.flows.test_pipeline import alive
from tests.flows.toys import FAIL, PAUSE, call, environment, make_project, table

SWEEP = ("--profile", "tiny", "--seeds", "1", "--variants", "fixed_horizon", "--workers", "2")
LOCAL = "127.0.0.1"


def _needs(kind: str) -> Any:
    missing = importlib.util.find_spec(f"prefect_{kind}") is None
    why = f"the extra {kind!r} is not installed"
    return pytest.param(kind, marks=pytest.mark.skipif(missing, reason=why))


KINDS = [_needs("dask")]


def test_threads_need_no_cluster() -> None:
    assert isinstance(make_runner("threads", 2), ThreadPoolTaskRunner)
    with pytest.raises(ConfigurationError, match="threads have none"):
        make_runner("threads", 2, f"{LOCAL}:8786")


@pytest.mark.parametrize("kind", ["dask"])
def test_a_missing_package_is_one_line_to_install(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setitem(sys.modules, f"prefect_{kind}", None)
    line = f"python -m pip install -c constraints.txt -e '.[{kind}]'"
    with pytest.raises(ConfigurationError, match=re.escape(line)) as told:
        make_runner(kind, 1)
    assert told.value.exit_code == 2


@pytest.mark.parametrize("kind", ["dask"])
def test_an_address_must_be_one_and_answer(kind: str) -> None:
    for wrong in ("", "here", "tcp://here", "here:port"):
        with pytest.raises(ConfigurationError, match="HOST:PORT"):
            make_runner(kind, 1, wrong)
    with pytest.raises(ConfigurationError, match="nothing answers"):
        make_runner(kind, 1, f"tcp://{LOCAL}:{_free_port()}")


def test_a_lifeline_ends_with_its_flow(tmp_path: Path) -> None:
    with lifeline(tmp_path) as name:
        assert not is_gone(name, tmp_path)
    assert is_gone(name, tmp_path)
    assert list((tmp_path / ".state" / "flows").iterdir()) == []


def test_a_lifeline_ends_with_a_flow_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, time\nfrom tasks.lifeline import lifeline\n"
        "with lifeline(pathlib.Path(sys.argv[1])) as name:\n"
        "    print(name, flush=True)\n    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as flow:
        assert flow.stdout is not None
        name = flow.stdout.readline().strip()
        assert not is_gone(name, tmp_path)
        flow.kill()
    with lifeline(tmp_path) as other:
        # What was left is cleared away.
        assert [one.name for one in (tmp_path / ".state" / "flows").iterdir()] == [other]
    assert is_gone(name, tmp_path)


def test_a_command_tied_to_a_flow_ends_with_it(tmp_path: Path) -> None:
    said: list[str] = []
    with lifeline(tmp_path) as name:
        whole = [sys.executable, "-c", "import time; time.sleep(1.5); print('whole')"]
        with tied(name, tmp_path):
            assert run(whole, tmp_path, {}, said.append).code == 0
    started = time.monotonic()
    with tied(name, tmp_path):
        ended = run(
            [sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, {}, said.append
        )
    assert said == ["whole"]
    assert ended.code == STOPPED
    assert time.monotonic() - started < 30


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("toy")
    make_project(folder)
    call(folder, "flows.ablate", "--name", "threads", *SWEEP)
    yield folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_fails_alone_and_the_table_is_that_of_threads(project: Path, kind: str) -> None:
    asked = ("--name", kind, *SWEEP, "--runner", kind)
    said = call(project, "flows.ablate", *asked, code=2, extra=[f"{FAIL}=fixed"])
    assert "1 failed, 1 cells are done" in said
    assert "fixed_horizon of seed 1: A toy that was told to fail." in said
    said = call(project, "flows.ablate", *asked)
    assert "2 of 2 cells are done" in said
    assert re.search(r"'full of seed 1' - Finished in state Cached", said)
    assert table(project, kind) == table(project, "threads")
    assert _ends_soon(lambda: alive(project) == [])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_flow_that_is_stopped_takes_its_cluster_along(
    project: Path, kind: str, number: signal.Signals
) -> None:
    _stop_in_a_cell(project, f"{kind}-{number.name}", number, "--runner", kind)
    assert _ends_soon(lambda: alive(project) == [])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_cells_on_a_standing_cluster_end_with_a_flow_that_is_killed(
    project: Path, kind: str
) -> None:
    port = _free_port()
    both = [sys.executable, "-m", "dask"]
    quiet = {"cwd": project, "env": environment(project), "stderr": subprocess.DEVNULL}
    scheduler = ["scheduler", "--host", LOCAL, "--port", str(port), "--no-dashboard"]
    worker = ["worker", f"tcp://{LOCAL}:{port}", "--host", LOCAL, "--nthreads", "2", "--no-nanny"]
    with (
        subprocess.Popen([*both, *scheduler], **quiet) as first,  # type: ignore[call-overload]
        subprocess.Popen([*both, *worker], **quiet) as second,  # type: ignore[call-overload]
    ):
        try:
            assert _ends_soon(lambda: _answers(port))
            asked = ("--runner", kind, "--address", f"tcp://{LOCAL}:{port}")
            _stop_in_a_cell(project, "standing", signal.SIGKILL, *asked)
            assert _ends_soon(lambda: not [line for line in alive(project) if "progrl.cli" in line])
            assert first.poll() is None and second.poll() is None
            call(project, "flows.ablate", "--name", "standing", *SWEEP, *asked)
        finally:
            second.kill()
            first.kill()
    assert table(project, "standing") == table(project, "threads")


def _stop_in_a_cell(project: Path, name: str, number: signal.Signals, *more: str) -> None:
    flow = subprocess.Popen(
        [sys.executable, "-m", "flows.ablate", "--name", name, *SWEEP, *more],
        cwd=project,
        env={**environment(project), PAUSE: "2"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    folder = project / "outputs" / "sweeps" / name

    def begun() -> bool:
        assert flow.poll() is None
        return bool(list(folder.glob("*/*/runs/grpo/*")))

    try:
        assert _ends_soon(begun, 200)
        flow.send_signal(number)
        assert flow.wait(100) != 0
    finally:
        flow.kill()


def _ends_soon(holds: Callable[[], bool], patience: float = 60) -> bool:
    deadline = time.monotonic() + patience
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOCAL, 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOCAL, port)) == 0
