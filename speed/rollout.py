"""Rollout: conversations of many turns, by the local engine and by transformers' generate."""

import asyncio
import time
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

import torch

from progrl.agent.engines.contracts import SamplingParams
from progrl.agent.engines.local import LocalEngine
from progrl.agent.model import make_model

VOCABULARY = 512


@dataclass(frozen=True, slots=True)
class Workload:
    """Conversations at once, turns in each, ids read and sampled in a turn."""

    conversations: int = 64
    turns: int = 10
    read: int = 40
    sampled: int = 24

    @property
    def tokens(self) -> int:
        """Ids sampled in all."""
        return self.conversations * self.turns * self.sampled

    def ids(self, conversation: int, turn: int) -> list[int]:
        """What conversation and turn read."""
        random = Random(1000 * conversation + turn)
        return [random.randrange(1, VOCABULARY) for _ in range(self.read)]


def model() -> Any:
    """The embedded default's size: 0.4 million parameters."""
    return make_model(vocabulary=VOCABULARY, window=1024, seed=1)


def local(model: Any, work: Workload, dtype: str = "float32") -> float:
    """Seconds of the local engine: each conversation's cache is kept, only new ids are read."""
    slots = work.conversations
    engine = LocalEngine(model, slots=slots, dtype="bfloat16" if dtype == "bfloat16" else "float32")

    async def talk(number: int) -> None:
        conversation = engine.open()
        for turn in range(work.turns):
            conversation.extend(work.ids(number, turn))
            seed = 1000 * number + turn
            params = SamplingParams(1.0, work.sampled, frozenset(), seed)
            sample = await conversation.sample(params)
            assert len(sample.ids) == work.sampled
        conversation.close()

    async def everyone() -> float:
        start = time.perf_counter()
        await asyncio.gather(*(talk(number) for number in range(work.conversations)))
        return time.perf_counter() - start

    asyncio.run(everyone())  # a standing engine: the cache has its full size
    return asyncio.run(everyone())


def generate(model: Any, work: Workload) -> float:
    """Seconds of transformers: one batch of equal lengths, each turn reads all from the start.

    This flatters it: conversations of different lengths would need padding, and would wait for the
    longest of each turn.
    """
    start = time.perf_counter()
    ids = torch.zeros(work.conversations, 0, dtype=torch.long)
    for turn in range(work.turns):
        new = torch.tensor([work.ids(number, turn) for number in range(work.conversations)])
        ids = torch.cat([ids, new], dim=1)
        ids = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=work.sampled,
            min_new_tokens=work.sampled,
            do_sample=True,
            top_k=0,
            pad_token_id=0,
        )
    return time.perf_counter() - start


def measure(work: Workload, repeats: int) -> dict[str, Any]:
    """Tokens a second of both, taken in turns; the best of `repeats`, as load only slows down."""
    agent = model()
    ways = {
        "local": lambda: local(agent, work),
        "local_bfloat16": lambda: local(agent, work, "bfloat16"),
        "generate": lambda: generate(agent, work),
    }
    small = Workload(2, 2, 4, 4)
    local(agent, small)
    generate(agent, small)
    best = {name: float("inf") for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            best[name] = min(best[name], way())
    rates = {name: work.tokens / seconds for name, seconds in best.items()}
    return {
        "workload": asdict(work),
        "parameters": sum(p.numel() for p in agent.parameters()),
        "tokens_per_second": {name: round(rate) for name, rate in rates.items()},
        "ratio_to_generate": {
            name: round(rate / rates["generate"], 2) for name, rate in rates.items()
        },
    }
