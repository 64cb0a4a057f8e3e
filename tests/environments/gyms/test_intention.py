"""The gym `intention`: rewards and answers by hand."""

from random import Random

import pytest

from progrl.dialogue.acts import asks
from progrl.dialogue.messages import Message
from progrl.dialogue.tasks import Task
from progrl.environments.choices import ChoiceEnvironment
from progrl.environments.gyms.base import Draft
from progrl.environments.gyms.intention import Intention, worth
from progrl.environments.gyms.recognise import about, cues_of, stem
from progrl.environments.gyms.wants import DETAILS, SUBJECTS, WANTS
from tests.environments.gym import do, gym, stream

ALL = list(SUBJECTS.values())
IMPORTANCE = {"budget": 3, "date": 3, "place": 2, "mood": 1}


def made() -> Task:
    missing = [
        {
            "name": name,
            "importance": importance,
            "inquiry": DETAILS[name].question,
            "cues": list(SUBJECTS[name].cues),
            "value": DETAILS[name].values[0],
        }
        for name, importance in IMPORTANCE.items()
    ]
    steps = tuple(f"covered {name}" for name in IMPORTANCE)
    goal = {"told": {"company": "solo"}, "missing": missing}
    query = "i want to arrange a concert ; company solo"
    return Intention().made(Draft("4_missing", query, goal, {}, steps), 3, 1)


def started() -> ChoiceEnvironment:
    environment = gym("intention").environment()
    assert isinstance(environment, ChoiceEnvironment)
    environment.reset(made())
    return environment


@pytest.mark.parametrize(
    ("importances", "reward"),
    [
        ([], 0.0),
        ([3], 1.0),
        ([2], 0.7),
        ([1], 0.4),
        ([1, 3], 0.8),
        ([2, 2], 0.5),
        ([3, 3, 3], 0.6),
        ([1, 1], 0.2),
        ([1, 1, 1, 1], 0.0),
        ([3] * 9, 0.0),
    ],
)
def test_what_a_question_is_worth(importances: list[int], reward: float) -> None:
    assert worth(importances) == reward


def test_an_episode_by_hand() -> None:
    environment = started()
    for words, reward, done in [
        ("hello there", 0.0, False),
        ("your budget .", 0.0, False),  # no question
        ("what is your budget ?", 1.0, False),
        ("what is your budget ?", 0.0, False),  # covered already
        ("who will be there ?", 0.0, False),  # told at once
        ("which colour ?", 0.0, False),  # does not matter
        ("which city , and what mood should it have ?", 0.5, False),
        ("which date ?", 1.0, True),
    ]:
        result = do(environment, "action", words)
        assert (result.reward, result.done) == (reward, done), words
    assert environment.outcome().success
    assert do(environment, "action", "which date ?").failed


def test_to_ask_for_all_at_once_is_worth_less() -> None:
    environment = started()
    result = do(environment, "action", "what budget , which date , which city , what mood ?")
    assert (result.reward, result.done) == (0.4, True)


@pytest.mark.parametrize(
    ("question", "act", "has"),
    [
        ("what is your budget ?", "inform", "shoestring"),
        ("which date , and where ?", "inform", "june"),
        ("who will be there ?", "repeat", "as i said"),
        ("what colour ?", "unknown", "does not matter"),
        ("well", "clarify", "what do you want to know"),
    ],
)
def test_answers_by_hand(question: str, act: str, has: str) -> None:
    own, task = Intention(), made()
    history = [Message("user", task.query), Message("assistant", question)]
    reply = own.answer(history, own.user_view(task), Random(1))
    assert reply.act == act
    assert has in reply.text


def test_questions_and_values_are_about_one_detail_alone() -> None:
    for name, detail in DETAILS.items():
        assert asks(detail.question)
        for phrase in (detail.question, *SUBJECTS[name].cues):
            assert about(phrase, ALL) == [name], phrase
        # No question has a value in it, and `seasoned` only sounds like a season.
        assert {v for v in detail.values if about(v, ALL)} <= {"seasoned"}
    assert all(len(set(details)) == 7 for details in WANTS.values())
    values = [value for detail in DETAILS.values() for value in detail.values]
    assert len(set(values)) == len(values)


def test_more_is_missing_at_higher_levels() -> None:
    for task in stream(Intention(), 50):
        assert len(task.goal["missing"]) == (2, 3, 4, 5, 7)[task.level - 1] == task.expert_turns


def test_cues_are_words_of_one_text_alone() -> None:
    first, second = cues_of(("Crowds at the beach", "Weather of the beach"), "go to the beach")
    assert first == ("crowds", "crowd")
    assert "weather" in second
    assert not {"beach", "at", "the"} & {*first, *second}
    assert len({stem(word) for word in ("travel", "travels", "travelling")}) == 1
