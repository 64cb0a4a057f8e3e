"""Tasks put in one query: all told, nothing changes, consent given, and solved without a user."""

import pytest

from progrl.dialogue.messages import Say, ToolCall
from progrl.environments.contracts import StaticDomain
from tests.environments.desk import NAMES, advice, identify, made, some, started, writes


@pytest.mark.parametrize("name", NAMES)
def test_the_expert_solves_them_without_a_word_from_anybody(name: str) -> None:
    desk = made(name)
    assert isinstance(desk, StaticDomain)
    wrote = 0
    for task in map(desk.static, some(desk, 60)):
        environment, turns, ended = started(desk, task), 0, False
        while not ended and turns < 20:
            action = advice(desk, task, environment)
            assert isinstance(action, ToolCall) or action.closing, action
            environment.step(action)
            turns, ended = turns + 1, isinstance(action, Say)
        outcome = environment.outcome()
        assert outcome.success and outcome.policy_kept, task.query
        assert outcome.progress == pytest.approx(1.0)
        assert turns == task.expert_turns
        wrote += bool(writes(desk, task, task.goal))
    assert wrote > 20


@pytest.mark.parametrize("name", NAMES)
def test_the_task_stays_the_same_but_for_what_is_told(name: str) -> None:
    desk, changes = made(name), 0
    for task in some(desk, 120):
        static = desk.static(task)
        assert (static.id, static.setup, static.level) == (task.id, task.setup, task.level)
        assert static.expert_turns <= task.expert_turns
        assert "change" not in static.schedule
        assert static.schedule.get("failure") == task.schedule.get("failure")
        goal = task.schedule["change"]["goal"] if "change" in task.schedule else task.goal
        assert static.goal["wishes"] == goal["wishes"]
        untold = {fact.name for fact in desk.user_view(static).facts if not fact.told}
        assert untold <= {"email", "name", "zip"}
        assert sum(m.weight for m in static.milestones) == pytest.approx(1.0)
        assert static == desk.static(task)
        changes += "change" in task.schedule
    assert changes > 5


def test_consent_is_to_what_the_goal_asks_for_and_to_nothing_else() -> None:
    desk = made("retail", tool_failure_rate=0.0)
    tasks = [desk.static(task) for task in some(desk, 200)]
    cancels = [t for t in tasks if [w.name for w in writes(desk, t, t.goal)] == ["cancel_order"]]
    one = cancels[0]
    wanted = writes(desk, one, one.goal)[0]
    reasons = {writes(desk, task, task.goal)[0].arguments["reason"] for task in cancels}
    other = ToolCall(
        wanted.name,
        {**wanted.arguments, "reason": min(reasons - {wanted.arguments["reason"]})},
    )
    kept = []
    for call in (wanted, other):
        environment = started(desk, one)
        identify(environment)
        environment.step(ToolCall("get_order", {"order": wanted.arguments["order"]}))
        assert environment.agreed(call) == (call == wanted)
        assert not environment.step(call).failed
        kept.append(environment.outcome().policy_kept)
    assert kept == [True, False]
