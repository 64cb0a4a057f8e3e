"""What was sampled is what is trained on: 1,000 random episodes, the same ids on both sides.

The trainer's own log-probabilities, computed from a trajectory's ids alone, must be those that the
engine reported: so the engine has read exactly these ids, separators and forged markers included.
"""

import asyncio
from random import Random
from typing import Any

import pytest
import torch

from progrl.agent.engines.local import LocalConversation, LocalEngine
from progrl.agent.model import make_model
from progrl.agent.seats import Agent, ModelAgent
from progrl.dialogue.chat import ChatCodec
from progrl.dialogue.codec import Codec
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.dialogue.messages import Message
from progrl.dialogue.trajectories import Trajectory, Turn
from progrl.seeds import Seed
from tests.agent.test_seats import LOOK, Toy, World
from tests.builders import make_task, make_trajectory
from tests.dialogue.chat_models import TEMPLATES, chat_tokenizer

EPISODES = 200
WORDS = ["hello", "order", "12", "\n", " ", "é", "<|im_end|>", "</think>", "<|end|>", "</s>", "?"]


def compact() -> Codec:
    return CompactCodec(train_tokenizer(["hello order"], (LOOK,), 320))


CODECS: dict[str, Any] = {
    "compact": compact,
    **{n: lambda t=t: ChatCodec(chat_tokenizer(t)) for n, t in TEMPLATES.items()},
}


def text(random: Random) -> str:
    return "".join(random.choices(WORDS, k=random.randint(1, 8)))


async def episode(agent: Agent, number: int, opened: list[LocalConversation]) -> Trajectory:
    random = Random(number)
    seat = agent.seat(make_task(), Toy(), World(), (LOOK,), Seed.root(number))
    opened.append(seat._conversation)  # type: ignore[attr-defined]
    trajectory = make_trajectory(gains=())
    message = Message("user", text(random))
    for _ in range(random.randint(1, 4)):
        decision = await seat.act(message)
        trajectory.turns.append(
            Turn(
                decision.action,
                decision.text,
                context=decision.context,
                sampled=decision.sampled,
                logprobs=decision.logprobs,
            )
        )
        message = Message(random.choice(["user", "tool"]), text(random))
    seat.close()
    return trajectory


def trainer_logprobs(model: Any, trajectories: list[Trajectory]) -> torch.Tensor:
    rows = [trajectory.tokens() for trajectory in trajectories]
    width = max(len(ids) for ids, _ in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for row, (tokens, sampled) in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        mask[row, : len(tokens)] = torch.tensor(sampled)
    with torch.no_grad():
        logprobs = torch.log_softmax(model(ids).logits[:, :-1], dim=-1)
    return logprobs.gather(2, ids[:, 1:, None])[..., 0][mask[:, 1:]]


@pytest.mark.parametrize("name", CODECS)
def test_ids_sampled_are_ids_trained(name: str) -> None:
    codec = CODECS[name]()
    # An untrained model seldom stops by itself: let a sixth of the vocabulary stop it.
    codec.stop_ids = codec.stop_ids | frozenset(range(20, 70))
    model: Any = make_model(vocabulary=320, hidden=32, heads=1, layers=1, ffn=32, seed=1)
    engine = LocalEngine(model, slots=50)
    agent = ModelAgent(engine, codec, temperature=1.0, max_tokens=10)
    opened: list[LocalConversation] = []

    async def play() -> list[Trajectory]:
        return await asyncio.gather(*(episode(agent, n, opened) for n in range(EPISODES)))

    trajectories = asyncio.run(play())
    for conversation, trajectory in zip(opened, trajectories, strict=True):
        assert conversation.ids == trajectory.tokens()[0]
    for begin in range(0, EPISODES, 50):
        some = trajectories[begin : begin + 50]
        sampled = torch.tensor([lp for t in some for turn in t.turns for lp in turn.logprobs])
        torch.testing.assert_close(trainer_logprobs(model, some), sampled, atol=1e-4, rtol=0)
