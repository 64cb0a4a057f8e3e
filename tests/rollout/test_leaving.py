"""The user leaves by rule, and never before the agent has done what it was asked for."""

from collections.abc import Sequence

import pytest

from progrl.agent.seats import Decision, ExpertAgent, HumanAgent, Seat
from progrl.dialogue.messages import Message, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import End
from progrl.environments.contracts import Domain, Environment
from progrl.seeds import Seed
from tests.rollout.desk import specs, tasks, world

PROMISES = ("one moment , i will look", "let me see", "please wait , i am looking", "hold on")


class _PromisingSeat:
    """Says that it is about to look something up before it does so."""

    def __init__(self, seat: Seat, tools: Sequence[ToolSpec]) -> None:
        self.tools, self._seat = tuple(tools), seat
        self._writes = {tool.name for tool in tools if tool.writes}
        self._held: Decision | None = None
        self._promises = 0

    async def act(self, observation: Message) -> Decision:
        if self._held is not None:
            decision, self._held = self._held, None
            return decision
        decision = await self._seat.act(observation)
        if not isinstance(decision.action, ToolCall) or decision.action.name in self._writes:
            return decision
        self._held = decision
        self._promises += 1
        text = PROMISES[self._promises % len(PROMISES)]
        return Decision(Say(text), text)

    def close(self) -> None:
        self._seat.close()


class PromisingAgent(ExpertAgent):
    """The expert, which announces each look."""

    name = "promising"

    def seat(
        self,
        task: Task,
        domain: Domain,
        environment: Environment,
        tools: Sequence[ToolSpec],
        seed: Seed,
    ) -> Seat:
        return _PromisingSeat(super().seat(task, domain, environment, tools, seed), tools)


@pytest.mark.parametrize("family", ["a", "b"])
def test_a_promise_does_not_send_the_user_away(family: str) -> None:
    given = specs(tasks(300), horizon=60, family=family)
    played = world(family=family).play(given, PromisingAgent())
    early = []
    for trajectory, spec in zip(played, given, strict=True):
        promised = sum(turn.text in PROMISES for turn in trajectory.turns)
        assert promised
        replies = sum(turn.source == "user" for turn in trajectory.turns)
        if not trajectory.success:
            # Patience alone ends it, and is called what it is.
            early.append(trajectory.task_id)
            assert (trajectory.end, trajectory.turns[-1].act) == (End.LEFT, "leave")
            assert replies == spec.profile.patience + 1  # and goes with one more
    assert len(early) < len(played) / 10


CLAIMS = ("it is done", "all set , that has been taken care of", "i have finished", "completed")


@pytest.mark.parametrize("family", ["a", "b"])
def test_nobody_thanks_for_what_was_only_claimed(family: str) -> None:
    async def claim(history: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
        return CLAIMS[len(history) // 2 % len(CLAIMS)]

    agent = HumanAgent(claim)
    given = specs(tasks(60), horizon=60, family=family)
    for trajectory, spec in zip(world(family=family).play(given, agent), given, strict=True):
        acts = [turn.act for turn in trajectory.turns]
        assert (trajectory.end, acts[-1]) == (End.LEFT, "leave")
        assert "thank" not in acts
        assert len(acts) == spec.profile.patience + 1
