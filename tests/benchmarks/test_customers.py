"""Customers by rule: the first person, what is told when, and the tools that an agent names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.benchmarks.customers import (
    KNOWN,
    REASON,
    UNKNOWN,
    Customers,
    endless,
    first_person,
    named_calls,
    sentences,
)
from progrl.dialogue.messages import Message, ToolCall, ToolSpec
from progrl.dialogue.users import Fact, UserReply, UserView
from progrl.seeds import Seed

MODE = {
    "$defs": {"Mode": {"enum": ["4g_only", "2g_only"], "type": "string"}},
    "properties": {"mode": {"anyOf": [{"$ref": "#/$defs/Mode"}, {"type": "string"}]}},
    "required": ["mode"],
    "type": "object",
}
APP = {
    "properties": {"app_name": {"type": "string"}, "permission": {"type": "string"}},
    "required": ["app_name", "permission"],
    "type": "object",
}
NONE: dict[str, object] = {"properties": {}, "type": "object"}
TOOLS = (
    ToolSpec("toggle_wifi", "", NONE),
    ToolSpec("toggle_wifi_calling", "", NONE),
    ToolSpec("set_mode", "", MODE),
    ToolSpec("grant_permission", "", APP),
)
VIEW = UserView(
    "shop",
    "I want to return my lamp.",
    (
        Fact(REASON, "You want to return your lamp.", ()),
        Fact(KNOWN, "You are Ann Lee in zip code 12345.\n\nYour order is #W1.", ()),
        Fact(UNKNOWN, "You do not remember your email address", ()),
    ),
    (),
    1,
)


class Shop(Customers):
    name = "shop"
    user_tools = TOOLS


def answer(*heard: str) -> UserReply:
    history = [Message("user", VIEW.query)]
    for text in heard:
        history += [Message("assistant", text), Message("user", "ok")]
    return Shop().answer(history[:-1], VIEW, Seed("a").random())


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("You want your lamp.", "I want my lamp."),
        ("You're told to ask them to send you one.", "I'm told to ask them to send me one."),
        ("If the agent tells you no, you'd cry.", "If the agent tells me no, I'd cry."),
        ("You are yourself, and it's yours", "I am myself, and it's mine"),
        ("They refund you; you've won.", "They refund me; I've won."),
    ],
)
def test_scenarios_are_said_in_the_first_person(told: str, said: str) -> None:
    assert first_person(told) == said


@given(st.text())
def test_no_sentence_is_empty_and_none_is_lost(text: str) -> None:
    parts = sentences(text)
    assert all(any(map(str.isalnum, part)) for part in parts)
    assert [c for c in "".join(parts) if c.isalnum()] == [c for c in text if c.isalnum()]


@pytest.mark.parametrize(
    ("heard", "text", "act"),
    [
        ("what is your zip code ?", "I am Ann Lee in zip code 12345.", "inform"),
        ("which order is it ?", "My order is #W1.", "inform"),
        ("may i have your email ?", "I do not remember my email address", "inform"),
        ("who are you ?", "I am Ann Lee in zip code 12345. My order is #W1.", "inform"),
        ("i will return the lamp . do you confirm ?", "yes , please", "confirm"),
        ("hello , how can i help ?", "I want to return my lamp.", "ask"),
        ("one moment .", "ok", "wait"),
    ],
)
def test_what_is_asked_is_told(heard: str, text: str, act: str) -> None:
    reply = answer(heard)
    assert (reply.text.lower(), reply.act) == (text.lower(), act)
    assert not reply.leaves


def test_a_customer_leaves_when_it_is_done_and_when_nothing_moves() -> None:
    assert answer("which order ?", "it has been returned . anything else ?").leaves
    assert answer("YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.").leaves
    assert not answer("one moment", "one moment").leaves
    assert answer("one moment", "one moment", "One  moment").act == "leave"


def test_the_tools_that_an_agent_names_are_called_in_its_order() -> None:
    text = 'Use toggle wifi calling, then `set_mode` {"mode": "2g_only"} and toggle_wifi.'
    expected = ["toggle_wifi_calling", "set_mode", "toggle_wifi"]
    assert [call.name for call in named_calls(text, TOOLS)[0]] == expected
    calls, lacking = named_calls("please set mode to 4G_only", TOOLS)
    assert (calls, lacking) == ((ToolCall("set_mode", {"mode": "4g_only"}),), "")
    assert named_calls("set_mode", TOOLS) == ((), "mode")
    assert named_calls("set_mode {broken", TOOLS) == ((), "mode")
    words = "grant_permission app_name=messaging permission='sms'"
    arguments = {"app_name": "messaging", "permission": "sms"}
    assert named_calls(words, TOOLS)[0] == (ToolCall("grant_permission", arguments),)
    assert named_calls("the wifi of set_modes", TOOLS) == ((), "")


def test_what_the_tools_returned_is_told_after_the_last_of_them() -> None:
    assert answer("do toggle_wifi , please").calls == (ToolCall("toggle_wifi", {}),)
    assert answer("set_mode").act == "clarify"
    history = [
        Message("user", "help"),
        Message("assistant", "do toggle_wifi"),
        Message("tool", "on", ToolCall("toggle_wifi")),
        Message("tool", "off", ToolCall("toggle_wifi")),
    ]
    reply = Shop().answer(history, VIEW, Seed("a").random())
    assert reply == UserReply("toggle_wifi: on\ntoggle_wifi: off", "inform")


def test_powers_are_endless() -> None:
    assert endless(ToolCall("calculate", {"expression": "9 ** 9"}))
    assert not endless(ToolCall("calculate", {"expression": "9 * 9"}))
    assert not endless(ToolCall("think", {"expression": "9 ** 9"}))
