"""Many episodes at once: how many, in what order, each action once, the same for the same seeds."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from progrl.agent.seats import Agent, Decision, ExpertAgent, RandomAgent, Seat
from progrl.dialogue.messages import Action, Message, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import End, Trajectory, Turn, record
from progrl.dialogue.users import UserView
from progrl.environments.contracts import Domain, Environment
from progrl.environments.service import ServiceEnvironment
from progrl.rewards import structured_reward
from progrl.rollout import EpisodeSpec
from progrl.users.contracts import Profile
from tests.rollout.desk import (
    CONFIG,
    RETAIL,
    HookedUser,
    Notes,
    WatchedAgent,
    WatchedRetail,
    model_agent,
    specs,
    tasks,
    world,
)

PLAIN = Profile("plain", 20, 1.0, 0.0, 0.0, 0.0, 0.0)


def talked() -> list[Task]:
    """Tasks in which the expert has to ask the user something."""
    played = world().play(specs(tasks()), ExpertAgent())
    asked = {t.task_id for t in played if any(turn.source == "user" for turn in t.turns)}
    return [task for task in tasks() if task.id in asked]


def cut_short(some: Sequence[Task]) -> list[EpisodeSpec]:
    """Episodes with the plainest of users that end a turn before the expert would."""
    given = [s for task in some for s in specs([task], horizon=task.expert_turns - 1)]
    return [replace(spec, profile=PLAIN) for spec in given]


@pytest.mark.parametrize("in_flight", [1, 5, 100])
def test_no_more_at_once_than_allowed_and_no_fewer_without_need(in_flight: int) -> None:
    async def think(view: UserView) -> None:
        await asyncio.sleep(0.001)

    given, agent, told = specs(talked()), WatchedAgent(ExpertAgent()), list[int]()
    played = world(user=HookedUser(think), in_flight=in_flight).play(given, agent, done=told.append)
    assert agent.most == min(in_flight, len(given))
    assert agent.taken == 0
    assert told == list(range(1, len(given) + 1))
    assert all(t.valid for t in played)


def test_results_come_in_the_order_of_their_specs_whoever_ends_first() -> None:
    given, ended = specs(tasks()), list[str]()
    places = {spec.task.query: place for place, spec in enumerate(given)}

    async def think(view: UserView) -> None:
        await asyncio.sleep(0.002 * (len(given) - places[view.query]))

    agent = WatchedAgent(ExpertAgent())
    agent.left = ended.append
    played = world(user=HookedUser(think), in_flight=100).play(given, agent)
    ids = [spec.task.id for spec in given]
    assert [t.task_id for t in played] == ids
    assert ended != ids
    assert sorted(ended) == sorted(ids)


def test_a_user_who_waits_holds_up_nobody_else() -> None:
    slow, ended = talked()[0], list[str]()
    others = asyncio.Event()

    async def think(view: UserView) -> None:
        if view.query == slow.query:
            await asyncio.wait_for(others.wait(), timeout=30)

    def left(id_: str) -> None:
        ended.append(id_)
        if len(ended) == len(tasks()) - 1:
            others.set()

    agent = WatchedAgent(ExpertAgent())
    agent.left = left
    played = world(user=HookedUser(think), in_flight=2).play(specs(tasks()), agent)
    assert all(t.valid for t in played)
    assert ended[-1] == slow.id


@pytest.mark.parametrize("agent", [ExpertAgent(), RandomAgent()], ids=lambda agent: agent.name)
def test_each_action_and_each_reply_is_applied_once(agent: Agent) -> None:
    notes = Notes()
    played = world(WatchedRetail(notes)).play(specs(tasks(80)), agent)
    assert any(t.end is not End.CLOSED for t in played) or agent.name == "expert"
    for trajectory in played:
        actions = [turn.action for turn in trajectory.turns if turn.action is not None]
        assert notes.actions[trajectory.task_id] == actions
        heard = [turn.observation for turn in trajectory.turns if turn.source == "user"]
        assert notes.heard.get(trajectory.task_id, []) == heard


def test_a_message_that_is_no_action_never_reaches_the_environment() -> None:
    notes = Notes()
    played = world(WatchedRetail(notes)).play(specs(tasks(80), horizon=4), model_agent())
    broken = [turn for t in played for turn in t.turns if turn.action is None]
    assert len(broken) > 50
    assert all(t.failed and t.source == "tool" and t.gain == 0 for t in broken)
    for trajectory in played:
        actions = [turn.action for turn in trajectory.turns if turn.action is not None]
        assert notes.actions.get(trajectory.task_id, []) == actions


class HastyAgent:
    """Finds the user, changes what the goal says without asking, and goes on to talk."""

    name = "hasty"

    def seat(self, task: Task, domain: Domain, environment: Environment, *rest: Any) -> Seat:
        assert isinstance(environment, ServiceEnvironment)
        plan = environment.plan
        found = ToolCall("find_user", {"email": plan.person["email"]})
        writes = [wish.write for wish in plan.wishes if wish.write is not None]
        return ScriptedSeat([found, *writes, Say("anything else ?"), Say("bye", closing=True)])


class ScriptedSeat:
    """Does one thing after the other."""

    tools: tuple[ToolSpec, ...] = ()

    def __init__(self, actions: Sequence[Action]) -> None:
        self.actions = iter(actions)

    async def act(self, observation: Message) -> Decision:
        action = next(self.actions)
        return Decision(action, str(action))

    def close(self) -> None:
        self.actions = iter(())


def changes_records(turn: Turn) -> bool:
    """It is a write, and it was done."""
    name = turn.action.name if isinstance(turn.action, ToolCall) else ""
    return (
        name in RETAIL.service.tools and RETAIL.service.tools[name].spec.writes and not turn.failed
    )


def test_each_turn_keeps_what_the_environment_declared_after_it() -> None:
    broken = 0
    for trajectory in world().play(specs(tasks(80)), HastyAgent()):
        unasked = [changes_records(turn) for turn in trajectory.turns]
        declared = [float(not any(unasked[: at + 1])) for at in range(len(unasked))]
        assert [turn.domain for turn in trajectory.turns] == declared
        assert trajectory.outcome is not None and declared[-1] == trajectory.outcome.domain
        broken += any(unasked)
    assert 20 < broken < 80
    for trajectory in world().play(specs(tasks()), ExpertAgent()):
        assert {turn.domain for turn in trajectory.turns} == {1.0}


def ids(played: Sequence[Trajectory]) -> list[tuple[list[int], list[bool]]]:
    return [trajectory.tokens() for trajectory in played]


def test_the_same_seeds_give_the_same_episodes_however_many_are_in_flight() -> None:
    given = specs(tasks(), horizon=6, each=3)
    first = world(in_flight=64).play(given, model_agent(64))
    again = world(in_flight=64).play(given, model_agent(64))
    assert [record(t) for t in again] == [record(t) for t in first]
    assert ids(again) == ids(first)
    probabilities = [[list(turn.logprobs) for turn in t.turns] for t in first]
    assert [[list(turn.logprobs) for turn in t.turns] for t in again] == probabilities
    # The last digits of probabilities may depend on the company, what is sampled may not.
    few = world(in_flight=3).play(given, model_agent(2))
    assert [record(t) for t in few] == [record(t) for t in first]
    assert ids(few) == ids(first)


def test_an_episode_does_not_depend_on_the_others() -> None:
    given = specs(tasks(), horizon=6)
    whole = world().play(given, model_agent())
    some = world().play(given[::-5], model_agent())
    assert ids(some) == ids(whole[::-5])


def test_episodes_of_a_group_differ_by_the_agents_seed_alone() -> None:
    given: list[EpisodeSpec] = specs(tasks(), each=4)
    assert len({spec.seed.value for spec in given}) == len(given)
    for at in range(0, len(given), 4):
        group = given[at : at + 4]
        assert len({(spec.user_seed, spec.profile) for spec in group}) == 1
    played = world().play(given, ExpertAgent())
    for at in range(0, len(played), 4):
        # The expert needs no seed: with the same user every episode is the same.
        conversations = [t.history() for t in played[at : at + 4]]
        assert conversations.count(conversations[0]) == 4


def test_the_horizon_cuts_success_and_keeps_milestones() -> None:
    given = cut_short(tasks())
    played = world().play(given, ExpertAgent())
    reached = 0
    for trajectory, spec in zip(played, given, strict=True):
        assert trajectory.end is End.HORIZON
        assert len(trajectory.turns) == spec.horizon
        assert not trajectory.success
        assert trajectory.outcome is not None
        gained = sum(turn.gain for turn in trajectory.turns)
        assert trajectory.outcome.progress == pytest.approx(gained)
        parts = structured_reward(trajectory, CONFIG.reward)
        assert (parts.task, parts.efficiency) == (0.0, 0.0)
        assert parts.total == pytest.approx(CONFIG.reward.progress * gained)
        reached += gained > 0
    assert reached > len(played) / 2


def test_what_was_done_but_not_closed_within_the_horizon_is_no_success() -> None:
    written = [t for t in tasks(80) if any(m.name.startswith("written") for m in t.milestones)]
    played = world().play(cut_short(written), ExpertAgent())
    done = [t for t in played if t.outcome is not None and t.outcome.success]
    assert done
    assert not any(t.success for t in done)
