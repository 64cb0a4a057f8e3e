from dataclasses import replace

import pytest

from progrl.dialogue.users import Fact, GoalChange, UserView, Wish
from progrl.users.human import Brief, Goal, HumanUser, brief
from tests.users.desk import CANCEL, answer, conversation, view


@pytest.mark.parametrize(
    ("heard", "typed", "act"),
    [
        ("cancel order 73933 . confirm ?", "Yes, do it", "confirm"),
        ("cancel order 73933 . confirm ?", "please do not", "correct"),
        ("what is your email ?", " ana12@mail.com ", "inform"),
        ("what is your email ?", "what for?", "clarify"),
    ],
)
def test_a_persons_words_are_recognised(heard: str, typed: str, act: str) -> None:
    shown = []

    async def ask(text: str) -> str:
        shown.append(text)
        return typed

    reply = answer(conversation(heard), view(CANCEL), user=HumanUser(ask))
    assert shown == [heard]
    assert (reply.text, reply.act, reply.leaves) == (typed.strip(), act, False)


def test_a_person_can_leave() -> None:
    async def ask(text: str) -> str:
        return "/quit"

    reply = answer(conversation("hello"), view(CANCEL), user=HumanUser(ask))
    assert (reply.act, reply.leaves) == ("leave", True)


BEFORE = UserView(
    "desk",
    "hi",
    (Fact("zip", "zip 1750", ("zip",)), Fact("name", "ana li", ("name",))),
    (
        Wish("cancel", "i want to cancel an order", ("cancel",), ("73933", "mistake"), "act"),
        Wish("points", "i want to know my points", ("points",), ("339",), "know"),
    ),
    seed=1,
    labels={"name": "your name"},
)


def test_the_brief_tells_what_to_want_but_not_what_the_agent_is_to_find_out() -> None:
    assert brief(BEFORE) == Brief(
        ("i want to cancel an order (73933, mistake)", "i want to know my points"),
        (("zip", "1750"), ("your name", "ana li")),
    )


def test_a_goal_changes_with_its_reply_and_only_then() -> None:
    after = replace(BEFORE, query="other")
    goal = Goal(replace(BEFORE, change=GoalChange(2, "no , keep it", after)))
    assert (goal.turn(), goal.view.query) == ("", "hi")
    assert (goal.turn(), goal.view) == ("no , keep it", after)
    assert (goal.turn(), goal.view) == ("", after)
