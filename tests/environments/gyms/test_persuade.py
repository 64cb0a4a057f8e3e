"""The gym `persuade`: rewards, steps back and what the person tells, by hand."""

from math import exp, isclose
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.agent.seats import ExpertAgent
from progrl.dialogue.messages import Message
from progrl.dialogue.tasks import Task
from progrl.environments.choices import ChoiceEnvironment
from progrl.environments.gyms.base import Draft
from progrl.environments.gyms.concerns import ARGUMENTS, CONCERNS, TOPICS
from progrl.environments.gyms.persuade import (
    FAR_END,
    GENERAL,
    STANCES,
    STRESS,
    WEIGHTS,
    Persuade,
    heard,
    steps,
    worth,
)
from progrl.environments.gyms.recognise import about, holds
from tests.environments.gym import do, episodes, gym, stream

MINDED = {"cost": 3, "time": 2, "looks": 1}
CHEAP, QUICK, PRETTY = "it is cheap .", "it takes ten minutes .", "it is elegant ."


def made() -> Task:
    concerns: list[dict[str, Any]] = [
        {
            "name": name,
            "weight": weight,
            "worry": CONCERNS[name].worry,
            "cues": list(CONCERNS[name].asked_by),
            "case": CONCERNS[name].case,
            "told": name == "cost",
        }
        for name, weight in MINDED.items()
    ]
    query = "i am strongly against taking the bus , above all the money it would take"
    return Persuade().made(Draft("3_minded", query, {"concerns": concerns}, {}, steps()), 2, 1)


def started(**options: Any) -> ChoiceEnvironment:
    environment = gym("persuade", **options).environment()
    assert isinstance(environment, ChoiceEnvironment)
    environment.reset(made())
    return environment


def replies(*said: str) -> list[tuple[str, str]]:
    """Act and words of the person's reply to each message."""
    own, task = Persuade(), made()
    view, history, told = own.user_view(task), [Message("user", task.query)], []
    for words in said:
        history.append(Message("assistant", words))
        reply = own.answer(history, view, Random(1))
        history.append(Message("user", reply.text))
        told.append((reply.act, reply.text))
    return told


def test_what_levels_are_worth() -> None:
    assert worth(0) == 0.0
    assert worth(6) == 1.0
    assert worth(2) == pytest.approx((exp(0.6) - 1) / (exp(1.8) - 1))
    assert [round(worth(k), 3) for k in range(1, 7)] == [0.069, 0.163, 0.289, 0.459, 0.689, 1.0]


@given(st.lists(st.integers(0, 6), max_size=9).filter(lambda gains: sum(gains) <= FAR_END))
def test_a_leap_pays_more_than_its_steps(gains: list[int]) -> None:
    assert sum(map(worth, gains)) <= worth(sum(gains)) + 1e-12 <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("words", "levels"),
    [
        (CHEAP, 3),
        (QUICK, 2),
        (PRETTY, 1),
        (f"{CHEAP} {PRETTY}", 4),
        (f"{CHEAP} {QUICK}", 5),
        (f"{CHEAP} {QUICK} {PRETTY}", 0),  # too much at once
        ("it is not cheap .", 0),
        ("is it cheap ?", 0),  # a question argues nothing
        ("it is quiet .", 0),  # beside the point
        ("it is safe and cheap .", 2),  # one of them is beside the point
        ("you must do it .", 0),
        (f"you must , {CHEAP}", 2),
        ("hello", 0),
        ("", 0),
    ],
)
def test_the_table(words: str, levels: int) -> None:
    assert do(started(), "action", words or "-").reward == worth(levels)
    published = do(started(published=True), "action", words or "-")
    assert published.reward == levels / FAR_END
    assert not published.done


def test_an_episode_by_hand() -> None:
    environment, published = started(), started(published=True)
    for words, reward, as_published in [
        (PRETTY, worth(1), 1 / 6),
        (PRETTY, 0.0, 0.0),  # said before
        ("you have to , silly .", 0.0, 0.0),  # a step back
        ("i understand , sorry .", 0.0, 1 / 6),  # and forth again, which UserRL's code pays
        ("i understand .", 0.0, 0.0),
        (f"that is stupid . {QUICK}", worth(1), 1 / 6),
        (CHEAP, worth(3), 3 / 6),
    ]:
        result = do(environment, "action", words)
        assert (result.reward, result.done) == (reward, False), words
        assert do(published, "action", words).reward == pytest.approx(as_published), words
    assert environment.outcome().domain == pytest.approx(5 / 6)
    assert do(environment, "action", "fair point .").done
    assert environment.outcome().success
    assert do(environment, "action", CHEAP).failed


def test_what_the_person_says() -> None:
    assert replies(
        "what do you mind , what worries you ?",
        "is it the climate ?",
        "is it how it looks ?",
        "what else worries you ?",
        CHEAP,
        "idiot .",
        "it is silent . what is your name ?",
        "well then",
        f"{CHEAP} {QUICK} {PRETTY}",
    ) == [
        ("inform", "what i mind is also the hours it would eat up"),
        ("unknown", "no , that is not it"),
        ("inform", "what i mind is perhaps how ugly it would look"),
        ("repeat", "i have told you all that i mind"),
        ("inform", "i am undecided now"),
        ("inform", "that puts me off , i am rather against it now"),
        (
            "clarify",
            "that puts me off , i am against it now . what do you want to know ?",
        ),
        ("clarify", "that says nothing to me"),
        ("inform", "that is too much at once"),
    ]


def test_weights_are_the_whole_scale_and_said_in_words() -> None:
    assert len(STANCES) == FAR_END + 1
    assert all(sum(weights) == FAR_END for weights in WEIGHTS.values())
    for task in stream(Persuade(), 60):
        facts = Persuade().user_view(task).facts
        for fact, concern in zip(facts, task.goal["concerns"], strict=True):
            assert fact.value == f"{STRESS[concern['weight']]} {concern['worry']}"
            assert fact.cues[: len(GENERAL)] == GENERAL


def test_arguments_are_about_one_concern_alone() -> None:
    subjects = list(ARGUMENTS.values())
    for name, concern in CONCERNS.items():
        assert heard(concern.case).about == (name,), concern.case
        assert about(concern.worry, subjects) == []
        assert [other for other, c in CONCERNS.items() if holds(concern.worry, c.asked_by)] <= [
            name
        ]
        for cue in ARGUMENTS[name].cues:
            assert about(cue, subjects) == [name], cue
    assert all(len(names) >= max(map(len, WEIGHTS.values())) for names in TOPICS.values())


def test_what_the_expert_earns() -> None:
    played = gym("persuade")
    tasks = stream(played, 50)
    for task, trajectory in zip(tasks, episodes(played, ExpertAgent(), tasks), strict=True):
        weights = [concern["weight"] for concern in task.goal["concerns"]]
        pairs = [sum(weights[at : at + 2]) for at in range(0, len(weights), 2)]
        earned = sum(turn.reward for turn in trajectory.turns)
        assert isclose(earned, sum(map(worth, pairs))), (weights, earned)
