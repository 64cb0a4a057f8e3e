"""Conversations that go on alike are computed once until they part, and nobody can tell."""

import asyncio
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.agent.engines.contracts import Sample, SamplingParams
from progrl.agent.engines.local import LocalEngine
from progrl.agent.model import make_model

VOCABULARY, END = 60, 7
MODEL = make_model(vocabulary=VOCABULARY, layers=2, window=192, seed=1)
Record = list[tuple[list[int], SamplingParams, Sample]]


def params(seed: int, temperature: float) -> SamplingParams:
    return SamplingParams(temperature, 6, frozenset({END}), seed)


async def member(engine: LocalEngine, group: int, number: int, temperature: float) -> Record:
    """Hears what its group hears, now and then something of its own, and may lose patience."""
    common, own = Random(group), Random(1000 * group + number)
    conversation, record = engine.open(), []
    for turn in range(4):
        read = [common.randrange(10, VOCABULARY) for _ in range(common.randint(1, 12))]
        conversation.extend(read)
        if own.random() < 0.2:
            conversation.extend([own.randrange(10, VOCABULARY)])
        if own.random() < 0.2:
            for _ in range(own.randrange(5)):
                await asyncio.sleep(0)
        # Every second one has its neighbour's seed, and stays with it for long.
        how = params(100 * group + 10 * turn + number // 2, temperature)
        if own.random() < 0.2:
            impatient = asyncio.ensure_future(conversation.sample(how))
            for _ in range(own.randrange(4)):
                await asyncio.sleep(0)
            impatient.cancel()
            await asyncio.gather(impatient, return_exceptions=True)
        context = list(conversation.ids)
        record.append((context, how, await conversation.sample(how)))
        if own.random() < 0.1:
            break
    conversation.close()
    return record


async def groups(engine: LocalEngine, sizes: list[int], temperature: float) -> list[Record]:
    members = [(g, n) for g, size in enumerate(sizes) for n in range(size)]
    return await asyncio.gather(*(member(engine, g, n, temperature) for g, n in members))


def alone(context: list[int], how: SamplingParams) -> Sample:
    async def one() -> Sample:
        conversation = LocalEngine(MODEL, slots=1).open()
        conversation.extend(context)
        return await conversation.sample(how)

    return asyncio.run(one())


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    slots=st.integers(2, 20),
    temperature=st.sampled_from([0.0, 1.0]),
)
def test_every_sample_is_what_it_would_have_been_alone(
    sizes: list[int], slots: int, temperature: float
) -> None:
    records = asyncio.run(groups(LocalEngine(MODEL, slots=slots), sizes, temperature))
    for record in records:
        for context, how, sample in record:
            expected = alone(context, how)
            assert (sample.ids, sample.cause) == (expected.ids, expected.cause)
            assert sample.logprobs == pytest.approx(expected.logprobs, abs=1e-5)


async def twins(engine: LocalEngine, seeds: list[int]) -> list[Sample]:
    conversations = [engine.open() for _ in seeds]
    samples: list[Sample] = []
    for turn in range(3):
        for conversation in conversations:
            conversation.extend(range(20 + turn, 40))
        pairs = zip(conversations, seeds, strict=True)
        samples = await asyncio.gather(*(c.sample(params(s + turn, 1.0)) for c, s in pairs))
    return samples


def test_those_that_never_part_cost_as_much_as_one() -> None:
    one, eight = LocalEngine(MODEL), LocalEngine(MODEL)
    asyncio.run(twins(one, [1]))
    samples = asyncio.run(twins(eight, [1] * 8))
    assert samples == [samples[0]] * 8
    assert eight.statistics.read == one.statistics.read
    assert eight.statistics.decoded == one.statistics.decoded
    assert eight.statistics.sampled == 8 * one.statistics.sampled


def test_those_that_part_have_their_opening_in_common() -> None:
    engine = LocalEngine(MODEL)
    samples = asyncio.run(twins(engine, [1, 2, 3, 4]))
    assert len({tuple(s.ids) for s in samples}) > 1
    assert engine.statistics.decoded < engine.statistics.sampled


def test_without_sharing_each_is_computed_for_itself() -> None:
    engine = LocalEngine(MODEL, share=False)
    asyncio.run(twins(engine, [1, 1]))
    # The first token of a sample comes with what is read before it.
    assert engine.statistics.decoded == engine.statistics.sampled - 2 * 3
