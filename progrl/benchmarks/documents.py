"""Search in documents: find provisions by words or by meaning, read them, answer.

The corpus of our own is invented law: 12 Acts of 6 sections. Any other is a folder with
`documents.jsonl` (`id`, `title`, `text`) and `questions.jsonl` (`question`, `answer`, `documents`:
the ids that hold the answer, in the order to read them; optional `level` and `family`).

Search by words is BM25 (package `bm25s`), by meaning the inner product of sentence vectors in a
FAISS index. Turns earn rewards from -2 to 2 in bands, see `REWARDS`.
"""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from progrl.benchmarks.base import Game, Silent, check_call, task, tool
from progrl.dialogue.acts import mentions, normal
from progrl.dialogue.messages import Action, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.embedding import encoder
from progrl.environments.contracts import State, StepResult
from progrl.errors import DataError, MalformedAction
from progrl.files import read_jsonl

LEGAL = Path(__file__).parent / "legal"
SHOWN = 5
"""Documents that a search finds at most."""
REMEMBERED = 10_000
"""Queries whose results are kept."""
MOST_WORDS = 12
"""Of an answer: one that lists everything is none."""
REWARDS = {
    "proven": 2.0,  # the right answer, every document that holds it read
    "guessed": 1.0,  # the right answer, not all of them read
    "read": 1.0,  # a document that holds the answer, for the first time
    "found": 0.5,  # a search that shows such a document for the first time
    "idle": 0.0,  # another search or document
    "repeated": -1.0,  # the same search or document again
    "failed": -1.0,  # a call that is none
    "wrong": -2.0,  # a wrong answer, which ends the episode
}
WORDS, MEANING, READ, ANSWER = "search_words", "search_meaning", "read_document", "answer"
_TEXT = {"type": "string"}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a corpus."""

    id: str
    title: str
    text: str


class Corpus:
    """Documents with their indexes, and questions about them.

    Args:
        folder: holds documents.jsonl and questions.jsonl.
        kind: of sentence encoder, for search by meaning.

    Raises:
        DataError: a file is missing or a line is of another form; file and line are named.
    """

    def __init__(self, folder: Path, kind: str = "minilm") -> None:
        self._kind = kind
        found = [_document(folder, *row) for row in read_jsonl(folder / "documents.jsonl")]
        self.documents = {each.id: each for each in found}
        if not found or len(self.documents) < len(found):
            raise DataError(f"{folder / 'documents.jsonl'}: no documents, or two of the same id.")
        self.questions = [
            _question(folder, self.documents, *row)
            for row in read_jsonl(folder / "questions.jsonl")
        ]
        self._texts = [f"{each.title}\n{each.text}" for each in found]
        self._ids = [each.id for each in found]
        # Agents ask the same again and again, and vectors take long to make.
        self.by_words = lru_cache(REMEMBERED)(self._by_words)
        self.by_meaning = lru_cache(REMEMBERED)(self._by_meaning)

    @cached_property
    def _bm25(self) -> Any:
        index = _bm25s().BM25()
        index.index(self._tokens(self._texts), show_progress=False)
        return index

    def _tokens(self, texts: Sequence[str]) -> Any:
        return _bm25s().tokenize(texts, stopwords="en", return_ids=False, show_progress=False)

    @cached_property
    def _encoder(self) -> Any:
        return encoder(self._kind)

    @cached_property
    def _vectors(self) -> Any:
        faiss: Any = import_module("faiss")
        faiss.omp_set_num_threads(1)
        index = faiss.IndexFlatIP(self._encoder.dimension)
        index.add(self._encoder.encode(self._texts))
        return index

    def _by_words(self, query: str) -> Sequence[Document]:
        """The documents that share most with the query's words, the best first."""
        tokens = self._tokens([query])
        if not tokens[0]:
            return []
        scores = self._bm25.get_scores(tokens[0])
        order = sorted(range(len(self._ids)), key=lambda n: (-scores[n], self._ids[n]))
        return [self.documents[self._ids[n]] for n in order[:SHOWN] if scores[n] > 0]

    def _by_meaning(self, query: str) -> Sequence[Document]:
        """The documents whose vectors are nearest to the query's, the nearest first."""
        most = min(SHOWN, len(self._ids))
        _, found = self._vectors.search(self._encoder.encode([query]), most)
        return [self.documents[self._ids[n]] for n in found[0]]


def _bm25s() -> Any:
    """The package; it would log each step of indexing."""
    package: Any = import_module("bm25s")
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    return package


def _document(folder: Path, number: int, row: Any) -> Document:
    try:
        document = Document(row["id"], row["title"], row["text"])
        if all(isinstance(part, str) for part in (document.id, document.title, document.text)):
            return document
    except (TypeError, KeyError):
        pass
    raise DataError(f"{folder / 'documents.jsonl'}, line {number}: needs id, title and text.")


def _question(
    folder: Path, documents: Mapping[str, Document], number: int, row: Any
) -> dict[str, Any]:
    place = f"{folder / 'questions.jsonl'}, line {number}"
    try:
        question: dict[str, Any] = {
            "question": str(row["question"]),
            "answer": str(row["answer"]),
            "documents": list(row["documents"]),
            "level": int(row.get("level", 1)),
            "family": str(row.get("family", "question")),
        }
    except (TypeError, KeyError, ValueError, AttributeError):
        raise DataError(f"{place}: needs question, answer and documents.") from None
    strange = [each for each in question["documents"] if each not in documents]
    if strange or not question["documents"] or not 1 <= question["level"] <= 5:
        raise DataError(f"{place}: names no known document, or a level outside 1 to 5.")
    return question


def is_answer(given: str, expected: str) -> bool:
    """Whether `given` says `expected`, in few words and with no other number."""
    if len(given.split()) > MOST_WORDS or not mentions(given, expected):
        return False
    return not (set(_NUMBER.findall(given)) - set(_NUMBER.findall(expected)))


class DocumentEnvironment(Game):
    """One question, in the corpus or in a variant of it (`variants`). For experts: `read`, the ids
    that were read, and `documents`, by id."""

    reward_bounds = (min(REWARDS.values()), max(REWARDS.values()))

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Begin the question."""
        self._answer: str = task.goal["answer"]
        self._needed: list[str] = task.goal["documents"]
        ids, texts = task.setup.get("ids", {}), task.setup.get("texts", {})
        self._own = {
            id_: Document(ids.get(id_, id_), own.title, texts.get(id_, own.text))
            for id_, own in self._corpus.documents.items()
        }
        self.documents = {each.id: each for each in self._own.values()}
        self.read: list[str] = []
        self._shown: set[str] = set()
        self._searched: set[tuple[str, str]] = set()
        self._solved = self._ended = False
        return DocumentSearch.tools

    def _call(self, call: ToolCall) -> StepResult:
        try:
            check_call(call, DocumentSearch.tools)
        except MalformedAction as error:
            return StepResult(f"error: {error}", REWARDS["failed"], failed=True)
        (text,) = call.arguments.values()
        if call.name == ANSWER:
            return self._judge(text)
        return self._open(text) if call.name == READ else self._search(call.name, text)

    def _judge(self, given: str) -> StepResult:
        self._ended = True
        self._solved = is_answer(given, self._answer)
        if not self._solved:
            return StepResult("wrong", REWARDS["wrong"], done=True)
        proven = set(self._needed) <= set(self.read)
        reward = REWARDS["proven" if proven else "guessed"]
        return StepResult("right", reward, ("solved",), 1.0, True)

    def _open(self, given: str) -> StepResult:
        document = self.documents.get(given)
        if document is None:
            return StepResult(f"error: no document {given}", REWARDS["failed"], failed=True)
        band = "repeated" if given in self.read else "read" if given in self._needed else "idle"
        self.read.append(given)
        return StepResult(f"{document.title}\n{document.text}", REWARDS[band])

    def _search(self, name: str, query: str) -> StepResult:
        asked = (name, normal(query))
        by = self._corpus.by_words if name == WORDS else self._corpus.by_meaning
        found = [self._own[each.id] for each in by(query)]
        new = {each.id for each in found} & set(self._needed) - self._shown
        band = "repeated" if asked in self._searched else "found" if new else "idle"
        self._searched.add(asked)
        self._shown |= new
        lines = [f"{each.id}: {each.title}" for each in found]
        return StepResult("\n".join(lines) or "nothing found", REWARDS[band])


class Researcher:
    """The expert: searches for each document that it needs, reads it, then answers.

    It searches by meaning with the question itself where words are no help (a paraphrase), else by
    the words of the document's title. It reads only what a search has shown it.
    """

    def next_action(self, state: State) -> Action:
        """Search, read, or answer.

        Raises:
            EnvironmentFault: the episode is not one of document search.
        """
        environment = state.played_in(DocumentEnvironment)
        goal = state.task.goal
        unread = [each for each in goal["documents"] if each not in environment.read]
        if not unread:
            return ToolCall(ANSWER, {"text": goal["answer"]})
        if any(unread[0] in m.content for m in state.history if m.role == "tool"):
            return ToolCall(READ, {"id": unread[0]})
        by_meaning = ToolCall(MEANING, {"query": state.task.query})
        by_words = ToolCall(WORDS, {"query": environment.documents[unread[0]].title})
        asked = [m.call for m in state.history if m.call is not None]
        first, second = by_words, by_meaning
        if state.task.family == "paraphrase":
            first, second = second, first
        if first not in asked:
            return first
        return second if second not in asked else Say("i do not know", closing=True)


class DocumentSearch(Silent):
    """Questions over a corpus.

    Args:
        folder: of the corpus; the one of our own by default.
        kind: of sentence encoder, for search by meaning.
    """

    name = "document_search"
    description = "Find what documents say, by search in words and in meaning, and answer."
    policy = (
        "Answer the question from the documents. Search, read what may hold the answer, then "
        "answer with the name or number alone. A document may refer to another.\n"
    )
    tools: tuple[ToolSpec, ...] = (
        tool(WORDS, "Find documents that have these words.", query=_TEXT),
        tool(MEANING, "Find documents that mean something like this.", query=_TEXT),
        tool(READ, "Read a document that a search has shown.", id=_TEXT),
        tool(ANSWER, "Give the answer; this ends the task.", text=_TEXT),
    )

    def __init__(self, folder: Path = LEGAL, kind: str = "minilm") -> None:
        self._corpus = Corpus(folder, kind)

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The corpus's questions in their order; the same for every split and seed."""
        for row in self._corpus.questions:
            goal = {"answer": row["answer"], "documents": row["documents"]}
            turns = 2 * len(row["documents"]) + 1
            yield task(self.name, row["family"], row["level"], row["question"], goal, {}, turns)

    def turns(self, task: Task) -> int:
        """Three times what the expert needs, and 5."""
        return 3 * task.expert_turns + 5

    def environment(self) -> DocumentEnvironment:
        """A fresh environment."""
        return DocumentEnvironment(self._corpus)

    def expert(self) -> Researcher:
        """The expert."""
        return Researcher()
