"""A language model and a person who play a customer with tools of its own."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from progrl.benchmarks.play import PLAIN
from progrl.benchmarks.players import GREETING, PersonUser, ScenarioUser
from progrl.dialogue.messages import Message, ToolCall, ToolSpec
from progrl.dialogue.trajectories import Trajectory, Turn, read_trajectories, write_trajectories
from progrl.dialogue.users import UserReply, UserView
from progrl.errors import UserFault
from tests.benchmarks.test_customers import TOOLS, VIEW
from tests.users.llm_server import Server, serving, settings

HISTORY = [
    Message("user", VIEW.query),
    Message("assistant", "please do toggle_wifi"),
    Message("tool", "Wi-Fi is on", ToolCall("toggle_wifi")),
]
CALL = '<think>hm</think><tool_call>{"name": "toggle_wifi", "arguments": {}}</tool_call>'


class Scenes:
    """A benchmark with a scenario."""

    user_tools: tuple[ToolSpec, ...] = TOOLS

    def brief(self, view: UserView) -> str:
        return "Play Ann."


def asked(answers: Sequence[str], folder: Path, history: list[Message]) -> tuple[Any, Server]:
    """The user's reply, or its fault, to a model that gives these answers."""
    left = list(answers)
    server = Server(lambda body: left.pop(0))
    with serving(server):
        user = ScenarioUser(settings(server.base_url), folder, Scenes())
        try:
            return asyncio.run(user.reply(history, VIEW, PLAIN)), server
        except UserFault as fault:
            return fault, server
        finally:
            user.close()


def test_the_model_sees_its_part_its_tools_and_what_they_returned(tmp_path: Path) -> None:
    reply, server = asked(["It is on."], tmp_path, HISTORY)
    assert reply == UserReply("It is on.", "inform")
    system, greeting, *rest = server.asked[0]["messages"]
    assert system["content"].startswith("Play Ann.")
    assert "set_mode(mode:" in system["content"]
    assert greeting == {"role": "user", "content": GREETING}
    assert [m["role"] for m in rest] == ["assistant", "user", "assistant", "user"]
    assert json.loads(rest[2]["content"].splitlines()[1]) == {
        "name": "toggle_wifi",
        "arguments": {},
    }
    assert "Wi-Fi is on" in rest[3]["content"]


def test_the_model_calls_a_tool_and_leaves_with_a_mark(tmp_path: Path) -> None:
    reply, _ = asked([CALL], tmp_path, HISTORY[:2])
    assert reply == UserReply("", "inform", calls=(ToolCall("toggle_wifi", {}),))
    reply, _ = asked(["Thank you! ###STOP###"], tmp_path, HISTORY)
    assert reply == UserReply("Thank you!", "leave", leaves=True)


def test_what_cannot_be_used_is_asked_for_once_more(tmp_path: Path) -> None:
    wrong = CALL.replace("toggle_wifi", "toggle_light")
    reply, server = asked([wrong, "I cannot."], tmp_path, HISTORY[:2])
    assert reply.text == "I cannot."
    assert "toggle_light" in server.asked[1]["messages"][-1]["content"]
    fault, _ = asked([wrong, " "], tmp_path / "other", HISTORY[:2])
    assert isinstance(fault, UserFault)


def test_a_person_calls_tools_and_is_told_of_calls_that_are_none() -> None:
    shown: list[str] = []
    lines = iter(["/call toggle_light", "/call set_mode mode=2g_only", "done"])
    begun: list[UserView] = []

    def begin(view: UserView) -> Any:
        begun.append(view)

        async def ask(said: str) -> str:
            shown.append(said)
            return next(lines)

        return ask

    person = PersonUser(begin, TOOLS)
    reply = asyncio.run(person.reply(HISTORY[:2], VIEW, PLAIN))
    assert reply.calls == (ToolCall("set_mode", {"mode": "2g_only"}),)
    reply = asyncio.run(person.reply(HISTORY, VIEW, PLAIN))
    assert reply.text == "done"
    assert begun == [VIEW]
    assert shown[0] == "please do toggle_wifi"
    assert "unknown tool toggle_light" in shown[1]
    assert shown[2] == "[toggle_wifi on your side] Wi-Fi is on"


def test_the_users_calls_are_kept_with_the_trajectory(tmp_path: Path) -> None:
    calls = ((ToolCall("set_mode", {"mode": "2g_only"}), "set"), (ToolCall("toggle_wifi"), "on"))
    trajectory = Trajectory("a", "shop", "a", 1, 1, "help", 5, 1)
    trajectory.turns = [
        Turn(None, "?", "it is on", "user", act="inform", user_calls=calls),
        Turn(None, "?", "ok", "user"),
    ]
    write_trajectories(tmp_path / "one.jsonl", [trajectory])
    (again,) = read_trajectories(tmp_path / "one.jsonl")
    assert [turn.user_calls for turn in again.turns] == [calls, ()]


@pytest.mark.parametrize("mark", ["###TRANSFER###", "###OUT-OF-SCOPE###"])
def test_each_mark_ends_it(mark: str, tmp_path: Path) -> None:
    reply, _ = asked([mark], tmp_path, HISTORY)
    assert (reply.text, reply.leaves) == ("", True)
