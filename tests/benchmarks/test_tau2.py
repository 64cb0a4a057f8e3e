"""tau2-bench in its package: gold trajectories, the parts of the verdict, the user's own tools."""

import asyncio
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from progrl.agent.seats import DoNothingAgent, ExpertAgent, RandomAgent
from progrl.benchmarks import gold, verdict
from progrl.benchmarks.customers import HasScenario
from progrl.benchmarks.play import PLAIN, first_tasks, play
from progrl.benchmarks.players import ScenarioUser
from progrl.benchmarks.tau2 import MOST_ERRORS, Tau2Environment, _module, _Tau2
from progrl.dialogue.messages import Message, Say, ToolCall
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import UserReply
from progrl.rollout import Clock, EpisodeSpec
from progrl.rollout import play as play_episode
from progrl.seeds import Seed
from progrl.users.scripted import RuleUser
from tests.benchmarks.packages import opened
from tests.users.llm_server import Server, serving, settings

TASKS = {"tau2_retail": 114, "tau2_airline": 50, "tau2_telecom": 114}
PLAYED = {"tau2_retail": 20, "tau2_airline": 10, "tau2_telecom": 114}


def begun(name: str, number: int = 0) -> tuple[Tau2Environment, Task]:
    adapter = opened(name)
    environment, task = adapter.environment(), first_tasks(adapter, number + 1)[number]
    assert isinstance(environment, Tau2Environment)
    environment.reset(task)
    return environment, task


def with_scenario(name: str) -> _Tau2:
    adapter = opened(name)
    assert isinstance(adapter, HasScenario)
    assert isinstance(adapter, _Tau2)
    return adapter


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_gold_succeeds_by_all_parts_of_the_verdict(name: str) -> None:
    adapter = opened(name)
    tasks = first_tasks(adapter, None)
    assert len({task.id for task in tasks}) == len(tasks) == TASKS[name]
    played = gold(adapter, PLAYED[name])
    assert [(t.task_id, t.fault) for t in played if not t.success] == []
    for trajectory, task in zip(played, tasks, strict=False):
        assert trajectory.outcome is not None
        assert trajectory.outcome.milestones == tuple(m.name for m in task.milestones)


@pytest.mark.slow
def test_silence_succeeds_where_nothing_was_to_be_changed() -> None:
    adapter = opened("tau2_airline")
    looks = ("get_", "search_", "list_", "calculate", "transfer_")
    tasks = first_tasks(adapter, 6)
    unchanged = [
        all(act.get("call", "").startswith(looks) for act in task.goal["gold"]) for task in tasks
    ]
    assert 0 < sum(unchanged) < len(tasks)
    idle = play(adapter, tasks, DoNothingAgent())
    assert [t.success for t in idle] == unchanged
    found = verdict(adapter, tasks, idle)
    assert found.success == found.do_nothing == sum(unchanged) / len(tasks)
    assert found.success < found.parts["database"]  # one also wanted to be told something


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tau2_retail", "tau2_telecom"])
def test_random_agents_get_almost_nothing_and_the_same_again(name: str) -> None:
    adapter = opened(name)
    tasks = first_tasks(adapter, 6)
    played = play(adapter, tasks, RandomAgent(), trials=2)
    found = verdict(adapter, tasks, played)
    assert (found.n, found.faults) == (12, 0), found.fault
    assert found.success <= 0.2
    assert found.pass_k["2"] <= found.pass_k["1"] == found.success
    assert play(adapter, tasks, RandomAgent(), trials=2)[1].history() == played[1].history()


@pytest.mark.slow
def test_what_must_be_told_is_a_part_of_its_own() -> None:
    adapter = opened("tau2_retail")
    task = next(
        task
        for task in adapter.tasks("test", 0)
        if [m.name for m in task.milestones] == ["database", "communicated"]
    )
    environment = adapter.environment()
    environment.reset(task)
    for act in task.goal["gold"]:
        if "call" in act:
            environment.step(ToolCall(act["call"], act["arguments"]))
    assert environment.step(Say("done", closing=True)).milestones == ("database",)
    outcome = environment.outcome()
    assert (outcome.success, outcome.progress) == (False, 0.5)


@pytest.mark.slow
def test_an_unfinished_conversation_has_no_success() -> None:
    environment, _ = begun("tau2_airline")
    assert not environment.outcome().success
    for number in range(MOST_ERRORS):
        result = environment.step(ToolCall("no_such_tool", {"number": number}))
        assert result.failed
        assert result.done is (number == MOST_ERRORS - 1)
    assert environment.step(Say("bye", closing=True)).failed
    assert not environment.outcome().success


@pytest.mark.slow
def test_episodes_share_no_database() -> None:
    (one, task), (other, _) = begun("tau2_retail"), begun("tau2_retail")
    look = next(act for act in task.goal["gold"] if act.get("call") == "get_order_details")
    write = task.goal["gold"][-1]
    before = other.step(ToolCall(look["call"], look["arguments"])).observation
    assert not one.step(ToolCall(write["call"], write["arguments"])).failed
    assert one.step(ToolCall(look["call"], look["arguments"])).observation != before
    assert other.step(ToolCall(look["call"], look["arguments"])).observation == before
    assert one.step(ToolCall("calculate", {"expression": "2 * 3"})).observation == "6.0"
    assert one.step(ToolCall("calculate", {"expression": "9**9**9"})).failed


@pytest.mark.slow
def test_the_telephones_owner_does_what_the_agent_asks_for() -> None:
    adapter = with_scenario("tau2_telecom")
    assert len(adapter.user_tools) == 30
    assert not {t.name for t in adapter.user_tools} & {t.name for t in adapter.tools}
    task = next(t for t in adapter.tasks("test", 0) if "say" in t.goal["gold"][0])
    spec = EpisodeSpec(task, Seed("a"), 1, 50, PLAIN)
    user = RuleUser(adapter)
    trajectory = asyncio.run(play_episode(spec, adapter, ExpertAgent(), user, Clock()))
    assert trajectory.success
    turn = trajectory.turns[0]
    ((call, returned),) = turn.user_calls
    assert call.name in str(turn.action)
    assert turn.source == "user"
    assert turn.observation == f"{call.name}: {returned}"
    assert all(m.role != "tool" for m in trajectory.history())


@pytest.mark.slow
def test_a_model_as_the_telephones_owner_does_so_too(tmp_path: Path) -> None:
    def model(body: dict[str, Any]) -> str:
        last: str = body["messages"][-1]["content"]
        asked = re.fullmatch(r"Please do (\w+) (.*)", last)
        if asked is None:
            return "It says: " + last.splitlines()[1]
        return f'<tool_call>{{"name": "{asked[1]}", "arguments": {asked[2]}}}</tool_call>'

    adapter = with_scenario("tau2_telecom")
    tasks = [t for t in islice(adapter.tasks("test", 0), 12) if "say" in t.goal["gold"][0]]
    server = Server(model)
    with serving(server):
        user = ScenarioUser(settings(server.base_url), tmp_path, adapter)
        played = play(adapter, tasks, ExpertAgent(), user=user)
        user.close()
    assert [t.fault for t in played if t.fault] == []
    assert all(t.success for t in played)
    assert played[0].turns[0].observation.startswith("It says: ")
    assert user.broken_forms == 0


@pytest.mark.slow
def test_a_user_tool_is_none_of_the_agents() -> None:
    environment, _ = begun("tau2_telecom")
    assert environment.step(ToolCall("toggle_data", {})).failed
    result = environment.hear(UserReply("", "inform", calls=(ToolCall("toggle_data", {}),)))
    assert "ata" in result.observation
    assert not result.failed


@pytest.mark.slow
def test_the_users_model_is_told_by_the_package() -> None:
    for name, tools in (("tau2_retail", False), ("tau2_telecom", True)):
        adapter = with_scenario(name)
        view = adapter.user_view(first_tasks(adapter, 1)[0])
        told = adapter.brief(view)
        assert "User Simulation Guidelines" in told
        assert ("You have some tools" in told) is tools
        assert all(fact.value in told for fact in view.facts)
    reply = adapter.answer(
        [Message("user", "hi"), Message("assistant", "your phone number ?")],
        view,
        Seed("a").random(),
    )
    assert "555-123-2002" in reply.text


@pytest.mark.slow
def test_the_package_neither_reads_variables_nor_writes_a_log(
    capfd: pytest.CaptureFixture[str],
) -> None:
    opened("tau2_airline")
    import dotenv

    assert dotenv.load_dotenv.__module__ == "dotenv.main"
    assert _module("utils.utils").res is True
    assert capfd.readouterr().err == ""
