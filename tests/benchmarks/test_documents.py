"""Document search: bands of reward, what counts as an answer, corpora of one's own."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.benchmarks.documents import (
    LEGAL,
    REWARDS,
    Corpus,
    DocumentEnvironment,
    DocumentSearch,
    is_answer,
)
from progrl.dialogue.messages import ToolCall
from progrl.dialogue.tasks import Task
from progrl.errors import DataError
from tests.benchmarks.packages import opened

DOCUMENTS = [
    {"id": "a", "title": "Bicycles", "text": "A bicycle on a footpath costs a fine of 40 crowns."},
    {"id": "b", "title": "Dogs", "text": "A dog needs a lead of at most 2 metres."},
    {"id": "c", "title": "Fires", "text": "No fire may burn within 100 metres of a wood."},
]
QUESTIONS = [{"question": "What does riding on a footpath cost?", "answer": 40, "documents": ["a"]}]


def corpus(folder: Path, documents: object = DOCUMENTS, questions: object = QUESTIONS) -> Path:
    for name, rows in (("documents", documents), ("questions", questions)):
        assert isinstance(rows, list)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    return folder


def begun(folder: Path) -> tuple[DocumentEnvironment, Task]:
    search = DocumentSearch(corpus(folder), "hashed")
    (task,) = search.tasks("test", 0)
    environment = search.environment()
    environment.reset(task)
    return environment, task


def reward(environment: DocumentEnvironment, tool: str, text: str) -> float:
    key = {"read_document": "id", "answer": "text"}.get(tool, "query")
    return environment.step(ToolCall(tool, {key: text})).reward


def test_reading_and_a_proven_answer(tmp_path: Path) -> None:
    environment, task = begun(tmp_path)
    assert environment.reward_bounds == (-2.0, 2.0)
    assert task.expert_turns == 3
    assert reward(environment, "read_document", "b") == REWARDS["idle"]
    assert reward(environment, "read_document", "b") == REWARDS["repeated"]
    assert reward(environment, "read_document", "z") == REWARDS["failed"]
    assert reward(environment, "fly", "z") == REWARDS["failed"]
    assert reward(environment, "read_document", "a") == REWARDS["read"]
    assert reward(environment, "answer", "40 crowns") == REWARDS["proven"]
    assert environment.outcome().success


def test_a_guess_earns_less_and_a_wrong_answer_costs(tmp_path: Path) -> None:
    environment, task = begun(tmp_path)
    assert reward(environment, "answer", "40") == REWARDS["guessed"]
    assert environment.outcome().success
    environment.reset(task)
    result = environment.step(ToolCall("answer", {"text": "400"}))
    assert (result.reward, result.done) == (REWARDS["wrong"], True)
    assert not environment.outcome().success
    assert environment.step(ToolCall("answer", {"text": "40"})).failed
    assert not environment.outcome().success


def test_search_by_words_and_by_meaning(tmp_path: Path) -> None:
    pytest.importorskip("bm25s", reason="needs python -m pip install 'progrl[documents]'")
    pytest.importorskip("faiss", reason="needs python -m pip install 'progrl[documents]'")
    environment, _ = begun(tmp_path)
    assert reward(environment, "search_words", "lead for a dog") == REWARDS["idle"]
    assert reward(environment, "search_words", "bicycle footpath") == REWARDS["found"]
    assert reward(environment, "search_words", "bicycle  Footpath") == REWARDS["repeated"]
    assert reward(environment, "search_meaning", "bicycles") == REWARDS["idle"]
    assert environment.step(ToolCall("search_words", {"query": "zzz"})).observation == (
        "nothing found"
    )
    assert environment.step(ToolCall("search_words", {"query": ""})).observation == "nothing found"
    own = Corpus(tmp_path, "hashed")
    assert own.by_meaning("bicycles")[0].id == "a"
    assert len(own.by_meaning("bicycles")) == 3


@pytest.mark.slow
def test_meaning_finds_what_words_do_not() -> None:
    opened("document_search")
    own = Corpus(LEGAL)
    asked = [row for row in own.questions if row["family"] == "paraphrase"]
    assert len(asked) == 12
    for row in asked:
        (wanted,) = row["documents"]
        assert wanted not in [each.id for each in own.by_words(row["question"])]
        assert wanted in [each.id for each in own.by_meaning(row["question"])]


def test_the_answers_of_our_corpus_stand_in_its_documents() -> None:
    own = Corpus(LEGAL)
    for row in own.questions:
        text = " ".join(own.documents[each].text for each in row["documents"])
        if row["family"] != "difference":
            assert row["answer"] in text, row


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("40", True),
        ("it is 40 crowns .", True),
        ("40 or 50", False),
        ("140", False),
        ("", False),
        ("40 " + "and so on " * 5, False),
    ],
)
def test_what_is_an_answer(said: str, right: bool) -> None:
    assert is_answer(said, "40") is right


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_no_other_number_is_the_answer(said: int, expected: int) -> None:
    assert is_answer(str(said), str(expected)) is (said == expected)


@pytest.mark.parametrize(
    ("documents", "questions", "place"),
    [
        ([{"id": "a"}], QUESTIONS, "documents.jsonl, line 1"),
        ([*DOCUMENTS, DOCUMENTS[0]], QUESTIONS, "documents.jsonl"),
        ([], QUESTIONS, "documents.jsonl"),
        (DOCUMENTS, [{"question": "?"}], "questions.jsonl, line 1"),
        (DOCUMENTS, [{**QUESTIONS[0], "documents": ["z"]}], "questions.jsonl, line 1"),
        (DOCUMENTS, [*QUESTIONS, {**QUESTIONS[0], "level": 9}], "questions.jsonl, line 2"),
        (DOCUMENTS, ["?"], "questions.jsonl, line 1"),
    ],
)
def test_a_broken_corpus_is_refused(
    documents: object, questions: object, place: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=place):
        DocumentSearch(corpus(tmp_path, documents, questions))
