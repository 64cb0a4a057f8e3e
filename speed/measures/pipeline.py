"""The pipeline beside its stages' commands: what flow, tasks and records add to the work."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median

from progrl.stages import NAMES
from speed.compare import ROOT, WayFailed
from speed.plan import Found, Plan

PATIENCE = 240.0
"""Seconds that a server may take to start on a busy machine."""


def measure(plan: Plan, profile: str = "tiny") -> Found:
    """`pipeline_overhead`: by what share the flow with a standing server takes longer.

    Rounds alternate which goes first.
    """
    rounds = plan.rounds
    seconds: dict[str, list[float]] = {"flow": [], "commands": []}
    with _server() as environment:
        for number in range(rounds):
            for name in sorted(seconds, reverse=bool(number % 2)):
                seconds[name].append(_timed(name, profile, environment))
    flow, bare = median(seconds["flow"]), median(seconds["commands"])
    details = {
        "flow_seconds": flow,
        "commands_seconds": bare,
        "added_seconds": flow - bare,
        "rounds": rounds,
    }
    return Found({"pipeline_overhead": flow / bare - 1}, {"pipeline": details})


def _timed(name: str, profile: str, environment: Mapping[str, str]) -> float:
    """Seconds of a run in a new folder by the flow or by bare commands."""
    root = ROOT / "outputs" / f"speed-{name}"
    shutil.rmtree(root, ignore_errors=True)
    # The flow's folder is called as its profile.
    own = ROOT / "outputs" / f"speed-{name}.yaml"
    own.parent.mkdir(exist_ok=True)
    shutil.copy(ROOT / "configs" / f"{profile}.yaml", own)
    start = time.perf_counter()
    try:
        if name == "flow":
            _run(["flows.pipeline", "--profile", str(own)], environment)
        else:
            for stage in NAMES:
                command = ["progrl.cli", "stage", stage, "--profile", str(own)]
                _run([*command, "--root", str(root)], environment)
        return time.perf_counter() - start
    finally:
        shutil.rmtree(root, ignore_errors=True)
        own.unlink()


def _run(module: Sequence[str], environment: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", *module]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise WayFailed(f"{' '.join(module)}: {said[-1] if said else 'ended without a word'}")


@contextmanager
def _server() -> Iterator[dict[str, str]]:
    """A Prefect server for as long as it is needed; the environment of those who use it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}/api"
    home = ROOT / "outputs" / "speed-prefect"
    environment = {
        **os.environ,
        "PREFECT_API_URL": url,
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "true",
    }
    home.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "prefect", "server", "start", "--no-ui"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--log-level", "ERROR"]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet)
    try:
        _await(server, f"{url}/health")
        yield environment
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(home, ignore_errors=True)


def _await(server: "subprocess.Popen[bytes]", url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise WayFailed("No Prefect server could be started: `make serve` may tell why.")
