"""The rules of a desk: calls, consent, failures, milestones, and an expert who meets errors."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.dialogue.messages import Action, Say, ToolCall
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import UserReply
from progrl.environments.contracts import State
from progrl.environments.service import ServiceEnvironment, obedient_reply
from progrl.environments.service.tools import Refusal, arithmetic
from progrl.errors import EnvironmentFault, MalformedAction
from tests.environments.desk import (
    NAMES,
    NO,
    YES,
    advice,
    identify,
    made,
    of_family,
    some,
    started,
    writes,
)

DESKS = {name: made(name) for name in NAMES}
CALM = {name: made(name, goal_change_rate=0.0, tool_failure_rate=0.0) for name in NAMES}


def _redirect() -> tuple[Task, ServiceEnvironment, str, str]:
    """A task of redirecting an order; the user is identified. With its order and new address."""
    task = of_family(CALM["retail"], "redirect")
    environment = started(CALM["retail"], task)
    identify(environment)
    wish = task.goal["wishes"][0]
    return task, environment, wish["order"], wish["address"]


def test_a_confirmed_write_keeps_the_policy_and_succeeds() -> None:
    _, environment, order, address = _redirect()
    environment.step(Say(f"redirect order {order} to {address} . confirm ?"))
    assert environment.hear(YES).milestones == ("confirmed",)
    result = environment.step(ToolCall("modify_address", {"order": order, "address": address}))
    assert (result.observation, result.failed) == (f"order {order} to {address}", False)
    assert result.milestones == ("written",)
    outcome = environment.outcome()
    assert (outcome.success, outcome.policy_kept, outcome.domain) == (True, True, 1.0)


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        ("redirect order {order} to {address} . confirm ?", NO),
        ("redirect order {order} to {address} .", YES),
        ("redirect order {order} . confirm ?", YES),
        ("redirect it to {address} . confirm ?", YES),
        ("cancel order {order} of {address} . confirm ?", YES),
        ("redirect order 1{order} to {address} . confirm ?", YES),
        ("hello", YES),
    ],
)
def test_an_unconfirmed_write_is_done_but_breaks_the_policy(words: str, reply: UserReply) -> None:
    _, environment, order, address = _redirect()
    environment.step(Say(words.format(order=order, address=address)))
    environment.hear(reply)
    call = ToolCall("modify_address", {"order": order, "address": address})
    result = environment.step(call)
    assert (result.failed, result.milestones, result.gain) == (False, (), 0.0)
    outcome = environment.outcome()
    assert (outcome.success, outcome.policy_kept, outcome.domain) == (True, False, 0.0)


def test_a_write_uses_the_consent_up_and_so_does_the_next_reply() -> None:
    _, environment, order, address = _redirect()
    call = ToolCall("modify_address", {"order": order, "address": address})
    request = Say(f"redirect order {order} to {address} . confirm ?")
    environment.step(request)
    environment.hear(YES)
    environment.step(call)
    assert environment.outcome().policy_kept
    environment.step(call)
    assert not environment.outcome().policy_kept

    _, environment, order, address = _redirect()
    environment.step(request)
    environment.hear(YES)
    environment.step(Say("one moment"))
    environment.hear(UserReply("ok", "thank"))
    environment.step(call)
    assert not environment.outcome().policy_kept


def test_the_system_holds_its_own_rules() -> None:
    desk = CALM["retail"]
    task = of_family(desk, "cancel_refused")
    environment = started(desk, task)
    order = task.goal["wishes"][0]["order"]
    call = ToolCall("cancel_order", {"order": order, "reason": "mistake"})
    assert environment.step(call).observation == "error: find the user first"
    identify(environment)
    status = task.goal["wishes"][0]["status"]
    result = environment.step(call)
    assert result.failed
    assert result.observation == f"error: order {order} is {status} , not pending"
    assert environment.outcome().policy_kept


def test_a_refusal_must_be_looked_up_before_it_counts() -> None:
    task = of_family(CALM["retail"], "cancel_refused")
    values = task.goal["wishes"][0]
    words = f"cannot cancel order {values['order']} , it is {values['status']} . bye"
    environment = started(CALM["retail"], task)
    assert environment.step(Say(words)).milestones == ()
    environment.hear(UserReply("why ?", "challenge"))
    environment.step(ToolCall("get_order", {"order": values["order"]}))
    assert environment.step(Say(words, closing=True)).milestones == ("told",)
    assert environment.outcome().success


def test_any_other_change_spoils_success() -> None:
    task, environment, order, address = _redirect()
    call = ToolCall("modify_address", {"order": order, "address": address})
    environment.step(call)
    assert environment.outcome().success
    environment.step(ToolCall("transfer_to_human", {"topic": "billing"}))
    assert not environment.outcome().success
    assert started(CALM["retail"], task).outcome().progress == 0.0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (ToolCall("fly", {}), "error: no tool fly"),
        (ToolCall("get_order", {}), "error: get_order: 'order' is a required property"),
        (ToolCall("get_order", {"order": 5}), "error: get_order: order: 5 is not of type 'string'"),
        (ToolCall("get_order", {"order": "x", "to": "y"}), "additional properties"),
        (ToolCall("cancel_order", {"order": "1", "reason": "fun"}), "'fun' is not one of"),
        (ToolCall("get_order", {"order": "1"}), "error: no order 1"),
        (ToolCall("get_product", {"product": "sun"}), "error: no product sun"),
        (ToolCall("find_user", {}), "error: find_user needs email"),
        (ToolCall("find_user", {"name": "ana reed"}), "error: find_user needs email"),
        (ToolCall("find_user", {"email": "x@mail.com"}), "error: no such user"),
        (ToolCall("calculate", {"expression": "2 **"}), "error: cannot compute 2 **"),
        (ToolCall("transfer_to_human", {"topic": "lost", "about": "1"}), "nothing known as 1"),
    ],
)
def test_a_wrong_call_is_answered_with_what_is_wrong(call: ToolCall, said: str) -> None:
    environment = started(CALM["retail"], some(CALM["retail"], 1)[0])
    result = environment.step(call)
    assert result.failed
    assert said.lower() in result.observation.lower()
    assert result.observation.startswith("error: ")
    assert environment.outcome().policy_kept


def test_after_the_end_nothing_is_applied() -> None:
    _, environment, order, address = _redirect()
    environment.step(Say("bye", closing=True))
    result = environment.step(ToolCall("modify_address", {"order": order, "address": address}))
    assert result.failed
    assert not environment.outcome().success


def test_items_may_be_named_by_product_and_option() -> None:
    desk = CALM["retail"]
    task = of_family(desk, "exchange")
    environment = started(desk, task)
    identify(environment)
    wish = task.goal["wishes"][0]
    call = writes(desk, task, task.goal)[0]
    for old, new in ((wish["item"], wish["option"]), (wish["item_id"], wish["new_id"])):
        environment.step(Say(f"shall i exchange {old} for {new} in {wish['order']} ?"))
        environment.hear(YES)
        assert environment.agreed(call)


@pytest.mark.parametrize("name", NAMES)
def test_a_scheduled_failure_comes_once_and_a_repeat_works(name: str) -> None:
    desk = made(name, levels=[2, 3, 4, 5], goal_change_rate=0.0, tool_failure_rate=1.0)
    for task in some(desk, 80):
        environment, view = started(desk, task), desk.user_view(task)
        busy, replies, repeat = 0, 0, None
        for _ in range(task.expert_turns):
            action = advice(desk, task, environment)
            result = environment.step(action)
            if repeat is not None:
                assert (action, result.failed) == (repeat, False)
                repeat = None
            if "busy" in result.observation:
                busy, repeat = busy + 1, action
                assert isinstance(action, ToolCall)
                assert action.name == task.schedule["failure"]["tool"]
            if isinstance(action, Say) and not action.closing:
                environment.hear(obedient_reply(view, action.text, replies))
                replies += 1
        assert busy == 1
        assert environment.outcome().success


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_applied_once_and_milestones_count_once(name: str) -> None:
    desk = CALM[name]
    for task in some(desk, 40):
        environment = started(desk, task)
        action: Action = ToolCall("find_user", {"email": environment.plan.person["email"]})
        first, second = environment.step(action), environment.step(action)
        assert first.observation == second.observation
        assert second.milestones == ()
        assert second.gain == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_the_expert_carries_on_from_states_that_others_led_to(name: str) -> None:
    """After reads, idle words and unheeded questions it still succeeds."""
    desk = DESKS[name]
    sum_ = ToolCall("calculate", {"expression": "1 + 1"})
    idle: list[Action] = [Say("one moment"), ToolCall("get", {}), sum_]
    for number, task in enumerate(some(desk, 150)):
        random, view = Random(number), desk.user_view(task)
        environment, replies = started(desk, task), 0
        for turn in range(60):
            action = advice(desk, task, environment)
            if turn < 8 and random.random() < 0.5:
                action = random.choice(idle)
            environment.step(action)
            if isinstance(action, Say):
                if action.closing:
                    break
                environment.hear(obedient_reply(view, action.text, replies))
                replies += 1
        assert environment.outcome().success
        assert environment.outcome().policy_kept


@pytest.mark.parametrize("name", NAMES)
def test_the_expert_ends_even_where_the_goal_is_out_of_reach(name: str) -> None:
    """What an erring agent has spoilt is given up, in words, and not tried for ever."""
    desk = CALM[name]
    spoil = {"retail": "cancel_order", "airline": "cancel_reservation"}[name]
    key = {"retail": "order", "airline": "reservation"}[name]
    for task in [task for task in some(desk, 120) if task.level >= 3]:
        environment, view, replies = started(desk, task), desk.user_view(task), 0
        identify(environment)
        for wish in task.goal["wishes"]:
            environment.step(ToolCall(spoil, {key: wish[key], "reason": "duplicate"}))
        for _ in range(40):
            action = advice(desk, task, environment)
            environment.step(action)
            if isinstance(action, Say):
                if action.closing:
                    break
                environment.hear(obedient_reply(view, action.text, replies))
                replies += 1
        assert action == Say(action.text, closing=True)  # type: ignore[union-attr]


def test_the_expert_refuses_a_strange_environment() -> None:
    desk = CALM["retail"]
    task = some(desk, 1)[0]
    with pytest.raises(EnvironmentFault, match="object"):
        desk.expert().next_action(State(task, object(), []))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("14 + 20", "34"),
        ("500 - 620", "-120"),
        ("3 * (2 + 4)", "18"),
        ("10 / 4", "2.5"),
        ("1 / 3", "0.33"),
        ("-2 - 2", "-4"),
    ],
)
def test_arithmetic_by_hand(expression: str, value: str) -> None:
    assert arithmetic(expression) == value


@pytest.mark.parametrize(
    "expression",
    ["", "1 / 0", "2 ** 9", "x", "__import__('os')", "1e999", "True + 1", "(" * 40, "1" * 81],
)
def test_what_is_no_arithmetic_is_refused(expression: str) -> None:
    with pytest.raises(Refusal):
        arithmetic(expression)


TASKS = {name: some(DESKS[name], 40) for name in NAMES}


@st.composite
def _actions(draw: st.DrawFn, name: str, task: Task) -> Action:
    known = [*task.query.split(), *(v for w in task.goal["wishes"] for v in w.values())]
    word = st.sampled_from(known) | st.text(max_size=6)
    if draw(st.booleans()):
        text = " ".join(draw(st.lists(word, max_size=6)))
        return Say(text + draw(st.sampled_from(["", " confirm ?"])), draw(st.integers(0, 9)) == 0)
    tool = draw(st.sampled_from(DESKS[name].tools))
    if draw(st.integers(0, 9)) == 0:
        junk = st.dictionaries(st.text(max_size=4), word | st.integers() | st.none(), max_size=3)
        return ToolCall(draw(st.text(max_size=5)), draw(junk))
    chosen = {}
    for key, form in tool.parameters["properties"].items():
        if key in tool.parameters["required"] or draw(st.booleans()):
            chosen[key] = draw(st.sampled_from(form["enum"]) if "enum" in form else word)
    return ToolCall(tool.name, chosen)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_action_raises_and_progress_never_falls(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    task = data.draw(st.sampled_from(TASKS[name]))
    environment, view = started(DESKS[name], task), DESKS[name].user_view(task)
    progress, replies, seen = 0.0, 0, set[str]()
    if data.draw(st.booleans()):
        identify(environment)
        progress, seen = environment.outcome().progress, {*environment.outcome().milestones}
    for _ in range(data.draw(st.integers(1, 12))):
        action = data.draw(_actions(name, task))
        results = [environment.step(action)]
        if isinstance(action, Say):
            reply = data.draw(st.sampled_from([YES, NO, None]))
            reply = reply or obedient_reply(view, action.text, replies)
            results.append(environment.hear(reply))
            replies += 1
        for result in results:
            assert not seen & {*result.milestones}
            seen |= {*result.milestones}
        outcome = environment.outcome()
        gain = sum(result.gain for result in results)
        assert outcome.progress == pytest.approx(progress + gain)
        assert progress <= outcome.progress <= 1.0
        assert {*outcome.milestones} == seen
        progress = outcome.progress


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_the_quick_check_of_arguments_agrees_with_the_schema(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    tool = data.draw(st.sampled_from(list(DESKS[name].service.tools.values())))
    keys = st.sampled_from([*tool.spec.parameters["properties"], "other"])
    values = st.sampled_from(["1", "mistake", "lost", "", 3, None, ["1"], True])
    arguments = data.draw(st.dictionaries(keys, values, max_size=3))

    def refused(check: Any) -> bool:
        try:
            check(arguments)
        except MalformedAction:
            return True
        return False

    assert refused(tool.check) == refused(tool.spec.check)
