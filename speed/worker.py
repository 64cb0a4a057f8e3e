"""`python -m speed.worker JSON`: prepares one way, then does its job whenever it is told to.

A line on standard input asks for one job; a line of JSON on standard output tells its seconds and
the process's memory. What libraries print goes to standard error.
"""

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from speed.workload import Workload

Job = Callable[[], dict[str, Any]]
MIB = 2**20


def find(way: str) -> Callable[..., Job]:
    """The way of a name like `ours.rollout`: a function of a module in `speed.ways`."""
    module, name = way.split(".")
    found: Callable[..., Job] = getattr(importlib.import_module(f"speed.ways.{module}"), name)
    return found


def peak() -> float:
    """Most memory that this process has held so far, in MiB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / MIB if sys.platform == "darwin" else most / 1024


@contextmanager
def measured(reading: dict[str, Any]) -> Iterator[None]:
    """Add the block's seconds to `reading`: `wall`, and `cpu`, this process's in all threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    reading["wall"] = time.perf_counter() - wall
    reading["cpu"] = time.process_time() - cpu


def serve(spec: dict[str, Any], requests: TextIO, answers: TextIO) -> None:
    """Answer until the requests end.

    Args:
        spec: `way`, `work` and `options`.
    """

    def tell(value: dict[str, Any]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    work = Workload.from_json(spec["work"])
    job = find(spec["way"])(work, **spec["options"])
    idle = peak()
    tell({"ready": True})
    for _ in requests:
        reading: dict[str, Any] = {}
        with measured(reading):
            facts = job()
        # A way that knows better, such as one whose job waits first, tells its own seconds.
        tell({**reading, "idle_mib": idle, "peak_mib": peak(), **facts})


def main() -> None:
    """Keep standard output for the answers, then serve."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(json.loads(sys.argv[1]), sys.stdin, answers)


if __name__ == "__main__":
    main()
