"""The gym `tau`: both desks by one interface, paid once, at the end."""

import pytest

from progrl.agent.seats import DoNothingAgent, ExpertAgent, RandomAgent
from progrl.dialogue.messages import ToolCall
from progrl.dialogue.tasks import Task, check_disjoint
from progrl.dialogue.users import UserReply
from progrl.environments.choices import ChoiceDomain
from progrl.environments.gyms.tau import Tau
from progrl.environments.registry import domain
from progrl.errors import ConfigurationError
from tests.environments.gym import do, episodes, gym, stream


def test_both_desks_in_turn_and_the_splits_apart() -> None:
    played = gym("tau")
    assert isinstance(played, ChoiceDomain)
    train, test = stream(played, 40), stream(played, 20, "test")
    check_disjoint(train=train, test=test)
    assert [task.setup["desk"] for task in train[:4]] == ["retail", "airline"] * 2
    assert {(task.family, task.level) for task in train} <= set(Tau().families())
    for task in [*train, *test]:
        assert Task.from_json(task.to_json()) == task
        assert task.id == f"tau-{task.content_hash[:16]}"
    assert {t.setup["desk"] for t in stream(gym("tau", desks=["airline"]), 5)} == {"airline"}
    assert {t.level for t in stream(gym("tau", levels=[1]), 6)} == {1}
    with pytest.raises(ConfigurationError, match="desks"):
        gym("tau", desks=["bank"])


def test_a_task_is_in_the_split_of_its_own_desk() -> None:
    desk = [task.query for task in stream(domain("retail"), 10, "test")]
    assert [t.query for t in stream(gym("tau", desks=["retail"]), 10, "test")] == desk


@pytest.mark.parametrize("interface", ["native", "three_choice"])
def test_the_expert_is_paid_once_and_at_the_end(interface: str) -> None:
    played = gym("tau", interface=interface)
    done = episodes(played, ExpertAgent(), stream(played, 60), horizon=40)
    assert all(t.valid for t in done), [t.fault for t in done if t.fault][:3]
    assert sum(t.success for t in done) >= 0.98 * len(done)
    for trajectory in done:
        assert trajectory.reward_bounds == (0.0, 1.0)
        assert not any(turn.reward for turn in trajectory.turns[:-1])
        assert trajectory.turns[-1].reward == float(trajectory.success)


def test_doing_nothing_or_anything_earns_nothing() -> None:
    played = gym("tau")
    for agent in (DoNothingAgent(), RandomAgent()):
        for trajectory in episodes(played, agent, stream(played, 20)):
            assert trajectory.valid
            assert not trajectory.success
            assert not any(turn.reward for turn in trajectory.turns)


def test_search_lists_the_desks_tools_and_the_end_pays_only_once() -> None:
    played = gym("tau", levels=[1])
    shop, plane = stream(played, 2)
    environment = played.environment()
    environment.reset(plane)
    assert "search_flights" in do(environment, "search").observation
    environment.reset(shop)
    assert "get_order" in do(environment, "search").observation
    assert do(environment, "finish", "bye").reward == 0.0
    assert environment.hear(UserReply("bye", "leave", leaves=True)).reward == 0.0
    assert environment.step(ToolCall("get_order", {})).failed
