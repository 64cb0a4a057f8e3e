"""progrl's own way of playing conversations."""

import asyncio
import time
from typing import Any

from progrl.agent.engines.contracts import SamplingParams
from progrl.agent.engines.local import LocalConversation, LocalEngine
from progrl.agent.model import make_model
from speed.ways.attention import Attention, KernelAttention
from speed.worker import Job
from speed.workload import Workload


def model_of(work: Workload) -> Any:
    """A new model of the workload's shape."""
    shape = work.shape
    return make_model(
        vocabulary=shape.vocabulary,
        hidden=shape.hidden,
        layers=shape.layers,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        ffn=shape.ffn,
        window=work.window,
        seed=1,
    )


def engine_of(work: Workload, **options: Any) -> LocalEngine:
    """The local engine over such a model, with `options` of its own."""
    return LocalEngine(model_of(work), slots=work.conversations, **options)


async def turn(
    conversation: LocalConversation, ids: list[int], work: Workload, seed: int
) -> list[int]:
    """Read `ids` and sample a message."""
    conversation.extend(ids)
    sample = await conversation.sample(SamplingParams(1.0, work.sampled, frozenset(), seed))
    assert len(sample.ids) == work.sampled
    return sample.ids


def rollout(work: Workload, latency: float = 0.0, **options: Any) -> Job:
    """All conversations at once, each cache kept from turn to turn.

    Args:
        latency: seconds for which users think before they answer.
        options: of the engine.
    """
    engine, contexts = engine_of(work, **options), work.contexts()

    async def talk(number: int) -> None:
        conversation = engine.open()
        for at, ids in enumerate(contexts[number]):
            if at and latency:
                await asyncio.sleep(latency)
            await turn(conversation, ids, work, 1000 * number + at)
        conversation.close()

    async def everyone() -> None:
        await asyncio.gather(*(talk(number) for number in range(work.conversations)))

    def job() -> dict[str, Any]:
        asyncio.run(everyone())
        return {"tokens": work.tokens}

    return job


def turns(work: Workload, compile: bool = False) -> Job:
    """The same in step: all wait for each other after each turn.

    `turn_cpu` has each turn's seconds, `turn_read` the ids of a conversation that were read in it,
    and `attention` the seconds that attention alone takes in the second turn and in the last, by
    the same means as the engine's.
    """
    engine, contexts = engine_of(work, compile=compile), work.contexts()

    async def everyone() -> dict[str, Any]:
        conversations = [engine.open() for _ in contexts]
        seconds, read = [], []
        for at in range(work.turns):
            cpu, before = time.process_time(), engine.statistics.read
            each = enumerate(zip(conversations, contexts, strict=True))
            await asyncio.gather(*(turn(c, ids[at], work, 1000 * n + at) for n, (c, ids) in each))
            seconds.append(time.process_time() - cpu)
            read.append((engine.statistics.read - before) / len(contexts))
        for conversation in conversations:
            conversation.close()
        return {"turn_cpu": seconds, "turn_read": read}

    attention = KernelAttention(work) if compile else Attention(work)

    def job() -> dict[str, Any]:
        facts = asyncio.run(everyone())
        return {**facts, "attention": [attention.seconds(1), attention.seconds(work.turns - 1)]}

    return job
