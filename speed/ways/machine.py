"""The machine's own bounds: how fast it multiplies, and how fast it reads and copies memory."""

import time
from collections.abc import Callable
from typing import Any

import torch

from progrl.training.compiled import linear
from speed.worker import Job
from speed.workload import Workload

SIDE = 1024
"""Of the matrices that are multiplied: they fit into the second or third level of cache."""
FLOATS = 2**26
"""Numbers that are read: 256 MiB, more than any cache holds."""


def bounds(work: Workload, side: int = SIDE, floats: int = FLOATS) -> Job:
    """Facts: `gflops` and `gflops_bfloat16` of a matrix product, `read_gb` and `copy_gb` a second
    (a copy moves each byte twice), all of the best of several short tries.

    Of float32 the faster counts of torch's own product, which is MKL's, and oneDNN's: on some
    processors they differ by two.
    """
    square = torch.randn(side, side)
    half = square.bfloat16()
    source = torch.ones(floats)
    target = torch.empty_like(source)
    operations, size = 2 * side**3 / 1e9, source.numel() * source.element_size() / 1e9

    def job() -> dict[str, Any]:
        return {
            "gflops": operations
            / min(best(lambda: square @ square), best(lambda: linear(square, square))),
            "gflops_bfloat16": operations / best(lambda: half @ half),
            "read_gb": size / best(source.sum),
            "copy_gb": 2 * size / best(lambda: target.copy_(source)),
        }

    return job


def best(work: Callable[[], object], tries: int = 7) -> float:
    """Least seconds, of CPU time with one thread: what disturbs only slows down."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    found = float("inf")
    for _ in range(tries):
        start = clock()
        work()
        found = min(found, clock() - start)
    return found
