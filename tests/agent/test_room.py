"""The memory of the engine's cache is known before it is taken, and refused where there is none."""

import re
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from progrl.agent.engines.cache import Cache, slot_bytes
from progrl.agent.engines.local import LocalEngine
from progrl.agent.model import make_model
from progrl.config import load_config
from progrl.errors import ConfigurationError
from progrl.stages.parts import engine_of

WINDOW = 1024


def model() -> Any:
    return make_model(vocabulary=300, layers=2, heads=3, kv_heads=1, window=WINDOW, seed=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [1, 128, 129, 300, 1024])
def test_the_bytes_are_those_that_a_full_cache_takes(dtype: torch.dtype, length: int) -> None:
    cache = Cache(2, 5, 3, 16, dtype)
    for grown in range(1, length + 1, 100):
        cache.ensure(grown)
    cache.ensure(length)
    assert cache.keys.nbytes + cache.values.nbytes == 5 * slot_bytes(2, 3, 16, dtype, length)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_more_slots_than_there_is_memory_for_are_refused(dtype: str) -> None:
    each = slot_bytes(2, 1, 32, getattr(torch, dtype), WINDOW)
    total = psutil.virtual_memory().total
    slots = next(n for n in (10**power for power in count(2)) if n * each > total)
    with pytest.raises(ConfigurationError) as caught:
        LocalEngine(model(), slots=slots, dtype=dtype)  # type: ignore[arg-type]
    told = str(caught.value)
    assert told.startswith(f"engine.slots: {slots} ") and f"{slots * each:,} bytes" in told
    most = int(re.search(r"Set it to (\d+) at most", told)[1])  # type: ignore[index]
    assert 0 < most * each <= total


def test_a_configured_engine_is_refused_before_it_allocates() -> None:
    config = load_config(profile="tiny", overrides=["engine.slots=100000000"])
    before = psutil.Process().memory_info().rss
    with pytest.raises(ConfigurationError, match=r"engine\.slots: 100000000 convers"):
        engine_of(config, model(), Path())
    assert psutil.Process().memory_info().rss - before < 2**28


def test_what_fits_is_taken() -> None:
    assert LocalEngine(model(), slots=64).window == WINDOW
