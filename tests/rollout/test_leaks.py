"""What an agent reads: the opening, then word for word what environment and user gave, no more."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import pytest

from progrl.agent.seats import Agent, ExpertAgent, RandomAgent
from progrl.dialogue.acts import contains, mentions
from progrl.dialogue.messages import Message, Say
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Trajectory, Turn
from progrl.dialogue.users import Fact, UserReply, UserView
from progrl.users.contracts import Profile
from progrl.users.scripted import ScriptedUser
from tests.rollout.desk import (
    RETAIL,
    Notes,
    WatchedRetail,
    memory,
    model_agent,
    specs,
    tasks,
    trained,
    world,
)

EPISODES = 300
AGENTS: dict[str, Callable[[], Agent]] = {
    "expert": ExpertAgent,
    "random": RandomAgent,
    "model": model_agent,
}


def test_a_model_reads_the_opening_and_then_what_came_back_and_nothing_else() -> None:
    notes, agent = Notes(), model_agent()
    played = world(WatchedRetail(notes)).play(specs(tasks(EPISODES), horizon=6), agent)
    sources = Counter[str]()
    for trajectory in played:
        shown = iter(notes.shown.get(trajectory.task_id, []))
        heard = iter(notes.heard.get(trajectory.task_id, []))
        opening = agent.codec.open(RETAIL.policy, RETAIL.tools, trajectory.query)
        assert trajectory.turns[0].context == opening
        for turn, following in zip(trajectory.turns, trajectory.turns[1:], strict=False):
            cut = turn.sampled[-1] not in agent.codec.stop_ids
            message = answered(turn, shown, heard)
            assert following.context == agent.codec.observe(message, cut)
            sources[message.role if turn.action else "error"] += 1
    assert min(sources["user"], sources["tool"], sources["error"]) > 20


def answered(turn: Turn, shown: Iterator[str], heard: Iterator[str]) -> Message:
    """What a turn must lead to, from what the environment noted."""
    if turn.action is None:
        assert turn.observation.startswith("error: ")
        return Message("tool", turn.observation)
    if turn.source == "tool":
        return Message("tool", next(shown))
    return Message("user", next(heard))


@cache
def episodes(name: str) -> list[tuple[Task, Trajectory, list[str]]]:
    """Episodes with users who never tell more than they are asked, and all contexts as text."""
    some, codec = tasks(EPISODES), trained()[1]
    given = [replace(s, profile=replace(s.profile, expertise=0.0)) for s in specs(some)]
    played = world().play(given, AGENTS[name]())
    contexts = []
    for trajectory in played:
        opening = codec.open(RETAIL.policy, RETAIL.tools, trajectory.query)
        answers = [codec.observe(turn.answer()) for turn in trajectory.turns[:-1]]
        contexts.append([codec.text(ids) for ids in (opening, *answers)])
    return list(zip(some, played, contexts, strict=True))


def hidden(task: Task) -> list[Fact]:
    """What the user knows, before and after a change of mind, and has not told in the opening."""
    view = RETAIL.user_view(task)
    known = [*view.facts, *(view.change.view.facts if view.change else ())]
    told = {fact.value for fact in view.facts if fact.told}
    return [fact for fact in known if fact.value not in told]


@pytest.mark.parametrize("name", ["expert", "random"])
def test_no_hidden_value_is_read_before_it_was_asked_for_or_looked_up(name: str) -> None:
    ways = Counter[str]()
    for task, trajectory, contexts in episodes(name):
        records = str(RETAIL.service.start(task.setup["seed"]).tables)
        facts = hidden(task)
        for value in sorted({fact.value for fact in facts}):
            at = next((n for n, text in enumerate(contexts) if mentions(text, value)), None)
            if at is None:
                continue
            assert at > 0, f"{task.id}: {value!r} stands in the opening"
            turn = trajectory.turns[at - 1]
            if turn.source == "tool":
                # A record of the desk's own, or the agent's own guess.
                assert mentions(records, value) or mentions(str(turn.action), value)
                ways["tool"] += 1
            elif turn.act != "change_goal":
                cues = [cue for fact in facts if fact.value == value for cue in fact.cues]
                assert contains(turn.text, cues) or mentions(turn.text, value)
                ways["asked"] += 1
    if name == "expert":
        assert min(ways["asked"], ways["tool"]) > 100


@pytest.mark.parametrize("name", ["expert", "random"])
def test_nothing_of_rewards_is_read(name: str) -> None:
    for task, _, contexts in episodes(name):
        names = [m.name for m in task.milestones if "_" in m.name]
        for text in contexts:
            assert not contains(text, [*names, "milestone", "reward", "success", "progress"])


class ListeningUser:
    """Keeps the histories it is given."""

    def __init__(self) -> None:
        self.histories: list[list[Message]] = []
        self.user = ScriptedUser(memory())

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        self.histories.append(list(history))
        return await self.user.reply(history, view, profile)


@pytest.mark.parametrize("name", ["expert", "model"])
def test_the_user_hears_what_was_said_and_nothing_else(name: str) -> None:
    user, some = ListeningUser(), tasks(80)
    played = world(user=user).play(specs(some, horizon=8), AGENTS[name]())
    expected = []
    for trajectory in played:
        said = [Message("user", trajectory.query)]
        for turn in trajectory.turns:
            if isinstance(turn.action, Say):
                said.append(Message("assistant", turn.action.text))
                if turn.source == "user":
                    expected.append(list(said))
                    said.append(Message("user", turn.observation))
    assert len(expected) > 50
    assert sorted(map(repr, user.histories)) == sorted(map(repr, expected))
