import pytest

from progrl.users.human import HumanUser
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
