"""The engine behind HTTP keeps what the local one promises; skipped where vLLM is not installed."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest
import torch

from progrl.agent.engines.contracts import Sample, SamplingParams
from progrl.agent.engines.vllm import ENVIRONMENT, VllmEngine
from progrl.agent.model import make_model, save_model
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.errors import ConfigurationError, EngineFault
from tests.agent.test_local_engine import (
    VOCABULARY,
    greedy,
    misuse,
    params,
    qwen3,
    reference_logprobs,
    talks,
)
from tests.conftest import ROOT

CLOSE = 1e-3
"""Logits closer than this may be ordered otherwise by another program."""
installed = pytest.mark.skipif(
    not (ROOT / ENVIRONMENT / "bin" / "python").exists(),
    reason=f"{ENVIRONMENT} is not there: make setup-vllm",
)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def engine() -> Iterator[VllmEngine]:
    made = VllmEngine(
        qwen3(), project=ROOT, slots=16, window=256, dtype="float32", memory=0.02, threads=1
    )
    yield made
    made.close()


def top_two_close(model: Any, context: list[int]) -> bool:
    with torch.no_grad():
        best = model(torch.tensor([context])).logits[0, -1].topk(2).values
    return bool(best[0] - best[1] < CLOSE)


def assert_greedy(model: Any, context: list[int], sample: Sample) -> None:
    """What transformers chooses too, up to the first choice that is a close one."""
    expected = greedy(model, context, len(sample.ids))
    for at, (mine, other) in enumerate(zip(sample.ids, expected, strict=False)):
        if mine != other:
            assert top_two_close(model, context + expected[:at])
            return
    assert len(sample.ids) == len(expected)


@installed
def test_greedy_equals_transformers_over_many_turns(engine: VllmEngine) -> None:
    model = qwen3()
    engine.set_weights_from(model)
    for record in asyncio.run(talks(engine, range(12))):
        context: list[int] = []
        for read, sample in record:
            context += read
            assert_greedy(model, context, sample)
            expected = reference_logprobs(model, context, sample.ids, 1.0)
            assert sample.logprobs == pytest.approx(expected, abs=1e-3)
            context += sample.ids


@installed
def test_logprobs_are_after_temperature_and_a_seed_repeats(engine: VllmEngine) -> None:
    model = qwen3()
    engine.set_weights_from(model)
    first, again = (asyncio.run(talks(engine, [5, 6], temperature=0.7)) for _ in range(2))
    assert [[s.ids for _, s in record] for record in first] == [
        [s.ids for _, s in record] for record in again
    ]
    context: list[int] = []
    for read, sample in first[0]:
        context += read
        expected = reference_logprobs(model, context, sample.ids, 0.7)
        assert sample.logprobs == pytest.approx(expected, abs=1e-3)
        context += sample.ids


@installed
def test_weights_are_really_replaced(engine: VllmEngine, tmp_path: Path) -> None:
    codec = CompactCodec(train_tokenizer(["hello"], (), VOCABULARY))
    models = {"a": qwen3(1), "b": qwen3(2)}
    context = [Random(4).randrange(10, VOCABULARY) for _ in range(70)]  # fills cached blocks

    async def sample() -> Sample:
        conversation = engine.open()
        conversation.extend(context)
        return await conversation.sample(params())

    outcomes = []
    for name in ("a", "b", "a"):
        save_model(tmp_path / name, models[name], codec)
        engine.load_weights(tmp_path / name)
        outcomes.append(asyncio.run(sample()))
        assert_greedy(models[name], context, outcomes[-1])
    assert outcomes[0].ids == outcomes[2].ids != outcomes[1].ids


@installed
def test_causes_of_the_end_and_a_bias_on_the_first_token(engine: VllmEngine) -> None:
    engine.set_weights_from(qwen3())

    async def run() -> None:
        conversation = engine.open()
        conversation.extend(range(20, 50))
        first = await conversation.sample(params(tokens=5))
        assert (first.cause, len(first.ids)) == ("length", 5)
        every = SamplingParams(0.0, 5, frozenset(range(100)), 0, ((42, 100.0),))
        second = await conversation.sample(every)
        assert (second.cause, second.ids) == ("stop", [42])
        leaning = SamplingParams(0.0, 5, frozenset(), 0, ((43, 100.0),))
        third = await conversation.sample(leaning)
        assert third.ids[0] == 43 and set(third.ids[1:]) != {43}
        conversation.extend([30] * (250 - len(conversation.ids)))
        fourth = await conversation.sample(params(tokens=100))
        assert (fourth.cause, len(fourth.ids)) == ("window", 6)
        assert await conversation.sample(params()) == Sample([], [], "window")

    asyncio.run(run())


@installed
def test_misuse_is_told(engine: VllmEngine) -> None:
    asyncio.run(misuse(engine, qwen3()))
    with pytest.raises(EngineFault, match="cannot take"):
        engine.set_weights_from(make_model(vocabulary=VOCABULARY, layers=1, seed=1))


@installed
def test_it_listens_on_loopback_alone_and_ends_with_us(engine: VllmEngine) -> None:
    top = psutil.Process(engine._server.process.pid)
    processes = [top, *top.children(recursive=True)]
    listening = {
        c.laddr.ip for p in processes for c in p.net_connections("tcp") if c.status == "LISTEN"
    }
    assert listening == {"127.0.0.1"}
    engine.close()
    assert psutil.wait_procs(processes, timeout=20)[1] == []
    assert not engine._folder.exists()


def test_without_the_environment_it_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="make setup-vllm"):
        VllmEngine(qwen3(), project=tmp_path, slots=1, window=64, dtype="float32", memory=0.1)
