"""Benchmarks as domains to train in: options, splits, variants of questions, what decides anew."""

from itertools import islice
from pathlib import Path

import pytest

from progrl.agent.seats import ExpertAgent
from progrl.benchmarks.documents import DocumentEnvironment
from progrl.benchmarks.play import play
from progrl.benchmarks.variants import VariedDocumentSearch
from progrl.dialogue.messages import ToolCall
from progrl.environments.registry import domain, plugin_sources
from progrl.errors import ConfigurationError
from progrl.extras import install_line
from tests.benchmarks.packages import opened
from tests.benchmarks.test_documents import DOCUMENTS, corpus


@pytest.mark.parametrize("name", ["babyai", "document_search"])
def test_what_is_missing_is_said_where_the_domain_is_asked_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("progrl.benchmarks.contracts.Benchmark.missing", ("some_module",))
    extras = {"babyai": ["babyai"], "document_search": ["documents", "encoder"]}[name]
    with pytest.raises(ConfigurationError, match="needs some_module") as refused:
        domain(name)
    assert install_line(*extras) in str(refused.value)


def test_their_sources_decide_whether_a_stage_runs_again() -> None:
    named = {path.name for path in plugin_sources("babyai")}
    assert {"babyai.py", "base.py", "documents.py"} <= named
    assert plugin_sources("search") == []


def test_babyai_has_the_levels_that_are_asked_for() -> None:
    opened("babyai")
    made = domain("babyai", {"levels": ["GoToObj", "OpenDoor"], "tests": 3})
    tests = list(made.tasks("test", 5))
    assert [task.family for task in tests] == ["GoToObj", "OpenDoor"] * 3
    assert tests == list(made.tasks("test", 6))
    others = [list(islice(made.tasks(split, 5), 6)) for split in ("train", "validation")]
    ids = [{task.id for task in tasks} for tasks in (tests, *others)]
    assert len(set.union(*ids)) == 18
    with pytest.raises(ConfigurationError, match="levels"):
        domain("babyai", {"levels": ["GoToMars"]})


def varied(monkeypatch: pytest.MonkeyPatch, folder: Path, question: str) -> VariedDocumentSearch:
    """Two questions about the small corpus, without the packages."""
    monkeypatch.setattr("progrl.benchmarks.contracts.Benchmark.missing", ())
    questions = [
        {"question": question, "answer": 40, "documents": ["a"]},
        {"question": "What costs nothing?", "answer": "unsaid", "documents": ["b"]},
    ]
    folder = corpus(folder, DOCUMENTS, questions)
    made = domain("document_search", {"corpus": str(folder), "encoder": "hashed", "tests": 2})
    assert isinstance(made, VariedDocumentSearch)
    return made


def test_a_variant_has_an_answer_and_ids_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = varied(monkeypatch, tmp_path, "What does riding on a footpath cost?")
    tests = list(made.tasks("test", 1))
    assert len(tests) == 2  # the other question's answer stands nowhere
    assert tests == list(made.tasks("test", 2))
    for task in tests:
        answer, (id_,) = task.goal["answer"], task.goal["documents"]
        assert answer != "40"
        assert len(answer) == 2
        environment = made.environment()
        environment.reset(task)
        read = environment.step(ToolCall("read_document", {"id": id_}))
        assert f"a fine of {answer} crowns" in read.observation
        assert read.reward == 1
        assert environment.step(ToolCall("answer", {"text": answer})).done
        assert environment.outcome().success
        environment.reset(task)
        environment.step(ToolCall("answer", {"text": "40"}))
        assert not environment.outcome().success
    assert {task.id for task in tests}.isdisjoint(
        task.id for task in islice(made.tasks("train", 1), 20)
    )


def test_the_expert_solves_variants() -> None:
    opened("document_search")
    made = domain("document_search", {"levels": [1, 3], "encoder": "hashed"})
    assert isinstance(made, VariedDocumentSearch)
    assert made.task_count("test") == 4 * 48
    assert made.families() == [("provision", 1), ("reference", 3)]
    tasks = list(islice(made.tasks("validation", 3), 48))
    played = play(made, tasks, ExpertAgent())
    assert [t.task_id for t in played if not t.success] == []
    assert [len(t.turns) for t in played] == [task.expert_turns for task in tasks]


def test_ids_are_told_by_searches_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("bm25s")
    made = varied(monkeypatch, tmp_path, "What does riding on a footpath cost?")
    environment, shown = made.environment(), set()
    assert isinstance(environment, DocumentEnvironment)
    for task in islice(made.tasks("train", 1), 20):
        environment.reset(task)
        found = environment.step(ToolCall("search_words", {"query": "bicycle"}))
        shown.add(found.observation)
        assert found.observation == f"{task.goal['documents'][0]}: Bicycles"
    assert len(shown) == 3


def test_what_is_compared_or_computed_has_no_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("progrl.benchmarks.contracts.Benchmark.missing", ())
    every = domain("document_search", {"levels": [1, 2, 3, 4, 5], "encoder": "hashed"})
    assert isinstance(every, VariedDocumentSearch)
    assert [level for _, level in every.families()] == [1, 2, 3]
    with pytest.raises(ConfigurationError, match=r"no question of the levels \[4, 5\]"):
        domain("document_search", {"levels": [4, 5], "encoder": "hashed"})
