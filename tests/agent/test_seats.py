"""Agents in their seats, in a toy domain of one tool."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from progrl.agent.engines.local import LocalEngine
from progrl.agent.model import make_model
from progrl.agent.seats import (
    Agent,
    Decision,
    DoNothingAgent,
    ExpertAgent,
    HumanAgent,
    ModelAgent,
    RandomAgent,
    typed_action,
)
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.dialogue.messages import Action, Message, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.dialogue.trajectories import Outcome
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.contracts import State, StepResult
from progrl.errors import MalformedAction
from progrl.seeds import Seed
from tests.builders import make_task

LOOK = ToolSpec(
    "look",
    "Look something up.",
    {
        "type": "object",
        "properties": {
            "what": {"type": "string"},
            "times": {"type": "integer"},
            "far": {"type": "boolean"},
            "where": {"enum": ["here", "there"]},
            "ids": {"type": "array", "items": {"type": "string"}},
            "price": {"type": "number"},
        },
        "required": ["what"],
    },
)


class World:
    reward_bounds = (0.0, 1.0)

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        return (LOOK,)

    def step(self, action: Action) -> StepResult:
        return StepResult("seen")

    def hear(self, reply: UserReply) -> StepResult:
        return StepResult()

    def outcome(self) -> Outcome:
        return Outcome(False, 0.0, (), True, 1.0)


class Toy:
    name = "toy"
    description = "A domain of one tool."
    policy = "Be brief."
    tools = (LOOK,)

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        yield make_task()

    def environment(self) -> World:
        return World()

    def user_view(self, task: Task) -> UserView:
        return UserView("toy", task.query, (), (), 0)

    def expert(self) -> "Toy":
        return self

    def next_action(self, state: State) -> Action:
        """Look once, then close with what was seen."""
        if state.history[-1].role == "tool":
            return Say(state.history[-1].content, closing=True)
        return ToolCall("look", {"what": state.history[0].content})


def play(agent: Agent, heard: Sequence[Message], seed: int = 1) -> list[Decision]:
    async def run() -> list[Decision]:
        seat = agent.seat(make_task(), Toy(), World(), (LOOK,), Seed.root(seed))
        decisions = [await seat.act(message) for message in heard]
        seat.close()
        return decisions

    return asyncio.run(run())


HEARD = [Message("user", "hello there"), Message("tool", "seen"), Message("user", "thanks")]


def test_do_nothing_closes_at_once() -> None:
    (decision,) = play(DoNothingAgent(), HEARD[:1])
    assert decision == Decision(Say("", closing=True), " [closes]")


def test_the_expert_sees_the_history() -> None:
    first, second = play(ExpertAgent(), HEARD[:2])
    assert first.action == ToolCall("look", {"what": "hello there"})
    assert second.action == Say("seen", closing=True)


def test_random_calls_fit_the_schema_and_follow_the_seed() -> None:
    heard = [Message("user", "please look at order 123.")] * 40
    decisions = play(RandomAgent(), heard)
    assert decisions == play(RandomAgent(), heard)
    assert decisions != play(RandomAgent(), heard, seed=2)
    calls = [d.action for d in decisions if isinstance(d.action, ToolCall)]
    for call in calls:
        LOOK.check(call.arguments)
    assert 15 < len(calls) < 40


def model_agent(temperature: float, max_tokens: int = 12) -> ModelAgent:
    codec = CompactCodec(train_tokenizer(["hello there", "seen"], (LOOK,), 320))
    model = make_model(vocabulary=codec.size, hidden=32, layers=1, ffn=32, heads=1, seed=1)
    return ModelAgent(LocalEngine(model, slots=4), codec, temperature, max_tokens, "model")


def test_a_model_keeps_the_ids_it_read_and_sampled() -> None:
    agent = model_agent(1.0)
    decisions = play(agent, HEARD)
    assert decisions[0].context == agent.codec.open(Toy.policy, (LOOK,), "hello there")
    for (before, decision), message in zip(pairwise(decisions), HEARD[1:], strict=True):
        cut = before.sampled[-1] not in agent.codec.stop_ids
        assert decision.context == agent.codec.observe(message, cut)
    for decision in decisions:
        assert len(decision.sampled) == len(decision.logprobs) > 0
        assert (decision.action is None) == bool(decision.error)
        assert decision.text == agent.codec.text(decision.sampled)
    assert decisions == play(agent, HEARD)
    assert decisions != play(agent, HEARD, seed=2)


def test_a_message_cut_short_is_an_error_in_words() -> None:
    (decision,) = play(model_agent(0.0, max_tokens=1), HEARD[:1])
    assert decision.action is None
    assert decision.error


def test_a_person_types_actions() -> None:
    lines = iter(["hello", "/call look what=door times=2", "/call jump"])
    shown: list[int] = []

    async def ask(history: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
        shown.append(len(history))
        return next(lines)

    first, second, third = play(HumanAgent(ask), HEARD)
    assert first.action == Say("hello")
    assert second.action == ToolCall("look", {"what": "door", "times": 2})
    assert (third.action, third.error) == (None, "unknown tool jump; tools: look")
    assert shown == [1, 3, 5]


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("/close bye now", Say("bye now", closing=True)),
        ('/call look {"what": "x"}', ToolCall("look", {"what": "x"})),
        (
            "/call look what='two words' ids='[\"1\"]'",
            ToolCall("look", {"what": "two words", "ids": ["1"]}),
        ),
        ("yes, go ahead", Say("yes, go ahead")),
    ],
)
def test_typed_lines(line: str, action: Action) -> None:
    assert typed_action(line, (LOOK,)) == action


@pytest.mark.parametrize("line", ["/call look {", "/call look what='x", "/call look times=2"])
def test_typed_lines_that_are_no_action(line: str) -> None:
    with pytest.raises(MalformedAction, match="look: "):
        typed_action(line, (LOOK,))
