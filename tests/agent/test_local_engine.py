"""The local engine: equal to transformers, independent of company, never hanging."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from progrl.agent.engines.contracts import Sample, SamplingParams
from progrl.agent.engines.local import LocalConversation, LocalEngine
from progrl.agent.model import make_model, save_model
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.errors import ConfigurationError, EngineFault

VOCABULARY, END = 300, 7


def qwen3(seed: int = 1, kv_heads: int = 3, tied: bool = True) -> Any:
    model: Any = make_model(
        vocabulary=VOCABULARY, kv_heads=kv_heads, layers=2, window=256, tied=tied, seed=seed
    )
    return sharper(model)


def sharper(model: Any) -> Any:
    """Random weights make nearly even distributions; larger ones make clear choices."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                weight.mul_(4.0 if "embed" not in name else 1.0)
    return model


def small(config: type, **more: Any) -> Any:
    return config(
        vocab_size=VOCABULARY,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=96,
        max_position_embeddings=256,
        **more,
    )


def llama() -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(2)
        rope = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
        return sharper(LlamaForCausalLM(small(LlamaConfig, rope_parameters=rope)).eval())


def qwen2() -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = sharper(Qwen2ForCausalLM(small(Qwen2Config)).eval())
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.normal_(weight)
        return model


def ids(random: Random, low: int = 1, high: int = 40) -> list[int]:
    return [random.randrange(10, VOCABULARY) for _ in range(random.randint(low, high))]


def params(seed: int = 0, temperature: float = 0.0, tokens: int = 12) -> SamplingParams:
    return SamplingParams(temperature, tokens, frozenset({END}), seed)


async def talk(engine: LocalEngine, number: int, turns: int = 3, temperature: float = 0.0) -> Any:
    """Turns of one conversation: (what was read, what was sampled) each."""
    random = Random(number)
    conversation, record = engine.open(), []
    for turn in range(turns):
        read = ids(random)
        conversation.extend(read)
        sample = await conversation.sample(params(1000 * number + turn, temperature))
        record.append((read, sample))
    conversation.close()
    return record


async def talks(engine: LocalEngine, numbers: Sequence[int], temperature: float = 0.0) -> Any:
    return await asyncio.gather(*(talk(engine, n, temperature=temperature) for n in numbers))


def greedy(model: Any, context: list[int], tokens: int = 12) -> list[int]:
    out = model.generate(
        torch.tensor([context]),
        attention_mask=torch.ones(1, len(context), dtype=torch.long),
        max_new_tokens=tokens,
        do_sample=False,
        eos_token_id=END,
        pad_token_id=0,
    )
    return out[0, len(context) :].tolist()


def reference_logprobs(model: Any, context: list[int], sampled: list[int], t: float) -> list[float]:
    with torch.no_grad():
        logits = model(torch.tensor([context + sampled])).logits[0, len(context) - 1 : -1]
    rows = torch.log_softmax(logits / t, dim=-1)
    return rows.gather(1, torch.tensor(sampled)[:, None])[:, 0].tolist()


@pytest.mark.parametrize(
    "model",
    [qwen3(), qwen3(kv_heads=1, tied=False), llama(), qwen2()],
    ids=["qwen3", "qwen3-grouped-untied", "llama-scaled", "qwen2-biased"],
)
def test_greedy_equals_transformers_over_many_turns(model: Any) -> None:
    for record in asyncio.run(talks(LocalEngine(model, slots=24), range(20))):
        context: list[int] = []
        for read, sample in record:
            context += read
            assert sample.ids == greedy(model, context)
            expected = reference_logprobs(model, context, sample.ids, 1.0)
            assert sample.logprobs == pytest.approx(expected, abs=1e-4)
            context += sample.ids


def test_logprobs_are_after_temperature() -> None:
    model = qwen3()
    (record,) = asyncio.run(talks(LocalEngine(model), [5], temperature=0.7))
    context: list[int] = []
    for read, sample in record:
        context += read
        expected = reference_logprobs(model, context, sample.ids, 0.7)
        assert sample.logprobs == pytest.approx(expected, abs=1e-4)
        context += sample.ids


def test_a_sample_does_not_depend_on_company_slots_or_sharing() -> None:
    model = qwen3()
    together = asyncio.run(talks(LocalEngine(model, slots=48), range(48), temperature=1.0))
    crowded = asyncio.run(talks(LocalEngine(model, slots=5), range(48), temperature=1.0))
    for number in (0, 17, 47):
        (alone,) = asyncio.run(talks(LocalEngine(model, slots=1), [number], temperature=1.0))
        for other in (together[number], crowded[number]):
            assert [s.ids for _, s in other] == [s.ids for _, s in alone]
            for (_, a), (_, b) in zip(other, alone, strict=True):
                assert a.logprobs == pytest.approx(b.logprobs, abs=1e-5)


def test_a_shared_opening_is_read_once_and_seeds_differ() -> None:
    engine = LocalEngine(qwen3())

    async def group(seeds: Sequence[int]) -> list[Sample]:
        conversations = [engine.open() for _ in seeds]
        for conversation in conversations:
            conversation.extend(range(20, 60))
        pairs = zip(conversations, seeds, strict=True)
        return await asyncio.gather(*(c.sample(params(s, 1.0)) for c, s in pairs))

    samples = asyncio.run(group([1, 2, 3, 1]))
    assert engine.statistics.read == 40
    assert samples[0] == samples[3]
    assert samples[0].ids != samples[1].ids != samples[2].ids


def test_only_new_ids_are_read() -> None:
    engine = LocalEngine(qwen3())
    (record,) = asyncio.run(talks(engine, [3]))
    # Of each sample but the last one, its last id is read with what follows it.
    assert engine.statistics.read == sum(len(read) for read, _ in record) + len(record) - 1
    assert engine.statistics.sampled == sum(len(sample.ids) for _, sample in record)


def test_sampling_follows_the_distribution() -> None:
    model = qwen3()
    engine = LocalEngine(model, slots=64)
    context = list(range(20, 30))

    async def one(seed: int) -> int:
        conversation = engine.open()
        conversation.extend(context)
        sample = await conversation.sample(params(seed, 0.5, tokens=1))
        conversation.close()
        return sample.ids[0]

    async def many() -> list[int]:
        return await asyncio.gather(*(one(seed) for seed in range(3000)))

    counts = torch.bincount(torch.tensor(asyncio.run(many())), minlength=VOCABULARY) / 3000
    with torch.no_grad():
        expected = torch.softmax(model(torch.tensor([context])).logits[0, -1] / 0.5, -1)
    likely = expected.topk(5).indices
    # Three standard deviations of a share over 3,000 draws are at most 0.028.
    assert (counts[likely] - expected[likely]).abs().max() < 0.03
    assert (counts - expected).abs().sum() / 2 < 0.2


def test_causes_of_the_end() -> None:
    model = qwen3()
    engine = LocalEngine(model, window=50)

    async def run() -> None:
        conversation = engine.open()
        conversation.extend(range(20, 50))
        first = await conversation.sample(params(tokens=5))
        assert (first.cause, len(first.ids)) == ("length", 5)
        stop = SamplingParams(0.0, 5, frozenset(range(VOCABULARY)), 0)
        second = await conversation.sample(stop)
        assert (second.cause, len(second.ids)) == ("stop", 1)
        third = await conversation.sample(params(tokens=100))
        assert (third.cause, len(third.ids)) == ("window", 50 - 30 - 6)
        assert await conversation.sample(params()) == Sample([], [], "window")

    asyncio.run(run())


def test_weights_are_really_replaced(tmp_path: Path) -> None:
    codec = CompactCodec(train_tokenizer(["hello"], (), VOCABULARY))
    models = {"a": qwen3(1), "b": qwen3(2)}
    for name, model in models.items():
        save_model(tmp_path / name, model, codec)
    engine = LocalEngine(models["a"])
    context = list(range(30, 60))

    async def sample(conversation: LocalConversation) -> list[int]:
        return (await conversation.sample(params())).ids

    for name in ("a", "b", "a"):
        engine.load_weights(tmp_path / name)
        conversation = engine.open()
        conversation.extend(context)
        assert asyncio.run(sample(conversation)) == greedy(models[name], context)
        # A conversation that outlives its weights is read again with the new ones.
        other = "b" if name == "a" else "a"
        engine.set_weights_from(models[other])
        conversation.extend([40])
        assert asyncio.run(sample(conversation)) == greedy(models[other], conversation.ids[:-12])


def test_the_engine_keeps_its_own_copy_of_the_weights() -> None:
    model = qwen3()
    engine = LocalEngine(model)
    before = asyncio.run(talks(engine, [1]))
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    assert asyncio.run(talks(engine, [1])) == before


def test_more_conversations_than_slots_held_open_do_not_hang() -> None:
    model = qwen3()
    engine = LocalEngine(model, slots=2)

    async def run() -> None:
        conversations = [engine.open() for _ in range(4)]
        for turn in range(2):
            for number, conversation in enumerate(conversations):
                conversation.extend(range(20 + number, 40))
                expected = greedy(model, list(conversation.ids))
                assert (await conversation.sample(params(turn))).ids == expected

    asyncio.run(asyncio.wait_for(run(), 20))


def test_a_failing_step_reaches_all_who_wait_and_the_engine_goes_on() -> None:
    engine = LocalEngine(qwen3(), slots=4)
    decode = engine._batch.decoder.decode
    calls = 0

    def failing(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise MemoryError("no room")
        return decode(*arguments)

    engine._batch.decoder.decode = failing  # type: ignore[method-assign]

    async def run() -> list[Any]:
        tasks = (talk(engine, number) for number in range(8))
        return await asyncio.gather(*tasks, return_exceptions=True)

    results = asyncio.run(asyncio.wait_for(run(), 20))
    assert all(isinstance(result, EngineFault) for result in results)
    assert "no room" in str(results[0])
    assert asyncio.run(talks(engine, [2])) == asyncio.run(talks(LocalEngine(qwen3()), [2]))


def test_cancelling_a_sample_leaves_the_conversation_as_it_was() -> None:
    model = qwen3()
    engine = LocalEngine(model, slots=3)

    async def run() -> None:
        conversation, other = engine.open(), engine.open()
        conversation.extend(range(20, 40))
        other.extend(range(50, 60))
        task = asyncio.create_task(conversation.sample(params(tokens=100)))
        company = asyncio.create_task(other.sample(params()))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        conversation.extend([44])
        sample = await conversation.sample(params())
        assert sample.ids == greedy(model, [*range(20, 40), 44])
        assert (await company).ids == greedy(model, list(range(50, 60)))

    asyncio.run(run())


async def misuse(engine: Any, model: Any) -> None:
    """What no engine's conversation lets happen; `model` is of the engine's shape."""
    conversation = engine.open()
    with pytest.raises(EngineFault, match="extended before"):
        await conversation.sample(params())
    with pytest.raises(EngineFault, match="vocabulary"):
        conversation.extend([VOCABULARY])
    conversation.extend([20])
    task = asyncio.create_task(conversation.sample(params()))
    await asyncio.sleep(0)
    with pytest.raises(EngineFault, match="already"):
        conversation.extend([3])
    with pytest.raises(EngineFault, match="in flight"):
        engine.set_weights_from(model)
    await task
    conversation.close()
    conversation.close()
    with pytest.raises(EngineFault, match="closed"):
        conversation.extend([3])


def test_misuse_is_told() -> None:
    model = qwen3()
    engine = LocalEngine(model)
    asyncio.run(misuse(engine, model))
    with pytest.raises(ConfigurationError, match=r"agent\.window"):
        LocalEngine(model, window=1000)
    other = make_model(vocabulary=VOCABULARY, layers=1, seed=1)
    with pytest.raises(EngineFault, match="cannot take the place"):
        engine.set_weights_from(other)


def test_bfloat16_stays_close() -> None:
    model = qwen3()
    (record,) = asyncio.run(talks(LocalEngine(model, dtype="bfloat16"), [4], temperature=1.0))
    context: list[int] = []
    for read, sample in record:
        context += read
        expected = reference_logprobs(model, context, sample.ids, 1.0)
        assert sample.logprobs == pytest.approx(expected, abs=0.5)
        context += sample.ids


def test_a_standing_engine_repeats_a_fresh_ones_samples_to_the_last_bit() -> None:
    """What a resumed run relies on: its engine is new, the uninterrupted run's has grown."""
    standing, fresh = LocalEngine(qwen3(), slots=40), LocalEngine(qwen3(), slots=40)
    asyncio.run(talks(standing, range(100, 180), temperature=1.0))
    standing.set_weights_from(qwen3())
    numbers = range(60)
    again = asyncio.run(talks(standing, numbers, temperature=1.0))
    assert again == asyncio.run(talks(fresh, numbers, temperature=1.0))
