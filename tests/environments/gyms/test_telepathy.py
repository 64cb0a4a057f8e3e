"""The gym `telepathy`: rewards, ends and answers by hand."""

from itertools import combinations
from random import Random

import pytest

from progrl.dialogue.messages import Message
from progrl.dialogue.tasks import Milestone
from progrl.environments.choices import ChoiceEnvironment
from progrl.environments.gyms.telepathy import SIZES, Telepathy
from progrl.environments.gyms.things import CUES, QUESTIONS, THINGS, things_in, traits_in
from tests.builders import make_task
from tests.environments.gym import do, gym, stream

TASK = make_task(
    query="i think of one of these : dog , cat , piano , apple . ask about it , then name it",
    goal={"thing": "cat"},
    setup={"things": ["dog", "cat", "piano", "apple"]},
    milestones=(Milestone("solved", 1.0),),
)


def started() -> ChoiceEnvironment:
    environment = gym("telepathy").environment()
    assert isinstance(environment, ChoiceEnvironment)
    environment.reset(TASK)
    return environment


def said(question: str) -> str:
    telepathy = Telepathy()
    view = telepathy.user_view(TASK)
    history = [Message("user", TASK.query), Message("assistant", question)]
    return telepathy.answer(history, view, Random(1)).text


@pytest.mark.parametrize(
    ("choice", "content", "reward", "done"),
    [
        ("action", "is it alive ?", 0.0, False),
        ("action", "is it a cat ?", 0.0, False),
        ("answer", "cat", 1.0, True),
        ("answer", "It is a CAT !", 1.0, True),
        ("answer", "dog", 0.0, False),
        ("answer", "cat or dog", 0.0, False),
        ("answer", "a category", 0.0, False),
        ("answer", "", 0.0, False),
        ("search", "cat", 0.0, False),
    ],
)
def test_the_table(choice: str, content: str, reward: float, done: bool) -> None:
    environment = started()
    result = do(environment, choice, content)
    assert (result.reward, result.done) == (reward, done)
    assert environment.outcome().success == done
    assert result.said == (content if choice == "action" else "")


def test_a_wrong_guess_may_be_mended() -> None:
    environment = started()
    assert do(environment, "answer", "dog").observation == "wrong"
    assert do(environment, "answer", "cat").reward == 1.0
    assert do(environment, "answer", "cat").failed


@pytest.mark.parametrize(
    ("question", "yes"),
    [
        ("is it alive ?", True),
        ("can it climb", True),
        ("does it have fur and hunt ?", True),
        ("does it have fur and wheels ?", False),
        ("can it fly ?", False),
        ("is it not an animal ?", False),
        ("it can't fly , can it ?", True),
        ("is it the cat ?", True),
        ("is it a dog ?", False),
        ("is it an eagle ?", False),
        ("is it the cat or the dog ?", False),
    ],
)
def test_answers_by_hand(question: str, yes: bool) -> None:
    reply = said(question)
    assert reply.startswith("y" if yes else "n"), reply


def test_what_is_no_question_gets_no_answer() -> None:
    assert said("what is the weather ?") == "i can say yes or no only"


def test_each_thing_can_be_told_from_the_others() -> None:
    assert len(THINGS) >= 90
    assert not THINGS.keys() & QUESTIONS.keys()
    assert all(traits <= QUESTIONS.keys() for traits in THINGS.values())
    assert not [(a, b) for a, b in combinations(THINGS, 2) if THINGS[a] == THINGS[b]]
    assert all(any(trait in traits for traits in THINGS.values()) for trait in QUESTIONS)


def test_each_phrase_asks_for_one_trait_and_names_no_thing() -> None:
    for trait, cues in CUES.items():
        for phrase in (QUESTIONS[trait], *cues):
            assert traits_in(phrase) == (trait,)
            assert not things_in(phrase)


def test_more_things_to_choose_from_at_higher_levels() -> None:
    turns = dict.fromkeys(SIZES, 0)
    for task in stream(Telepathy(), 200):
        assert len(task.setup["things"]) == SIZES[task.level]
        assert task.goal["thing"] in task.setup["things"]
        turns[task.level] += task.expert_turns
    assert sorted(turns.values()) == list(turns.values())


def test_a_value_said_gives_no_other_away() -> None:
    for task in stream(Telepathy(), 20):
        values = [fact.value for fact in Telepathy().user_view(task).facts]
        assert len(set(values)) == len(values)
