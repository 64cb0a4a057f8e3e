"""Takes turns between ways, each in a process of its own, so that load disturbs all alike."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from progrl.agent import native
from progrl.errors import ProgrlError
from speed.workload import Workload

ROOT = Path(__file__).resolve().parent.parent
Reading = Mapping[str, Any]
Readings = Mapping[str, Sequence[Reading]]
MAIN, PEER, VLLM = (
    sys.executable,
    str(ROOT / ".venv-speed/bin/python"),
    str(ROOT / ".venv-vllm/bin/python"),
)
"""Interpreters: this one, TRL's (`make setup-speed`), vLLM's (`make setup-vllm`)."""


class WayFailed(ProgrlError):
    """A way could not do its job; the message has the last words of its process."""


@dataclass(frozen=True)
class Way:
    """How to start a way.

    Attributes:
        name: `module.function` in `speed.ways`.
        work: what it is to do.
        options: further arguments of the function.
        python: the interpreter that has what it needs.
        threads: that it may compute with.
    """

    name: str
    work: Workload
    options: Mapping[str, Any] = field(default_factory=dict)
    python: str = MAIN
    threads: int = 1

    @property
    def installed(self) -> bool:
        """Its environment is there."""
        return Path(self.python).exists()


def kernels() -> dict[str, bool]:
    """Options of our ways: with the keys `compile`, where there is a compiler for them."""
    return {"compile": native.find_compiler() is not None}


def environment(threads: int) -> dict[str, str]:
    """Of a process that computes with so many threads, and asks no hub."""
    count = str(threads)
    return {
        **os.environ,
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
    }


@contextmanager
def started(way: Way) -> Iterator[Callable[[], Reading]]:
    """A process that does the way's job each time the function is called.

    Raises:
        WayFailed: it ended before it had answered.
    """
    spec = {"way": way.name, "work": way.work.to_json(), "options": dict(way.options)}
    with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryDirectory() as scratch:
        process = subprocess.Popen(
            [way.python, "-m", "speed.worker", json.dumps(spec)],
            cwd=ROOT,
            env={**environment(way.threads), "TMPDIR": scratch},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert process.stdin and process.stdout
        requests, answers = process.stdin, process.stdout

        def answer() -> Reading:
            line = answers.readline()
            if not line:
                process.wait()
                errors.seek(0)
                said = errors.read().strip().splitlines()
                raise WayFailed(f"{way.name}: {said[-1] if said else 'ended without a word'}")
            return dict(json.loads(line))

        def run() -> Reading:
            requests.write("\n")
            requests.flush()
            return answer()

        try:
            answer()
            yield run
        finally:
            process.kill()
            process.wait()
            requests.close()
            answers.close()


def compare(ways: Mapping[str, Way], rounds: int) -> Readings:
    """Readings of each way, one a round; the first round, in which caches fill, is left out.

    Raises:
        WayFailed: one of them failed.
    """
    with ExitStack() as stack:
        runs = {name: stack.enter_context(started(way)) for name, way in ways.items()}
        readings: dict[str, list[Reading]] = {name: [] for name in ways}
        for number in range(rounds + 1):
            for name, run in runs.items():
                reading = run()
                if number:
                    readings[name].append(reading)
    return readings


def middle(readings: Sequence[Reading], key: str = "cpu") -> float:
    """The median of a figure."""
    return median(reading[key] for reading in readings)


def ratio(readings: Readings, slow: str, fast: str, key: str = "cpu") -> float:
    """How many times as long `slow` takes: the median over rounds of the rounds' ratios."""
    pairs = zip(readings[slow], readings[fast], strict=True)
    return median(a[key] / b[key] for a, b in pairs)


def versus(readings: Readings, slow: str, fast: str, key: str) -> float | None:
    """`ratio`; None where one of the two is not installed."""
    return ratio(readings, slow, fast, key) if {slow, fast} <= readings.keys() else None


def memory(readings: Sequence[Reading]) -> dict[str, float]:
    """Peak memory in MiB: of the whole process, and beyond what it held before its first job."""
    most = max(reading["peak_mib"] for reading in readings)
    idle = readings[0]["idle_mib"]
    return {"peak": round(most, 1), "beyond_idle": round(most - idle, 1)}
