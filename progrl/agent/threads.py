"""How many threads compute a model fastest on this machine, by measurement."""

import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from progrl.agent.shape import Shape, shape_of
from progrl.config import Config
from progrl.errors import ConfigurationError, DataError
from progrl.files import read_json, write_json
from progrl.ranks import launched

logger = logging.getLogger(__name__)

_NEAR = 1.05
"""Fewer threads win where they take at most so many times what the fastest take."""
_ROUNDS, _READ, _TOKENS, _VOCABULARY = 3, 256, 2048, 4096
_PATIENCE = 1.0
"""Seconds after which a job is not repeated: where others compute, more threads may take long."""


def cores() -> int:
    """Of this process's, where the system tells; else the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def counts(most: int) -> list[int]:
    """1, 2, 4 and so on up to `most`, which is among them.

    >>> counts(6)
    [1, 2, 4, 6]
    """
    return [2**k for k in range(most.bit_length()) if 2**k < most] + [most]


def threads_of(config: Config, project: Path) -> int:
    """The configuration's number of threads; where it is `auto`, what is fastest just now.

    Each of the processes that share the work may have its part of the cores.

    Args:
        project: folder that `agent.folder` is relative to.

    Raises:
        ConfigurationError: it is `auto`, and the model's shape is not known; or other processes
            that a launcher has started would measure at the same time.
    """
    if config.threads != "auto":
        return config.threads
    if launched() is not None:
        raise ConfigurationError(
            "threads: auto cannot measure while a launcher's other processes do: give a number."
        )
    shape = shape_of(config.agent, project)
    if shape is None:
        raise ConfigurationError(
            f"threads: auto needs the model's shape, and agent.folder has no config.json in "
            f"{project}: give a number, or mend the folder."
        )
    found = measure(shape, config.engine.slots, max(1, cores() // config.processes))
    chosen = fewest_near_best(found)
    logger.info("threads: auto is %d (seconds by number: %s)", chosen, found)
    return chosen


def settled(config: Config, project: Path, work: Path) -> Config:
    """The configuration with a number of threads, which `work` keeps where it was measured."""
    if config.threads != "auto":
        return config
    note = work / "threads.json"
    if not note.exists():
        write_json(note, {"threads": threads_of(config, project)})
    kept = read_json(note)
    threads = kept.get("threads") if isinstance(kept, dict) else None
    if type(threads) is not int or threads < 1:
        raise DataError(f"{note}: no number of threads. Remove it, and they are measured again.")
    return config.model_copy(update={"threads": threads})


def fewest_near_best(seconds: Mapping[int, float]) -> int:
    """The fewest threads that are within 5% of the fastest.

    >>> fewest_near_best({1: 1.9, 2: 1.02, 4: 1.0, 8: 1.4})
    2
    """
    best = min(seconds.values())
    return min(count for count, value in seconds.items() if value <= _NEAR * best)


def measure(shape: Shape, rows: int, most: int) -> dict[int, float]:
    """Seconds by number of threads: the geometric mean of two that a training step consists of.

    One layer of the model decodes a token of `rows` conversations of 256, and is trained on 2,048
    tokens; of each the best of up to three times counts. The number of torch's threads is as before
    afterwards.
    """
    import torch

    before, found = torch.get_num_threads(), {}
    decode, train = _jobs(shape, rows)
    try:
        for count in counts(most):
            torch.set_num_threads(count)
            found[count] = math.sqrt(_best(decode) * _best(train))
    finally:
        torch.set_num_threads(before)
    return found


def _best(job: Callable[[], object]) -> float:
    job()  # threads start
    times: list[float] = []
    while len(times) < _ROUNDS and sum(times) < _PATIENCE:
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def _jobs(shape: Shape, rows: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """A decode step, and a forward and backward pass, of one layer of the shape."""
    import numpy as np
    import torch

    from progrl.agent.engines.decoder import Decoder
    from progrl.agent.model import make_model

    vocabulary = min(shape.vocabulary, _VOCABULARY)
    model = make_model(
        vocabulary=vocabulary,
        hidden=shape.hidden,
        layers=1,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        ffn=shape.ffn,
        window=2 * _READ,
        seed=0,
    )
    decoder = Decoder(model, torch.float32)
    cache, slots = decoder.new_cache(rows), np.arange(rows)
    cache.ensure(2 * _READ)
    batch = torch.zeros((_TOKENS // _READ, _READ), dtype=torch.int64)

    @torch.inference_mode()
    def decode() -> None:
        cache.lengths[:] = _READ
        decoder.logits(decoder.decode(cache, slots, np.zeros(rows, dtype=np.int64)))

    def train() -> None:
        model(input_ids=batch).logits.mean().backward()

    return decode, train
