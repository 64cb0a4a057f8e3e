"""A user with tools of its own calls them, then speaks; the agent hears the words alone."""

import asyncio
from collections.abc import Sequence

import pytest

from progrl.agent.seats import Decision
from progrl.dialogue.messages import Message, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import End, Trajectory
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.contracts import Domain, Environment, StepResult
from progrl.environments.retail import Retail
from progrl.environments.service import ServiceEnvironment
from progrl.rollout import Clock, EpisodeSpec, play
from progrl.rollout.episode import USER_CALLS
from progrl.seeds import Seed
from progrl.users.contracts import Profile
from tests.rollout.desk import tasks

PLUG = ToolCall("plug", {"in": True})
PLAIN = Profile("plain", 100, 1.0, 0.0, 0.0, 0.0, 0.0)


class Lamp(ServiceEnvironment):
    """Counts how often its user has plugged it in; it breaks at `breaks`."""

    plugged, breaks = 0, 10**9

    def hear(self, reply: UserReply) -> StepResult:
        assert len(reply.calls) <= 1
        self.plugged += len(reply.calls)
        shown = f"plugged {self.plugged}" if reply.calls else ""
        return StepResult(shown, done=self.plugged >= self.breaks)


class Shop(Retail):
    """Retail whose users have a lamp."""

    def __init__(self, breaks: int) -> None:
        super().__init__()
        self.breaks = breaks

    def environment(self) -> Lamp:
        lamp = Lamp(self.service, self._start)
        lamp.breaks = self.breaks
        return lamp


class Plugging:
    """Calls its tool, twice a time, until it has `most` results; then tells the last."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.heard: list[list[str]] = []

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        self.heard.append([f"{m.role}: {m.content}" for m in history[1:]])
        results = [m for m in history if m.call == PLUG]
        if len(results) < self.most:
            return UserReply("", "inform", calls=(PLUG, PLUG))
        return UserReply(results[-1].content, "inform")


class _Asking:
    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.tools = tuple(tools)
        self.read: list[Message] = []

    async def act(self, observation: Message) -> Decision:
        self.read.append(observation)
        first = len(self.read) == 1
        return Decision(Say("plug it in" if first else "bye", closing=not first), "")

    def close(self) -> None:
        pass


class Asking:
    """Asks the user to plug it in, and closes once it has answered."""

    name = "asking"

    def seat(
        self,
        task: Task,
        domain: Domain,
        environment: Environment,
        tools: Sequence[ToolSpec],
        seed: Seed,
    ) -> _Asking:
        self.last = _Asking(tools)
        return self.last


def played(user: Plugging, breaks: int = 10**9) -> tuple[Trajectory, list[Message]]:
    task, agent = tasks(1)[0], Asking()
    spec = EpisodeSpec(task, Seed("a"), 1, 5, PLAIN)
    trajectory = asyncio.run(play(spec, Shop(breaks), agent, user, Clock()))
    return trajectory, agent.last.read


def test_calls_are_applied_one_by_one_and_their_results_are_the_users_alone() -> None:
    user = Plugging(4)
    trajectory, read = played(user)
    assert trajectory.end is End.CLOSED, trajectory.fault
    assert [message.content for message in read[1:]] == ["plugged 4"]
    assert trajectory.turns[0].user_calls == tuple((PLUG, f"plugged {n}") for n in (1, 2, 3, 4))
    asked = "assistant: plug it in"
    twice = [asked, "tool: plugged 1", "tool: plugged 2"]
    assert user.heard == [[asked], twice, [*twice, "tool: plugged 3", "tool: plugged 4"]]
    assert len(trajectory.history()) == 4


def test_a_call_of_the_users_can_end_the_episode() -> None:
    trajectory, read = played(Plugging(4), breaks=3)
    assert trajectory.end is End.DONE
    assert len(read) == 1
    assert len(trajectory.turns[0].user_calls) == 3


@pytest.mark.parametrize("most", [USER_CALLS, USER_CALLS + 1])
def test_a_user_that_never_speaks_is_a_fault(most: int) -> None:
    trajectory, _ = played(Plugging(most))
    assert (trajectory.end is End.FAULT) is (most > USER_CALLS)
    assert ("without a word" in trajectory.fault) is (most > USER_CALLS)
