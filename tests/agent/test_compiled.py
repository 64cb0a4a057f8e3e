"""The compiled decoder: the same as the other, up to rounding, for every kind of model."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from progrl.agent.engines import compiled
from progrl.agent.engines.compiled import CompiledDecoder
from progrl.agent.engines.decoder import Decoder
from progrl.agent.engines.local import LocalEngine
from progrl.agent.model import make_model
from progrl.agent.native import find_compiler
from progrl.config import load_config
from progrl.errors import ConfigurationError
from tests.agent.test_local_engine import VOCABULARY, qwen2, qwen3, sharper, small, talks

there = pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler")


def grouped() -> Any:
    """Heads as wide as large models have them, and an output projection with a bias."""
    with torch.random.fork_rng():
        torch.manual_seed(4)
        model = LlamaForCausalLM(small(LlamaConfig, head_dim=128, attention_bias=True))
        return sharper(model.eval())


@there
@pytest.mark.parametrize(
    "model", [qwen3(), qwen3(kv_heads=1), qwen2(), grouped()], ids=["qwen3", "one", "two", "wide"]
)
def test_it_computes_what_the_other_computes(model: Any) -> None:
    plain, fast = Decoder(model, torch.float32), CompiledDecoder(model, torch.float32)
    random = np.random.default_rng(1)
    counts = np.array([1, 15, 16, 33, 120])  # around what the kernel takes at once; one grows
    caches = [decoder.new_cache(7) for decoder in (plain, fast)]
    with torch.inference_mode():
        read = random.integers(10, VOCABULARY, counts.sum())
        one, other = (
            d.read(c, np.arange(5), counts, read)
            for d, c in zip((plain, fast), caches, strict=True)
        )
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-4)
        for step in range(12):
            slots = np.array([0, 1, 2, 3, 4] if step % 3 else [0, 2, 4])
            ids = random.integers(10, VOCABULARY, len(slots))
            one, other = (
                d.decode(c, slots, ids) for d, c in zip((plain, fast), caches, strict=True)
            )
            torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-4)
    assert caches[1].lengths.tolist() == caches[0].lengths.tolist()
    torch.testing.assert_close(caches[1].values, caches[0].values, rtol=1e-4, atol=1e-4)


@there
@pytest.mark.parametrize("model", [qwen3(kv_heads=1), grouped()], ids=["one", "wide"])
def test_a_token_is_the_same_whatever_is_computed_beside_it(model: Any) -> None:
    """To the last bit: read at once or in parts, alone or in company, in a slot or in a copy."""
    decoder, length = CompiledDecoder(model, torch.float32), 61
    cache = decoder.new_cache(5)
    ids = np.random.default_rng(2).integers(10, VOCABULARY, 3 * length)
    mine, others = ids[:length], ids[length:]

    def read(slots: list[int], counts: list[int], ids: Any) -> torch.Tensor:
        return decoder.read(cache, np.array(slots), np.array(counts), ids)

    with torch.inference_mode():
        whole = read([0], [length], mine)[0]
        company = read([4, 1, 2], [length, length, length], np.concatenate([others, mine]))[2]
        read([3], [7], mine[:7])
        read([3], [33], mine[7:40])
        read([3], [1], mine[40:41])
        cache.copy(3, 0)
        parts = read([0], [length - 41], mine[41:])[0]
        cache.lengths[2] -= 1  # as where the last token is read once more
        again = decoder.decode(cache, np.array([2]), mine[-1:])[0]
    for other in (company, parts, again):
        assert torch.equal(other, whole)


@there
def test_greedy_it_says_what_the_other_says() -> None:
    model = qwen3()
    plain, fast = (LocalEngine(model, slots=24, compile=c) for c in (False, True))
    said, again = (asyncio.run(talks(engine, range(20))) for engine in (plain, fast))
    for one, other in zip(said, again, strict=True):
        for (_, a), (_, b) in zip(one, other, strict=True):
            assert a.ids == b.ids and a.cause == b.cause
            assert b.logprobs == pytest.approx(a.logprobs, abs=1e-3)


@there
def test_a_sample_does_not_depend_on_company() -> None:
    engine = LocalEngine(qwen3(), slots=16, compile=True)
    together = asyncio.run(talks(engine, range(12), temperature=1.0))
    for number in (0, 7):
        (alone,) = asyncio.run(talks(engine, [number], temperature=1.0))
        assert [s.ids for _, s in alone] == [s.ids for _, s in together[number]]


def test_what_it_needs_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = Path(__file__).parents[2] / "params.yaml"
    with pytest.raises(ConfigurationError, match="engine: compile: needs dtype float32"):
        load_config(root, overrides=["engine={compile: true, dtype: bfloat16}"])
    odd = make_model(vocabulary=50, head_dim=8, hidden=32, ffn=64, seed=1)
    with pytest.raises(ConfigurationError, match=r"multiples of 16.* head_dim 8.*compile=false"):
        CompiledDecoder(odd, torch.float32)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"no g\+\+ or clang\+\+.*compile=false"):
        LocalEngine(qwen3(), compile=True)
    liar = tmp_path / "liar"
    for script in ("#!/bin/sh\n", "no program"):
        liar.write_text(script)
        liar.chmod(0o755)
        monkeypatch.setenv("CXX", str(liar))
        with pytest.raises(ConfigurationError, match=r"liar could not compile .*compile=false"):
            LocalEngine(qwen3(), compile=True)


@there
def test_what_the_compiler_says_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "kernel.cpp"
    broken.write_text("no program\n")
    monkeypatch.setattr(compiled, "_SOURCE", broken)
    with pytest.raises(ConfigurationError, match=r"could not compile .*kernel.cpp:1.*false"):
        LocalEngine(qwen3(), compile=True)
