"""`progrl doctor`: what it finds, and what it mends."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import psutil
import pytest

from progrl.cli import checks
from progrl.cli.checks import Finding
from progrl.config import load_config
from tests.cli.conftest import Run, Start


@pytest.fixture
def project(tmp_path: Path, root: Path) -> Path:
    """A project that nothing was ever run in."""
    shutil.copy(root / "params.yaml", tmp_path)
    return tmp_path


def _states(findings: Iterator[Finding]) -> list[str]:
    return [finding.state for finding in findings]


def test_what_is_installed_here_fits() -> None:
    findings = list(checks.python_and_packages())
    assert [f for f in findings if f.state == "problem"] == []
    assert {"python", "packages"} <= {f.check for f in findings}


def test_a_missing_package_and_a_wrong_one_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [
        checks.Requirement("numpy<1"),
        checks.Requirement("no-such-package-here"),
        checks.Requirement("no-such-extra-here ; extra == 'dev'"),
    ]
    monkeypatch.setattr(checks, "_asked", lambda: (">=3.99", asked))
    found = {f.check: (f.state, f.found) for f in checks.python_and_packages()}
    assert found["python"][0] == "problem"
    assert found["numpy"][0] == "problem"
    assert found["numpy"][1].endswith("not <1")
    assert found["no-such-package-here"] == ("problem", "not installed")
    assert found["no-such-extra-here"][0] == "note"
    assert "packages" not in found


def test_optional_programs_are_told_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> dict[str, tuple[str, str, str]]:
        return {f.check: (f.state, f.found, f.mend) for f in checks.programs()}

    def install(name: str, script: str) -> str:
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
        return str(tmp_path / name)

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert told()["C++ compiler"][0::2] == ("note", "Install g++ (9 or later) or clang++.")
    compiler = install("clang++", "")
    assert told()["C++ compiler"] == ("ok", compiler, "")
    use = "not installed; optional, runs the benchmark ScienceWorld"
    assert told()["java"] == ("note", use, "Install Java 17 or later.")
    assert told()["chromium"][0::2] == ("note", "Install Chromium.")
    java = install("java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    assert told()["java"] == ("note", f"{java}, version 11", "Install Java 17 or later.")
    install("java", "echo 'openjdk version \"21\" 2023-09-19' >&2")
    browser = install("google-chrome", "")
    assert told()["java"] == ("ok", f"{java}, version 21", "")
    assert told()["chromium"] == ("ok", browser, "")


def test_a_full_disk_is_a_problem(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _states(checks.disk(project))[0] in {"ok", "problem"}
    monkeypatch.setattr(checks, "LEAST_FREE", 2**80)
    (finding,) = checks.disk(project)
    assert (finding.state, bool(finding.mend)) == ("problem", True)


def test_the_encoder_that_is_named_must_be_there(project: Path) -> None:
    params = project / "params.yaml"
    missing = load_config(params, overrides=["embedding={kind: folder, folder: none}"])
    (finding,) = checks.models(missing, project)
    assert finding.state == "problem"
    assert "progrl models fetch mpnet" in finding.mend
    (project / "none").mkdir()
    (project / "none" / "modules.json").touch()
    assert _states(checks.models(missing, project)) == ["ok"]
    hashed = load_config(params, overrides=["embedding={kind: hashed}"])
    assert _states(checks.models(hashed, project)) == ["ok"]


def _note(project: Path, name: str, pid: int, created: float, port: int | None) -> Path:
    path = project / ".state" / "servers" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"pid": pid, "created": created, "port": port}))
    return path


@pytest.mark.parametrize(("status", "state"), [(200, "ok"), (503, "problem")])
def test_servers_are_asked(
    status: int, state: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    assert _states(checks.servers(project)) == ["note", "note", "note"]
    monkeypatch.setenv("http_proxy", "http://192.0.2.1:1")
    started = psutil.Process().create_time()
    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    _note(project, "mlflow", os.getpid(), started, server.server_port)
    _note(project, "worker", os.getpid(), started, None)
    try:
        assert _states(checks.servers(project)) == ["note", "ok", state]
    finally:
        server.shutdown()
        server.server_close()
    assert _states(checks.servers(project)) == ["note", "ok", "problem"]


def test_a_server_that_died_is_found_and_forgotten(project: Path) -> None:
    note = _note(project, "prefect", os.getpid(), psutil.Process().create_time() - 100, 4200)
    finding = next(checks.servers(project))
    assert finding.state == "problem"
    assert finding.safe is not None
    finding.safe()
    assert not note.exists()
    assert _states(checks.servers(project))[0] == "note"


def test_a_stage_whose_parent_has_gone_is_found(project: Path) -> None:
    (project / "progrl").write_text("import time; time.sleep(60)")
    code = (
        "import subprocess, sys; "
        "line = [sys.executable, 'progrl', 'stage', 'grpo']; "
        "print(subprocess.Popen(line, stdout=subprocess.DEVNULL).pid)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, stdout=subprocess.PIPE, text=True, timeout=30
    )
    orphan = psutil.Process(int(done.stdout))
    try:
        findings = list(checks.orphans(project))
        assert [f.state for f in findings] == ["problem"]
        assert f"kill {orphan.pid}" in findings[0].mend
        assert _states(checks.orphans(project / "elsewhere")) == ["ok"]
    finally:
        orphan.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while _states(checks.orphans(project)) != ["ok"]:
        assert time.monotonic() < deadline


def test_stale_locks_of_dvc_are_removed(run: Run, project: Path) -> None:
    table = project / ".dvc" / "tmp" / "rwlock"
    table.parent.mkdir(parents=True)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    table.write_text(json.dumps({"a": {"write": {"pid": dead.pid, "cmd": "x"}}, "b": {"read": []}}))
    (finding,) = checks.dvc_locks(project)
    assert finding.state == "problem"
    assert finding.safe is not None
    finding.safe()
    assert not table.exists()
    assert _states(checks.dvc_locks(project)) == ["ok"]


def test_locks_of_a_living_process_are_left_alone(project: Path) -> None:
    table = project / ".dvc" / "tmp" / "rwlock"
    table.parent.mkdir(parents=True)
    table.write_text(json.dumps({"a": {"read": [{"pid": os.getpid(), "cmd": "x"}]}}))
    assert _states(checks.dvc_locks(project)) == ["ok"]


def test_doctor_tells_and_mends(start: Start, project: Path) -> None:
    (project / ".dvc").mkdir()
    (project / ".dvc" / "config").write_text("[core]\n    analytics = true\n    autostage = true\n")
    args = ("doctor", "--params", str(project / "params.yaml"), "--set", "tracking={kind: none}")
    sick = start(*args, "--json")
    assert sick.returncode == 1, sick.stderr
    told = json.loads(sick.stdout)
    problems = [f for f in told["findings"] if f["state"] == "problem"]
    assert not told["ok"]
    assert {f["check"] for f in problems} == {"DVC settings"}
    assert all(f["mend"] for f in problems)
    mended = start(*args, "--mend")
    assert mended.returncode == 0, mended.stdout
    assert "mended: core.analytics is true" in mended.stdout
    assert start(*args).returncode == 0


def test_a_wrong_configuration_is_one_finding_of_many(run: Run, project: Path) -> None:
    done = run(
        "doctor", "--params", str(project / "params.yaml"), "--set", "grpo.stesp=3", "--json"
    )
    assert done.exit_code == 1
    found = {f["check"]: f for f in json.loads(done.stdout)["findings"]}
    assert found["configuration"]["state"] == "problem"
    assert "stesp" in found["configuration"]["found"]
    assert "disk" in found


@pytest.mark.slow
def test_a_run_whose_process_was_killed_is_ended(start: Start, project: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from progrl.config import load_config
from progrl.stages import Stage
from progrl.tracking import open_run
project = Path({str(project)!r})
stage = Stage("generate", ("seed",), (), (), (), lambda context: {{}})
with open_run(stage, load_config(project / "params.yaml"), project, project, project / "runs"):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", code], cwd=project)
    assert killed.returncode == -signal.SIGKILL
    args = ("doctor", "--params", str(project / "params.yaml"))
    sick = start(*args, "--json")
    runs = [f for f in json.loads(sick.stdout)["findings"] if f["check"] == "MLflow runs"]
    assert runs
    assert {f["state"] for f in runs} == {"problem"}
    assert start(*args, "--mend").returncode == 0
    assert start(*args).returncode == 0
