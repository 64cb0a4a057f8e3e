"""What a language model that plays the user reads: nothing before the agent has asked for it."""

import pytest

from progrl.dialogue.acts import contains, mentions
from progrl.dialogue.messages import Message, Say
from progrl.environments.contracts import State
from progrl.environments.registry import domain
from progrl.users.decisions import Talk
from progrl.users.llm_brief import Brief
from progrl.users.profiles import profile
from tests.environments.gym import stream

PLAIN = profile("plain")


def prompt(history: list[Message], view: object) -> str:
    brief = Brief.of(Talk.of(history, view), PLAIN)  # type: ignore[arg-type]
    return "\n".join(message["content"] for message in brief.messages(PLAIN))


@pytest.mark.parametrize("name", ["telepathy", "travel"])
def test_a_value_is_read_when_it_was_asked_for(name: str) -> None:
    played = domain(name, {"interface": "native"})
    hidden = shown = 0
    for task in stream(played, 200):
        view, environment = played.user_view(task), played.environment()
        environment.reset(task)
        question = played.expert().next_action(State(task, environment, []))
        assert isinstance(question, Say)
        opening = [Message("user", task.query)]
        before = prompt([*opening, Message("assistant", "good day to you .")], view)
        after = prompt([*opening, Message("assistant", question.text)], view)
        for fact in view.facts:
            assert not mentions(before, fact.value), (fact, before)
            asked = contains(question.text, fact.cues)
            assert mentions(after, fact.value) == asked, (fact, after)
            shown += asked
            hidden += not asked
        if name == "telepathy":
            assert f"{task.goal['thing']} yes" not in after
        else:
            assert not any(key in after for own in task.goal["fitting"].values() for key in own)
    assert shown >= 200
    assert hidden > 300


@pytest.mark.parametrize("name", ["intention", "persuade", "turtle"])
def test_nothing_untold_is_read_before_a_question_asks_for_it(name: str) -> None:
    played = domain(name, {"interface": "native"})
    question = {"persuade": "what worries you ?", "turtle": "is the stranger a diver ?"}
    shown = 0
    for task in stream(played, 200):
        view = played.user_view(task)
        opening = [Message("user", task.query)]
        before = prompt([*opening, Message("assistant", "good day to you .")], view)
        asked = question.get(name, "what is your budget ?")
        after = prompt([*opening, Message("assistant", asked)], view)
        for fact in view.facts:
            assert mentions(before, fact.value) == fact.told, (fact, before)
            if not fact.told:
                assert mentions(after, fact.value) == contains(asked, fact.cues), (fact, after)
                shown += mentions(after, fact.value)
    assert shown >= 20


@pytest.mark.parametrize("name", ["function", "search"])
def test_who_knows_nothing_reads_nothing(name: str) -> None:
    played = domain(name, {"interface": "native"})
    for task in stream(played, 200):
        view = played.user_view(task)
        assert not view.facts
        asked = Message("assistant", "what is the answer , or the rule ?")
        read = prompt([Message("user", task.query), asked], view)
        secret = task.goal["rule"] if name == "function" else task.goal["answer"]
        assert not mentions(read, secret)
