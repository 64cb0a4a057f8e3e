"""Import of UserRL's data: records of our own in its form, and real samples where they are."""

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from progrl.agent.seats import ExpertAgent
from progrl.cli.app import app
from progrl.dialogue.messages import Message
from progrl.environments.gyms.persuade import worth
from progrl.environments.gyms.turtle import Turtle
from progrl.environments.gyms.userrl import import_userrl
from progrl.environments.registry import domain
from progrl.errors import ConfigurationError, DataError
from tests.environments.gym import do, episodes

FUNCTION = {"id": "f1", "rule": "a ** 2 - b / d", "test_case": [3, 4, 5, 8], "expected_result": 8.5}
TELEPATHY = {
    "id": "e1",
    "title": "Ada 'The First' Lovelace",
    "description": "I think of somebody.",
    "goal": "Name her.",
    "target_entity": "Ada Lovelace - a mathematician who wrote programs",
    "category": "famous_person",
}
INTENTION: dict[str, Any] = {
    "id": "i1",
    "category": "Home",
    "task": "Choose a lamp.",
    "missing_details": [
        {
            "description": "Brightness wanted",
            "importance": "3",
            "inquiry": "How bright shall the lamp be?",
            "options": ["Dim", "Glaring"],
        },
        {
            "description": "Room",
            "importance": "1",
            "inquiry": "In which room will it stand?",
            "options": ["Attic"],
        },
    ],
}
STORY = {
    "new_title": "Rain",
    "new_surface": "She was glad of the rain.",
    "new_bottom": "Her house had been on fire.",
    "evaluation": [{"statement": "Her house burned.", "score": 1.0}],
}
TAU = {
    "id": "t1",
    "obs": "hi",
    "info": {
        "task": {
            "user_id": "u1",
            "actions": [{"name": "cancel", "kwargs": {"order": "1"}}],
            "instruction": "Cancel it.",
            "outputs": [],
        }
    },
}
TRAVEL = {
    "id": "v1",
    "scenario": "A trip",
    "initial_desc": "I travel.",
    "dimensions": ["hotel"],
    "preferences": {
        "hotel": {
            "preferences": [
                ["price", "total", "I count every penny.", True],
                ["price", "breakfast", "I dine at dawn.", False],
            ],
            "best_id": "H2",
            "correct_ids": ["H1", "H2"],
        }
    },
}
PERSUADE = {
    "id": "p1",
    "claim": "Lifts should be abolished.",
    "argument": "Climbing strengthens the legs. Motors swallow electricity.",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files: dict[str, Any] = {
        "functions": [FUNCTION],
        "entities": [TELEPATHY],
        "intentions": [INTENTION],
        "stories": {"7": STORY},
        "tau": [TAU],
        "travel": [TRAVEL],
        "persuade": [PERSUADE],
    }
    for name, value in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    return tmp_path


def run(*arguments: str) -> tuple[int, Any]:
    done = CliRunner().invoke(app, ["import", "userrl", *arguments, "--json"])
    return done.exit_code, json.loads(done.stdout) if done.stdout.startswith("{") else done.stderr


def test_a_folder_is_imported_and_the_tasks_played(folder: Path, tmp_path: Path) -> None:
    code, told = run(str(folder), "--output", str(tmp_path / "out"))
    assert code == 0
    names = ("function", "intention", "persuade", "telepathy", "travel", "turtle")
    assert told["imported"] == dict.fromkeys(names, 1)
    assert told["without_gym"] == {"tau": 1}
    assert told["bad"] == []
    for name in told["imported"]:
        played = domain(name, {"imported": told["files"][name]})
        tasks = [t for split in ("train", "validation", "test") for t in played.tasks(split, 1)]
        assert len(tasks) == 1
        assert [t.success for t in episodes(played, ExpertAgent(), tasks)] == [True]
    with pytest.raises(ConfigurationError, match="not of 'travel'"):
        wrong = domain("travel", {"imported": told["files"]["function"]})
        next(iter(wrong.tasks("train", 1)))


def test_all_fields_arrive(folder: Path) -> None:
    tasks = import_userrl(folder).tasks
    (function,), (thing,), (intent,) = tasks["function"], tasks["telepathy"], tasks["intention"]
    assert function.goal == {"rule": FUNCTION["rule"], "result": 8.5}
    assert function.setup == {"test": [3, 4, 5, 8], "id": "f1"}
    assert thing.goal["names"] == ["ada the first lovelace", "ada lovelace"]
    assert thing.goal["about"].startswith("famous person Ada Lovelace")
    assert (thing.query, thing.goal["wanted"]) == ("I think of somebody.", "Name her.")
    assert intent.query == "Choose a lamp."
    first, second = intent.goal["missing"]
    assert (first["importance"], second["importance"]) == (3, 1)
    assert first["value"] in first["options"]
    assert second["inquiry"] == "In which room will it stand?"
    (story,), (claim,), (trip,) = tasks["turtle"], tasks["persuade"], tasks["travel"]
    assert story.query == STORY["new_surface"]
    assert [c["statement"] for c in story.goal["criteria"]] == ["Her house burned."]
    assert STORY["new_bottom"] in story.goal["story"]
    assert claim.query == PERSUADE["claim"]
    assert [c["weight"] for c in claim.goal["concerns"]] == [3, 3]
    assert claim.goal["concerns"][0]["worry"] == "climbing strengthens the legs"
    assert trip.query == TRAVEL["initial_desc"]
    assert list(trip.goal["wanted"]["hotel"].values()) == [
        "I count every penny.",
        "I dine at dawn.",
    ]
    assert (trip.goal["best"], trip.goal["fitting"]) == ({"hotel": "H2"}, {"hotel": ["H2", "H1"]})


@pytest.mark.parametrize(
    ("guess", "right"),
    [("Ada Lovelace", True), ("is it the Ada Lovelace ?", True), ("Ada", False), ("", False)],
)
def test_an_imported_thing_is_named_exactly(folder: Path, guess: str, right: bool) -> None:
    environment = domain("telepathy").environment()
    environment.reset(import_userrl(folder).tasks["telepathy"][0])
    assert (do(environment, "answer", guess).reward == 1.0) == right


def test_an_imported_riddle_is_played_by_hand(folder: Path) -> None:
    played = domain("turtle")
    task = import_userrl(folder).tasks["turtle"][0]
    environment = played.environment()
    environment.reset(task)
    assert do(environment, "search", "everything").observation == "nothing is known about it"
    assert do(environment, "answer", "She was glad of the rain").reward == 0.0
    own, view = Turtle(), Turtle().user_view(task)
    for question, starts in [
        ("had a fire burned the house ?", "ye"),
        ("was it about an umbrella ?", "no"),
        ("did the house get an umbrella ?", ("maybe", "partly")),
    ]:
        history = [Message("user", task.query), Message("assistant", question)]
        assert own.answer(history, view, Random(1)).text.startswith(starts), question
    assert do(environment, "answer", "the house of hers burned").done
    assert environment.outcome().success


def test_an_imported_claim_is_played_by_hand(folder: Path) -> None:
    environment = domain("persuade").environment()
    environment.reset(import_userrl(folder).tasks["persuade"][0])
    assert do(environment, "action", "lifts are cheap .").reward == 0.0
    assert do(environment, "action", "legs can be trained without climbing .").reward == worth(3)
    assert do(environment, "action", "motors hardly need electricity .").done


def test_an_imported_trip_is_played_by_hand(folder: Path) -> None:
    environment = domain("travel").environment()
    environment.reset(import_userrl(folder).tasks["travel"][0])
    assert do(environment, "action", "tell me about yourself").reward == 0.0
    assert do(environment, "action", "what of breakfast ?").reward == 0.2
    assert do(environment, "search", "hotel breakfast").reward == 0.0
    found = do(environment, "search", "hotel , count every penny , dine at dawn")
    assert (found.reward, found.observation) == (0.2, "H1 ; H2")
    assert do(environment, "answer", "H3").failed
    assert do(environment, "answer", "h1").reward == 0.8
    end = do(environment, "answer", "H2")
    assert (end.reward, end.done) == (1.0, True)


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({**FUNCTION, "expected_result": 9}, "expected_result"),
        ({**FUNCTION, "rule": "open('x')"}, "rule"),
        ({**FUNCTION, "rule": "a ** b ** c ** 99"}, "rule"),
        ({**FUNCTION, "test_case": [1, 2, 3]}, "test_case"),
        ({k: v for k, v in TELEPATHY.items() if k != "category"}, "category"),
        ({**INTENTION, "missing_details": []}, "missing_details"),
        (
            {
                **INTENTION,
                "missing_details": [{**INTENTION["missing_details"][0], "importance": "4"}],
            },
            "missing_details.0.importance",
        ),
        ({**STORY, "evaluation": [{"statement": "x", "score": "y"}]}, "evaluation.0.score"),
        ({**STORY, "evaluation": [{"statement": "x", "score": 0.4}]}, "evaluation"),
        ({**PERSUADE, "argument": "Climbing"}, "argument"),
        ({k: v for k, v in PERSUADE.items() if k != "argument"}, "argument"),
        ({**TRAVEL, "dimensions": ["hotel", "car"]}, "dimensions.1"),
        ({**TRAVEL, "dimensions": ["hotel", "hotel"]}, "dimensions.1"),
        ({**TAU, "info": {"task": {}}}, "info.task.user_id"),
        ({**TRAVEL, "preferences": {"hotel": {}}}, "preferences.hotel.preferences"),
        ({"id": "x"}, "-"),
        ("words", "-"),
    ],
)
def test_a_bad_record_is_named_and_the_rest_imported(
    tmp_path: Path, record: Any, field: str
) -> None:
    (tmp_path / "mixed.json").write_text(json.dumps([record, FUNCTION]))
    code, told = run(str(tmp_path), "--output", str(tmp_path / "out"))
    assert code == 0
    assert told["imported"] == {"function": 1}
    (bad,) = told["bad"]
    assert (bad["file"], bad["field"]) == ("mixed.json", field)
    assert bad["record"] == (record.get("id", "#1") if isinstance(record, dict) else "#1")
    assert bad["reason"]


def test_nothing_to_import_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no folder"):
        import_userrl(tmp_path / "none")
    (tmp_path / "broken.json").write_text("[")
    (tmp_path / "number.json").write_text("7")
    code, told = run(str(tmp_path), "--output", str(tmp_path / "out"))
    assert code == 2
    assert [bad["file"] for bad in told["bad"]] == ["broken.json", "number.json"]
    assert run(str(tmp_path / "none"), "--output", str(tmp_path / "out"))[0] == 2


def test_real_samples_are_imported_and_solved() -> None:
    place = os.environ.get("PROGRL_USERRL_DATA")
    if not place:
        pytest.skip("PROGRL_USERRL_DATA names no folder")
    found = import_userrl(Path(place))
    assert found.bad == []
    assert {name: len(tasks) for name, tasks in found.tasks.items()} == {
        "function": 40,
        "intention": 25,
        "telepathy": 30,
        "turtle": 15,
    }
    assert found.unplayed == {"tau": 20}
    for name, tasks in found.tasks.items():
        done = episodes(domain(name), ExpertAgent(), tasks, horizon=16)
        assert sum(t.success for t in done) >= 0.98 * len(done), name
