"""The interface of three choices before the service domains: the same tasks, the same verdicts."""

import pytest

from progrl.agent.seats import DoNothingAgent, ExpertAgent, RandomAgent
from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.trajectories import End, Trajectory
from progrl.environments.choices import ChoiceDomain, ChoiceEnvironment
from progrl.environments.contracts import StaticDomain, StepResult
from progrl.environments.registry import domain
from progrl.environments.service import replay
from progrl.errors import ConfigurationError
from tests.environments.desk import NAMES, made, some
from tests.environments.gym import episodes


def behind(name: str) -> ChoiceDomain:
    wrapped = domain(name, {"interface": "three_choice"})
    assert isinstance(wrapped, ChoiceDomain)
    return wrapped


def do(environment: ChoiceEnvironment, choice: str, content: str) -> StepResult:
    return environment.step(ToolCall("interact_with_env", {"choice": choice, "content": content}))


@pytest.mark.parametrize("name", NAMES)
def test_tasks_are_the_very_same(name: str) -> None:
    native, wrapped = made(name), behind(name)
    tasks = some(native, 20)
    assert tasks == [t for t, _ in zip(wrapped.tasks("train", 7), range(20), strict=False)]
    assert [native.user_view(t) for t in tasks] == [wrapped.user_view(t) for t in tasks]
    assert [tool.name for tool in wrapped.tools] == ["interact_with_env"]
    assert wrapped.tools[0].writes
    assert isinstance(wrapped, StaticDomain)
    assert native.policy in wrapped.policy


@pytest.mark.parametrize("name", NAMES)
def test_the_expert_takes_the_same_turns_to_the_same_end(name: str) -> None:
    native, wrapped = made(name), behind(name)
    for task in some(native, 60):
        view = native.user_view(task)
        _, outcome = replay(task, native.environment(), native.expert(), view)
        (trajectory,) = episodes(wrapped, ExpertAgent(), [task])
        assert trajectory.success
        assert trajectory.outcome is not None
        assert set(trajectory.outcome.milestones) == set(outcome.milestones)
        assert all(isinstance(t.action, ToolCall) for t in trajectory.turns)


def test_search_lists_tools_and_shows_one() -> None:
    wrapped = behind("retail")
    environment = wrapped.environment()
    environment.reset(some(made("retail"), 1)[0])
    listed = do(environment, "search", "")
    assert not listed.failed
    assert {"find_user", "get_order"} <= set(listed.observation.split())
    assert do(environment, "search", "get_order").observation.startswith("get_order order=... :")
    assert do(environment, "search", "the weather").observation == listed.observation


def test_answer_makes_the_call_and_says_what_is_wrong() -> None:
    environment = behind("retail").environment()
    environment.reset(some(made("retail"), 1)[0])
    assert do(environment, "answer", "calculate expression='14 + 20'").observation == "result 34"
    for content, named in (
        ("hello", "unknown tool"),
        ("calculate", "expression"),
        ("calculate expression=x", "cannot compute"),
    ):
        result = do(environment, "answer", content)
        assert result.failed and result.observation.startswith("error: ")
        assert named in result.observation


def test_action_speaks_and_finish_ends() -> None:
    environment = behind("retail").environment()
    environment.reset(some(made("retail"), 1)[0])
    assert do(environment, "action", "what is your zip ?").said == "what is your zip ?"
    assert do(environment, "action", " ").failed
    for call in (
        ToolCall("find_user", {"email": "a@mail.com"}),
        ToolCall("interact_with_env", {"choice": "think", "content": ""}),
        ToolCall("interact_with_env", {"choice": "action"}),
        ToolCall("interact_with_env", {"choice": "action", "content": 3}),
        ToolCall("interact_with_env", {"choice": ["action"], "content": ""}),
    ):
        assert environment.step(call).failed
    assert do(environment, "finish", "bye").done
    assert do(environment, "answer", "calculate expression='14 + 20'").failed


def test_a_user_hears_what_an_action_says() -> None:
    wrapped = behind("retail")
    tasks = [task for task in some(made("retail"), 40) if task.level == 2]
    turns = [turn for t in episodes(wrapped, ExpertAgent(), tasks) for turn in t.turns]
    spoken = [turn for turn in turns if turn.source == "user"]
    assert len(spoken) >= 3
    for turn in spoken:
        assert isinstance(turn.action, ToolCall)
        assert turn.action.arguments["choice"] == "action"
    assert {t.act for t in spoken} & {"inform", "confirm"}


def _success(trajectories: list[Trajectory]) -> int:
    assert all(t.valid for t in trajectories), [t.fault for t in trajectories]
    return sum(t.success for t in trajectories)


@pytest.mark.parametrize("name", NAMES)
def test_neither_doing_nothing_nor_anything_succeeds(name: str) -> None:
    wrapped, tasks = behind(name), some(made(name), 30)
    assert _success(episodes(wrapped, DoNothingAgent(), tasks)) == 0
    assert _success(episodes(wrapped, RandomAgent(), tasks)) == 0


def test_words_outside_of_the_interface_are_words_and_close_as_ever() -> None:
    environment = behind("airline").environment()
    environment.reset(some(made("airline"), 1)[0])
    assert environment.step(Say("hello")) == StepResult()
    (trajectory,) = episodes(behind("airline"), DoNothingAgent(), some(made("airline"), 1))
    assert trajectory.end is End.CLOSED


def test_a_wrong_interface_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="native or three_choice"):
        domain("retail", {"interface": "three"})
    with pytest.raises(ConfigurationError, match="interface"):
        domain("retail", {"inter": "native"})
