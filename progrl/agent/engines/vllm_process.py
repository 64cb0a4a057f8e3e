"""The process of a vLLM server, and the way to it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from progrl.errors import ConfigurationError, EngineFault
from progrl.extras import install_line

START = 600.0
"""Seconds that a server has to start; 20 where the machine is its own."""
HOST = "127.0.0.1"
_SERVER = Path(__file__).with_name("vllm_server.py")


class Server:
    """A server's process and the way to it; whoever reaches it can replace the weights, so it
    listens on loopback alone.

    Args:
        python: of the environment that has vLLM.
        log: file for what it says.
        options: of vLLM's server, but for the port.
        threads: without a GPU.
    """

    def __init__(self, python: Path, log: Path, options: Sequence[str], threads: int) -> None:
        try:
            import httpx
        except ImportError:
            raise ConfigurationError(
                f"engine.kind: vllm needs the package httpx: {install_line('vllm')}"
            ) from None

        with socket.socket() as free:
            free.bind((HOST, 0))
            port = free.getsockname()[1]
        self._log = log
        with log.open("wb") as stream:
            self.process = subprocess.Popen(
                [str(python), str(_SERVER), *options, "--port", str(port)],
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=stream,
                env=_surroundings(threads),
                start_new_session=True,
            )
        self._http = httpx.Client(
            base_url=f"http://{HOST}:{port}",
            timeout=httpx.Timeout(None, connect=START),
            limits=httpx.Limits(max_connections=None),
            trust_env=False,
        )
        self._errors = httpx.HTTPError

    def wait(self, seconds: float) -> None:
        """Until it answers; EngineFault with its last words if it does not."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(self._errors):
                if self._http.get("/health").is_success:
                    return
            time.sleep(0.2)
        code = self.process.poll()
        how = f"was not ready after {seconds:g} s" if code is None else f"ended with code {code}"
        raise EngineFault(f"vLLM's server {how}: {self._last_words()}")

    def post(self, path: str, body: Any = None) -> Any:
        """The answer as JSON, if it has one; EngineFault where the server refuses or is gone."""
        try:
            answer = self._http.post(path, json=body)
        except self._errors as error:
            raise EngineFault(
                f"vLLM's server does not answer ({error!r}): {self._last_words()}"
            ) from None
        if answer.is_server_error:
            raise EngineFault(f"vLLM's server failed in {path}: {self._last_words()}")
        if not answer.is_success:
            raise EngineFault(f"vLLM's server refused {path}: {answer.text[:500]}")
        with contextlib.suppress(json.JSONDecodeError):
            return answer.json()
        return None

    def end(self) -> None:
        """Kill it with all that it has started; idempotent."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()

    def _last_words(self) -> str:
        """The first error that it logged, which the others follow from; else its last line."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        for line in lines:
            if " ERROR " in line and "Error: " in line:
                return line
        told = [line for line in lines if "Error" in line] or lines
        return told[-1] if told else "it said nothing"


def _surroundings(threads: int) -> dict[str, str]:
    """The server's environment: nothing of ours on its path, nothing sent out, its own device."""
    kept = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "VIRTUAL_ENV")}
    seen = kept.get("CUDA_VISIBLE_DEVICES")
    local = int(kept.get("LOCAL_RANK", "0"))
    devices = seen.split(",") if seen else [str(local)] * (local + 1)
    for name in (
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
    ):
        kept.pop(name, None)
    return kept | {
        "CUDA_VISIBLE_DEVICES": devices[local % len(devices)],
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLMHOST_IP": HOST,
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": str(threads),
    }
