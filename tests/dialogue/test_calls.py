"""Tool calls as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.dialogue.calls import parsed_call, written_call
from progrl.dialogue.messages import ToolCall, ToolSpec
from progrl.errors import MalformedAction

FIND = ToolSpec(
    "find",
    "Find.",
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["name"],
        "additionalProperties": False,
    },
)
PING = ToolSpec("ping", "Ping.", {"type": "object", "properties": {}, "required": []})


@pytest.mark.parametrize(
    "text",
    [
        "find name='ana berg' count=2",
        'find {"name": "ana berg", "count": 2}',
        "find(name='ana berg', count=2)",
        ' find ( name="ana berg" , count=2 ) ',
        "find(count=2,name='ana berg')",
    ],
)
def test_forms_of_a_call(text: str) -> None:
    assert parsed_call(text, [FIND, PING]) == ToolCall("find", {"name": "ana berg", "count": 2})


def test_a_call_without_arguments() -> None:
    assert parsed_call("ping", [PING]) == parsed_call("ping()", [PING]) == ToolCall("ping")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "unknown tool"),
        ("what is it ?", "unknown tool what"),
        ("find", "'name' is a required"),
        ("find ana", "ana has no value"),
        ("find {name}", "no JSON"),
        ("find name='ana", "No closing"),
        ("find name=ana count=many", "count"),
        ("find name=ana day=3", "day"),
    ],
)
def test_what_is_no_call_says_why(text: str, named: str) -> None:
    with pytest.raises(MalformedAction, match=named):
        parsed_call(text, [FIND, PING])


@given(st.text(), st.none() | st.integers())
def test_a_written_call_is_read_back(name: str, count: int | None) -> None:
    call = ToolCall("find", {"name": name} | ({} if count is None else {"count": count}))
    assert parsed_call(written_call(call), [FIND]) == call
