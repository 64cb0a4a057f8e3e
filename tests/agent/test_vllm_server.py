"""The way to a vLLM server, with a small program in vLLM's place: ends, deaths, order of calls."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from progrl.agent.engines.contracts import SamplingParams
from progrl.agent.engines.vllm import VllmEngine
from progrl.agent.engines.vllm_process import Server
from progrl.agent.model import make_model
from progrl.errors import ConfigurationError, EngineFault
from tests.agent.test_local_engine import qwen3

STAND_IN = """
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
here = Path(__file__).parents[3]
if (here / "refuse").exists():
    print("(Worker) ERROR ValueError: no such model", file=sys.stderr)
    print("(Server) ERROR RuntimeError: see above", file=sys.stderr)
    sys.exit(3)
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer({})
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with (here / "asked").open("a") as file:
            file.write(self.path + "\\n")
        if self.path == "/v1/completions" and (here / "die").exists():
            print("(Worker) ERROR MemoryError: all is full", file=sys.stderr, flush=True)
            os._exit(1)
        told = {"token_ids": [5], "logprobs": {"token_logprobs": [-0.5]}}
        self.answer({"choices": [told]})
    def answer(self, value):
        sent = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)
    def log_message(self, *given):
        pass
port = int(sys.argv[sys.argv.index("--port") + 1])
HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose `.venv-vllm` has the stand-in for vLLM."""
    module = tmp_path / "vllm/entrypoints/openai/api_server.py"
    module.parent.mkdir(parents=True)
    module.write_text(STAND_IN)
    python = tmp_path / ".venv-vllm/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return tmp_path


def start(project: Path, sleep: bool = False) -> VllmEngine:
    return VllmEngine(
        qwen3(), project=project, slots=2, window=64, dtype="float32", memory=0.01, sleep=sleep
    )


@pytest.fixture
def engine(project: Path) -> Iterator[VllmEngine]:
    made = start(project, sleep=True)
    yield made
    made.close()


def sample(engine: VllmEngine) -> list[int]:
    async def run() -> list[int]:
        conversation = engine.open()
        conversation.extend([20, 21])
        return (await conversation.sample(SamplingParams(1.0, 1, frozenset(), 0))).ids

    return asyncio.run(run())


def asked(project: Path) -> list[str]:
    found = (project / "asked").read_text().split()
    (project / "asked").unlink()
    return found


def test_it_sleeps_from_the_last_sample_to_the_new_weights(
    engine: VllmEngine, project: Path
) -> None:
    assert sample(engine) == [5]
    engine.rest()
    engine.rest()
    assert asked(project) == ["/v1/completions", "/sleep?level=2"]
    with pytest.raises(EngineFault, match="sleeps"):
        sample(engine)
    engine.set_weights_from(qwen3(2))
    awake = ["/wake_up?tags=weights", "/pause", "/collective_rpc", "/wake_up?tags=kv_cache"]
    assert asked(project) == [*awake, "/reset_prefix_cache", "/resume"]
    assert sample(engine) == [5]
    engine.set_weights_from(qwen3(1))
    awakened = [path for path in asked(project) if "wake" in path or "sleep" in path]
    assert awakened == []


def test_a_server_that_dies_is_told_with_its_first_error(engine: VllmEngine, project: Path) -> None:
    (project / "die").touch()
    with pytest.raises(EngineFault, match=r"does not answer .*MemoryError: all is full"):
        sample(engine)
    with pytest.raises(EngineFault, match="MemoryError: all is full"):
        engine.set_weights_from(qwen3())


def test_a_server_that_does_not_start_is_told_with_its_first_error(project: Path) -> None:
    (project / "refuse").touch()
    with pytest.raises(EngineFault, match=r"ended with code 3: .*ValueError: no such model"):
        start(project)


def test_killed_we_leave_no_server(project: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.agent.test_vllm_server import start\n"
        "engine = start(Path(sys.argv[1])); print(engine._server.process.pid, flush=True)\n"
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(project)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        server = psutil.Process(int(parent.stdout.readline()))
        assert server.is_running()
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        end = time.monotonic() + 30
        while server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_heads_that_the_cpu_build_cannot_compute_with_are_refused(project: Path) -> None:
    model = make_model(vocabulary=64, hidden=32, layers=1, heads=2, head_dim=16, window=64, seed=1)
    with pytest.raises(ConfigurationError, match="this model's have 16"):
        VllmEngine(model, project=project, slots=1, window=64, dtype="float32", memory=0.1)
    assert not (project / "asked").exists()


def test_a_missing_package_is_one_line_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ConfigurationError, match=r"needs the package httpx: .*pip install .*vllm"):
        Server(Path(sys.executable), tmp_path / "log", [], 1)
    assert not (tmp_path / "log").exists()
