"""Faults of environment, user and engine: data with a cause, never an end of the others."""

import math
from collections.abc import Sequence

import pytest

from progrl.agent.engines.local import LocalConversation
from progrl.agent.seats import ExpertAgent, ModelAgent
from progrl.config.training import RewardConfig
from progrl.dialogue.messages import Say
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import End, Trajectory, record
from progrl.dialogue.users import UserView
from progrl.errors import EnvironmentFault, UserFault
from progrl.rewards import structured_reward
from progrl.rollout import check_faults
from progrl.training.update import Group
from tests.rollout.desk import (
    CONFIG,
    HookedUser,
    Notes,
    OpenedEngine,
    WatchedRetail,
    model_agent,
    specs,
    tasks,
    world,
)

REWARD: RewardConfig = CONFIG.reward
STEP = 2
LOST = [task for task in tasks() if task.expert_turns > STEP][::3]
IDS = {task.id for task in LOST}
QUERIES = {task.query for task in LOST}


def undisturbed() -> list[Trajectory]:
    return world().play(specs(tasks()), ExpertAgent())


def assert_lost(played: Sequence[Trajectory], cause: str, turns: range) -> None:
    """Just the episodes of `LOST` ended by `cause`, all others as if nothing had happened."""
    for trajectory, alone in zip(played, undisturbed(), strict=True):
        if trajectory.task_id not in IDS:
            assert record(trajectory) == record(alone)
            continue
        assert (trajectory.end, trajectory.outcome) == (End.FAULT, None)
        assert not trajectory.valid
        assert not trajectory.success
        assert trajectory.fault.startswith(cause)
        assert len(trajectory.turns) in turns
        with pytest.raises(ValueError, match="no reward"):
            structured_reward(trajectory, REWARD)


def test_an_environment_that_fails_in_a_later_step_loses_its_episode_alone() -> None:
    def fail(task: Task, step: int) -> None:
        if task.id in IDS and step == STEP:
            raise ZeroDivisionError("shelf is empty")

    notes = Notes(fail)
    played = world(WatchedRetail(notes)).play(specs(tasks()), ExpertAgent())
    cause = "EnvironmentFault: ZeroDivisionError('shelf is empty')"
    assert_lost(played, cause, range(STEP, STEP + 1))
    # The step that failed is not tried again.
    assert all(len(notes.actions[id_]) == STEP for id_ in IDS)


def test_a_user_that_fails_loses_its_episode_alone_and_the_words_are_said_once() -> None:
    async def fail(view: UserView) -> None:
        if view.query in QUERIES:
            raise ConnectionError("no line")

    notes = Notes()
    played = world(WatchedRetail(notes), HookedUser(fail)).play(specs(tasks()), ExpertAgent())
    talked = {t.task_id for t in played if not t.valid}
    assert talked
    assert talked <= IDS
    for trajectory, alone in zip(played, undisturbed(), strict=True):
        if trajectory.task_id not in talked:
            assert record(trajectory) == record(alone)
            continue
        assert trajectory.fault == (
            "UserFault: the simulated user failed: ConnectionError('no line')"
        )
        # Nothing was put into the user's mouth, and what the agent said was applied once.
        last = trajectory.turns[-1]
        assert isinstance(last.action, Say)
        assert (last.observation, last.act) == ("", "")
        assert notes.actions[trajectory.task_id] == [turn.action for turn in trajectory.turns]
        assert trajectory.task_id not in notes.heard


def test_a_fault_that_names_itself_keeps_its_name() -> None:
    async def fail(view: UserView) -> None:
        raise UserFault("the endpoint gave up")

    played = world(user=HookedUser(fail)).play(specs(tasks()), ExpertAgent())
    assert {t.fault for t in played if not t.valid} == {"UserFault: the endpoint gave up"}


class FailingEngine(OpenedEngine):
    """Breaks the line of every third conversation."""

    def open(self) -> LocalConversation:
        conversation = super().open()
        if len(self.opened) % 3 == 0:
            conversation.close()
        return conversation


def failing_agent() -> ModelAgent:
    agent = model_agent()
    assert isinstance(agent.engine, OpenedEngine)
    agent.engine.__class__ = FailingEngine
    return agent


def test_an_engine_that_fails_loses_its_episode_alone() -> None:
    given = specs(tasks(), horizon=4)
    alone = world().play(given, model_agent())
    played = world().play(given, failing_agent())
    for number, (trajectory, same) in enumerate(zip(played, alone, strict=True), start=1):
        if number % 3:
            assert record(trajectory) == record(same)
            continue
        assert trajectory.fault == "EngineFault: The conversation is closed."
        assert (trajectory.turns, trajectory.valid) == ([], False)


def test_an_engine_that_breaks_down_loses_all_and_serves_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent, given = model_agent(), specs(tasks(), horizon=4)
    with monkeypatch.context() as patch:

        def step() -> None:
            raise RuntimeError("out of memory")

        patch.setattr(agent.engine._batch, "step", step)  # type: ignore[attr-defined]
        broken = world().play(given, agent)
    assert {t.end for t in broken} == {End.FAULT}
    assert all("out of memory" in t.fault for t in broken)
    assert all(t.valid for t in world().play(given, agent))


def scored(group: Sequence[Trajectory]) -> list[float]:
    """Well-formed messages stand for reward: so small a model earns none."""
    return [
        float(sum(turn.action is not None for turn in t.turns)) + structured_reward(t, REWARD).total
        for t in group
        if t.valid
    ]


def test_a_lost_episode_is_no_part_of_its_groups_baseline() -> None:
    size, live = 9, 0
    given = specs(tasks(), horizon=8, each=size)
    whole = world(in_flight=64).play(given, model_agent(64))
    holed = world(in_flight=64).play(given, failing_agent())
    for at in range(0, len(given), size):
        full, part = whole[at : at + size], holed[at : at + size]
        assert sum(not t.valid for t in part) == 3
        episodes = Group(part, scored(part)).episodes(CONFIG.grpo)
        valid = [t for t in part if t.valid]
        survivors = [t for t, other in zip(full, part, strict=True) if other.valid]
        expected = Group(survivors, scored(survivors)).episodes(CONFIG.grpo)
        assert [e.advantages for e in episodes] == [e.advantages for e in expected]
        if episodes:
            live += 1
            assert [e.example.ids for e in episodes] == [t.tokens()[0] for t in valid]
            total = sum(sum(e.advantages) for e in episodes)
            assert math.isclose(total, 0.0, abs_tol=1e-9)
    assert live > 10


def test_past_a_share_of_faults_it_stops_with_the_commonest_cause() -> None:
    def fail(task: Task, step: int) -> None:
        if task in LOST[:1]:
            raise KeyError("rare")
        if task in LOST[1:]:
            raise OSError("common")

    played = world(WatchedRetail(Notes(fail))).play(specs(tasks()), ExpertAgent())
    share = len(LOST) / len(played)
    assert check_faults(played, share) == len(LOST)
    with pytest.raises(EnvironmentFault) as caught:
        check_faults(played, share - 0.001)
    said = str(caught.value)
    assert said.startswith(f"{len(LOST)} of {len(played)} episodes were lost to faults")
    assert f"{len(LOST) - 1} of them to: EnvironmentFault: OSError('common')" in said
    assert check_faults(undisturbed(), 0.0) == 0
