from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, cast

import numpy as np
import pytest

from progrl.dialogue.acts import affirms, mentions
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import Fact, UserView
from progrl.embedding import HashedEncoder
from progrl.environments.contracts import Domain
from progrl.environments.registry import domain
from progrl.errors import ConfigurationError, DataError
from progrl.users.fact_wordings import FACT_CORES
from progrl.users.replies import (
    NEAREST,
    ReplyMemory,
    build_reply_memory,
    facts_of,
    shares,
)
from progrl.users.wordings import ACTS, CORES, PREFIXES, SUFFIXES, WEIGHTS, authored, cores
from tests.users.desk import memory

NAMES = ("retail", "airline")
SLOTS = {
    **dict.fromkeys(CORES, frozenset()),
    **dict.fromkeys(("correct", "restate", "more", "still", "want"), frozenset({"{wish}"})),
    **dict.fromkeys(("inform", "repeat", "amend", "several"), frozenset({"{value}"})),
}
LABELLED = {"inform", "repeat", "amend", "clarify"}


def _slots(text: str) -> set[str]:
    return {word for word in text.replace(":", " ").split() if "{" in word}


def test_the_tables_fit_together() -> None:
    assert list(CORES) == list(PREFIXES) == list(SUFFIXES) == list(WEIGHTS)
    assert set(ACTS) < set(CORES)
    for table in (CORES, FACT_CORES, PREFIXES, SUFFIXES):
        for kind, texts in table.items():
            assert len(set(texts)) == len(texts), kind
            assert all(text == text.lower().strip() for text in texts)


@pytest.mark.parametrize("kind", CORES)
def test_a_wording_has_the_slots_that_its_move_fills(kind: str) -> None:
    texts = [*CORES[kind], *(t for own in FACT_CORES.values() for t in own if kind == "inform")]
    for text in texts:
        assert not text.startswith("{")
        spare = {"{label}"} if kind in LABELLED else set()
        assert SLOTS[kind] <= _slots(text) <= SLOTS[kind] | spare, text
    assert not any(_slots(t) for table in (PREFIXES, SUFFIXES) for t in table[kind])


@pytest.mark.parametrize("kind", CORES)
def test_only_what_confirms_sounds_like_a_yes(kind: str) -> None:
    everywhere = frozenset(FACT_CORES)
    for _, core in cores(kind, everywhere):
        for prefix in ("", *PREFIXES[kind]):
            text = f"{prefix} {core}"
            assert affirms(text) == (kind == "confirm"), text


def test_the_wordings_are_many_and_their_words_are_few() -> None:
    assert authored() >= 500
    for name in NAMES:
        words = {word for w in memory(name).wordings for word in w.text.split()}
        assert memory(name).diversity["words"] == len(words) < 300


@pytest.mark.parametrize("name", NAMES)
def test_no_wording_holds_a_value_of_the_domain(name: str) -> None:
    _, values = facts_of(domain(name), 5)
    assert len(values) > 500
    said = " ".join(w.text for w in memory(name).wordings)
    assert [value for value in sorted(values) if mentions(said, value)] == []


class Moody:
    """Retail, with users who also know a word that many wordings have."""

    name = "moody"

    def __init__(self) -> None:
        self._retail = domain("retail")
        self.tasks = self._retail.tasks

    def user_view(self, task: Task) -> UserView:
        seen = self._retail.user_view(task)
        return replace(seen, facts=(*seen.facts, Fact("mood", "Thanks", ("how are you",))))


def test_a_wording_that_holds_a_value_is_left_out() -> None:
    made = build_reply_memory(cast(Domain, Moody()), HashedEncoder(), 1, 200, 600)
    assert len(made.wordings) == 200
    assert [w.text for w in made.wordings if mentions(w.text, "thanks")] == []
    assert sum(mentions(w.text, "thanks") for w in memory().wordings) > 20


@pytest.mark.parametrize("name", NAMES)
def test_a_memory_holds_a_thousand_wordings_more_diverse_than_chance(name: str) -> None:
    figures = memory(name).diversity
    assert (figures["wordings"], figures["pool"]) == (1000, 3000)
    assert figures["pairwise"] > figures["random_pairwise"]
    assert figures["nearest"] > 1.3 * figures["random_nearest"]
    assert Counter(w.kind for w in memory(name).wordings) == Counter(shares(1000))


def test_shares_add_up() -> None:
    for total in (18, 120, 999, 1000, 3001):
        assert sum(shares(total).values()) == total
    assert shares(sum(WEIGHTS.values())) == WEIGHTS


def test_retrieval_is_by_nearness_within_kind_style_and_topic() -> None:
    made = memory()
    for key, near in made.retrieved.items():
        kind, topic, style = key.split("/")
        assert 0 < len(near) <= NEAREST
        found = [made.wordings[place] for place in near]
        assert {w.kind for w in found} == {kind}
        assert {w.topic for w in found} <= {"", topic}
        assert {w.style for w in found} == {style}
    first = made.wordings[made.retrieved["inform/zip/short"][0]]
    assert first.topic == "zip"


def test_nearer_wordings_come_more_often_and_unknown_topics_are_general() -> None:
    made, random = memory(), Random(1)
    drawn = Counter(made.find("inform", "zip", "short", random) for _ in range(2000))
    order = [made.wordings[i].text for i in made.retrieved["inform/zip/short"]]
    half = len(order) // 2
    assert sum(drawn[t] for t in order[:half]) > 2 * sum(drawn[t] for t in order[half:])
    general = {made.wordings[i].text for i in made.retrieved["inform//long"]}
    assert made.find("inform", "shoe size", "long", random) in general


def test_the_same_seed_gives_the_same_memory_and_another_another() -> None:
    desk, encoder = domain("retail"), HashedEncoder()
    small = build_reply_memory(desk, encoder, 3, 100, 300)
    assert small == build_reply_memory(desk, encoder, 3, 100, 300)
    assert small.wordings != build_reply_memory(desk, encoder, 4, 100, 300).wordings


def test_a_folder_gives_the_memory_back(tmp_path: Path) -> None:
    memory().save(tmp_path / "retail")
    loaded = ReplyMemory.load(tmp_path / "retail")
    assert loaded == memory()


def test_impossible_sizes_are_refused() -> None:
    desk, encoder = domain("retail"), HashedEncoder()
    with pytest.raises(ConfigurationError, match=r"generate\.responses"):
        build_reply_memory(desk, encoder, 1, 10, 300)
    with pytest.raises(ConfigurationError, match=r"generate\.pool"):
        build_reply_memory(desk, encoder, 1, 100, 200_000)


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "retail"

    def load_after(name: str, change: Any) -> None:
        memory().save(folder)
        path = folder / name
        path.write_text(change(path.read_text()))
        ReplyMemory.load(folder)

    with pytest.raises(DataError, match="line 3: not a wording"):
        load_after("wordings.jsonl", lambda s: s.replace("kind", "sort").replace("sort", "kind", 2))
    with pytest.raises(DataError, match="missing"):
        load_after("wordings.jsonl", lambda s: "\n".join(s.split("\n")[:500]))
    with pytest.raises(DataError, match="missing"):
        load_after("memory.json", lambda s: s.replace('"thank//long"', '"other//long"'))
    with pytest.raises(DataError, match="version 2"):
        load_after("memory.json", lambda s: s.replace('"version": 2', '"version": 1'))
    with pytest.raises(DataError, match="no such file"):
        ReplyMemory.load(tmp_path / "nowhere")


def test_figures_are_of_the_vectors_that_were_drawn() -> None:
    made = memory()
    texts = [
        w.text.format(value="this", label=w.topic or "thing", wish="i want help")
        for w in made.wordings
    ]
    vectors = HashedEncoder().encode(texts).astype(float)
    cosines = vectors @ vectors.T
    off = ~np.eye(len(texts), dtype=bool)
    assert made.diversity["pairwise"] == pytest.approx(1 - cosines[off].mean(), abs=1e-5)
