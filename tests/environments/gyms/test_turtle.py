"""The gym `turtle`: answers, scores and ends by hand."""

from random import Random
from typing import Any

import pytest

from progrl.agent.seats import ExpertAgent
from progrl.dialogue.messages import Message
from progrl.dialogue.tasks import Task
from progrl.environments.choices import ChoiceEnvironment
from progrl.environments.gyms.base import Draft
from progrl.environments.gyms.riddles import ANSWERS, PARTS, SCENES, SUBJECTS, answers_in
from progrl.environments.gyms.turtle import SCORES, SHAPES, Turtle
from tests.environments.gym import do, episodes, gym, stream

TRUE = {"who": ("diver", 0.4), "where": ("zoo", 0.3), "before": ("bet", 0.2), "why": ("bird", 0.1)}
CANDIDATES = {
    "who": ["diver", "nurse", "spy"],
    "where": ["zoo", "mine"],
    "before": ["bet", "letter"],
    "why": ["bird", "child"],
}


def made() -> Task:
    criteria = [
        {"name": part, "weight": weight, "answer": name, "statement": ANSWERS[name].statement}
        for part, (name, weight) in TRUE.items()
    ]
    names = (*(f"explained {part}" for part in TRUE), "solved")
    draft = Draft("4_of_3", SCENES[0], {"criteria": criteria}, {"candidates": CANDIDATES}, names)
    return Turtle().made(draft, 4, 1)


def started(**options: Any) -> ChoiceEnvironment:
    environment = gym("turtle", **options).environment()
    assert isinstance(environment, ChoiceEnvironment)
    environment.reset(made())
    return environment


@pytest.mark.parametrize(
    ("story", "score"),
    [
        ("the stranger is a diver", 0.4),
        ("the stranger dives . it happens in a zoo", 0.7),
        ("it happens in a zoo and the stranger is a diver", 0.7),
        ("a diver lost a bet in a zoo", 0.9),
        ("a diver lost a bet in a zoo and wants to scare a bird", 1.0),
        ("the stranger is a diver or a nurse", 0.0),  # not to be had by naming all
        ("the stranger is a nurse . it happens in a zoo", 0.3),
        ("the stranger is not a nurse but a diver", 0.4),
        ("the stranger is not a diver", 0.0),
        ("nothing of it", 0.0),
    ],
)
def test_the_score_of_an_explanation(story: str, score: float) -> None:
    for published in (False, True):
        result = do(started(published=published), "answer", story)
        assert result.reward == pytest.approx(score)
        assert result.observation == f"score {score:g}"
        assert result.done == (score >= (1.0 if published else 0.9))


def test_what_is_paid_is_the_improvement_over_the_best() -> None:
    environment = started(published=True)
    for story, reward in [
        ("in a zoo", 0.3),
        ("in a zoo", 0.0),
        ("a diver", 0.1),
        ("a bet", 0.0),
        ("a diver in a zoo", 0.3),
        ("a diver in a zoo lost a bet", 0.2),
    ]:
        result = do(environment, "answer", story)
        assert (result.reward, result.done) == (pytest.approx(reward), False), story
    assert environment.outcome().domain == pytest.approx(0.9)
    assert not environment.outcome().success
    assert do(environment, "answer", "the diver in the zoo lost a bet , and scares a bird").done
    assert environment.outcome().success
    assert environment.outcome().progress == pytest.approx(1.0)


def test_nine_tenths_are_enough() -> None:
    environment = started()
    assert do(environment, "answer", "a diver in a zoo lost a bet").done
    assert environment.outcome().success
    assert environment.outcome().progress == pytest.approx(4 / 5)
    assert do(environment, "answer", "a bird").failed


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("is the stranger a diver ?", "yes"),
        ("is the stranger a nurse or a diver ?", "yes"),
        ("is the stranger a nurse ?", "no"),
        ("is the stranger not a nurse ?", "yes"),
        ("is the stranger not a diver ?", "no"),
        ("is it a diver in a zoo ?", "yes"),
        ("is it a nurse in a zoo ?", "maybe"),
        ("is it a nurse in a mine ?", "no"),
        ("is it tuesday ?", ""),
    ],
)
def test_answers_by_hand(question: str, verdict: str) -> None:
    own, task = Turtle(), made()
    history = [Message("user", task.query), Message("assistant", question)]
    words = {"yes": ("ye",), "no": ("no",), "maybe": ("maybe", "partly"), "": ("i can say",)}
    for seed in range(8):
        reply = own.answer(history, own.user_view(task), Random(seed))
        assert reply.text.startswith(words[verdict]), reply
        assert reply.act == ("inform" if verdict else "unknown")


def test_what_is_possible_can_be_looked_up() -> None:
    assert do(started(), "search", "where ?").observation == "where : zoo , mine"
    shown = do(started(), "search", "all").observation
    assert shown.startswith("who : diver , nurse , spy ; where : zoo , mine ; ")


def test_words_are_about_one_answer_alone() -> None:
    for name, answer in ANSWERS.items():
        assert answers_in(answer.statement) == {answer.part: {name}}, answer.statement
        for cue in SUBJECTS[name].cues:
            assert answers_in(cue) == {answer.part: {name}}, cue
    assert not any(answers_in(scene) for scene in (*SCENES, *PARTS.values()))
    for count, scores in SCORES.items():
        assert len(scores) == count
        assert sum(scores) == pytest.approx(1.0)
    most = max(size for _, size in SHAPES.values())
    for part in PARTS:
        assert sum(answer.part == part for answer in ANSWERS.values()) >= most


def test_more_is_open_at_higher_levels_and_the_expert_earns_one() -> None:
    played = gym("turtle")
    tasks = stream(played, 50)
    for task, trajectory in zip(tasks, episodes(played, ExpertAgent(), tasks), strict=True):
        assert len(task.goal["criteria"]) == SHAPES[task.level][0]
        assert {len(names) for names in task.setup["candidates"].values()} == {
            SHAPES[task.level][1]
        }
        assert sum(turn.reward for turn in trajectory.turns) == pytest.approx(1.0)
