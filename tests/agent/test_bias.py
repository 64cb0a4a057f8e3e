"""A bias on a message's first token: sampled with it, scored with it, never beyond that token."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from progrl.agent.advice import Advice
from progrl.agent.engines.contracts import SamplingParams
from progrl.agent.engines.local import LocalEngine
from progrl.agent.model import make_model
from progrl.agent.seats import ModelAgent
from progrl.dialogue.codec import Bias
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.dialogue.messages import Action, ToolSpec
from progrl.dialogue.trajectories import Trajectory, read_trajectories, write_trajectories
from progrl.seeds import Seed
from progrl.training.batching import gather, microbatches
from progrl.training.scoring import Scorer
from progrl.training.update import example
from tests.rollout.desk import model_agent, specs, tasks, trained, world

MODEL = make_model(vocabulary=40, hidden=16, layers=1, heads=1, head_dim=16, ffn=32, seed=2)
STOP = frozenset({39})
LEAN = (("get_order", 2.0), ("talk", 1.5), ("no_such_tool", 0.5))


def sampled(biases: Sequence[Bias], slots: int = 4, turns: int = 1) -> list[list[int]]:
    """The first messages of conversations of one prompt, seed n for the n-th."""
    engine = LocalEngine(MODEL, slots=slots)

    async def one(number: int, bias: Bias) -> list[int]:
        conversation = engine.open()
        conversation.extend([1, 2, 3])
        ids: list[int] = []
        for turn in range(turns):
            params = SamplingParams(1.0, 6, STOP, 100 * number + turn, bias)
            ids += (await conversation.sample(params)).ids
        conversation.close()
        return ids

    async def all_of_them() -> list[list[int]]:
        return list(await asyncio.gather(*(one(n, bias) for n, bias in enumerate(biases))))

    return asyncio.run(all_of_them())


def test_a_bias_moves_the_first_token_alone() -> None:
    free = sampled([()] * 20)
    forced = sampled([[(7, 50.0)]] * 20)
    assert [ids[0] for ids in forced] == [7] * 20
    assert sum(7 in ids[1:] for ids in forced) < 20
    assert sampled([[(7, 0.0)]] * 20) == free


def test_a_bias_stays_with_its_conversation() -> None:
    """Conversations end and move between slots; who has no bias samples as if nobody had one."""
    free = sampled([()] * 12, turns=3)
    mixed = sampled([[(7, 50.0)] if n % 2 else () for n in range(12)], slots=3, turns=3)
    assert mixed[::2] == free[::2]
    assert all(ids[0] == 7 for ids in mixed[1::2])


def test_weights_of_tools_become_a_bias_on_what_messages_begin_with() -> None:
    tool = ToolSpec("look", "", {"type": "object", "properties": {}})
    codec = CompactCodec(train_tokenizer(["a b"], [tool], 320))
    names = {codec.text([token]): value for token, value in codec.lean([*LEAN, ("stop", 1.0)])}
    assert names == {"<|call|>": 2.5, "<|say|>": 1.5, "<|close|>": 1.0}
    assert [codec.text([t]) for t, _ in codec.lean([("look", 1.0)])] == ["<|call:look|>"]


class Leaning:
    """Leans alike in every message; is its own guide."""

    def begin(self, seed: Seed, queries: Sequence[str] = ()) -> None:
        pass

    def guide(self, task_id: str, query: str) -> "Leaning":
        return self

    def advise(self, tools: Sequence[ToolSpec]) -> Advice:
        return Advice(lean=LEAN)

    def took(self, action: Action) -> None:
        pass


@pytest.fixture(scope="module")
def played() -> list[Trajectory]:
    plain = model_agent()
    agent = ModelAgent(plain.engine, plain.codec, 0.7, 24, advisor=Leaning())
    return world().play(specs(tasks(6), horizon=4, each=2), agent)


def test_the_trainer_finds_the_probabilities_of_biased_sampling(
    played: list[Trajectory],
) -> None:
    examples = [example(t) for t in played]
    scorer = Scorer(trained()[0]).eval()
    off = []
    for micro in microbatches([e for e, _ in examples], 2000):
        old = gather(micro, [old for _, old in examples])
        with torch.no_grad():
            logprobs = scorer(micro.inputs, 0.7)
            off.append((scorer(micro.inputs._replace(bias=None), 0.7) - old).abs())
        torch.testing.assert_close(logprobs, old, atol=1e-4, rtol=0)
    # Without the bias, first tokens would be scored wrongly, and no others.
    wrong, messages = (torch.cat(off) > 1e-4).sum(), sum(len(t.turns) for t in played)
    assert 0.9 * messages <= wrong <= messages


def test_the_bias_is_kept_with_the_turn(played: list[Trajectory], tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    write_trajectories(path, played)
    again = read_trajectories(path)
    assert [[t.bias for t in a.turns] for a in again] == [
        [tuple(t.bias) for t in a.turns] for a in played
    ]
    assert all(turn.bias for a in again for turn in a.turns)
