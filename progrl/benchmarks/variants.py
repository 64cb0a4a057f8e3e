"""Document search as a domain to train in: the corpus's questions with other answers and ids.

A corpus has few questions. A variant of one has an answer of its own, put into the documents in the
place of the right one, and ids of its own for all documents. So neither can be known beforehand;
which documents to look for can, since the questions are the same in all splits.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from progrl.benchmarks.base import numbers, task
from progrl.benchmarks.documents import LEGAL, DocumentSearch
from progrl.benchmarks.registry import find
from progrl.dialogue.tasks import Split, Task
from progrl.errors import ConfigurationError
from progrl.seeds import Seed

COMPUTED = {"comparison", "difference"}
"""Families whose answer follows from several documents, so that no other one can be put there."""

Level = Annotated[int, Field(ge=1, le=5)]


class DocumentOptions(BaseModel):
    """What may be chosen of document search as a domain."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    corpus: Path | None = Field(
        default=None, description="Folder of a corpus, instead of the one of our own."
    )
    encoder: Literal["minilm", "hashed"] = Field(
        default="minilm", description="Sentence encoder of the search by meaning."
    )
    levels: tuple[Level, ...] = Field(
        default=(1, 2, 3), min_length=1, description="Levels of the questions."
    )
    tests: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=4, description="Variants of each question in the split `test`."
    )


class VariedDocumentSearch(DocumentSearch):
    """Variants of those questions whose answer stands in their documents."""

    Options: ClassVar[type[DocumentOptions]] = DocumentOptions

    def __init__(self, options: DocumentOptions | None = None) -> None:
        find(self.name).check()
        self.options = options or DocumentOptions()
        super().__init__(self.options.corpus or LEGAL, self.options.encoder)
        self._rows = [
            row
            for row in self._corpus.questions
            if row["level"] in self.options.levels and self._stated(row)
        ]
        if not self._rows:
            raise ConfigurationError(
                f"Domain {self.name!r}: no question of the levels {list(self.options.levels)} has "
                "an answer that stands in its documents."
            )

    def families(self) -> list[tuple[str, int]]:
        """Name and level of each family of questions."""
        return sorted({(row["family"], row["level"]) for row in self._rows}, key=lambda f: f[1])

    def task_count(self, split: Split) -> int | None:
        """How many tasks a split has; None where they are unlimited."""
        return len(self._rows) * self.options.tests if split == "test" else None

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The questions in turn, a variant of each, then another."""
        for number in numbers(split, seed, self.options.tests):
            for row in self._rows:
                yield self._variant(row, number)

    def _stated(self, row: dict[str, Any]) -> bool:
        if row["family"] in COMPUTED:
            return False
        answer = _word(row["answer"])
        return any(answer.search(self._corpus.documents[id_].text) for id_ in row["documents"])

    def _variant(self, row: dict[str, Any], number: int) -> Task:
        place = Seed(f"benchmark={self.name}").child("question", row["question"])
        random = place.child("variant", number).random()
        own = list(self._corpus.documents)
        ids = dict(zip(own, random.sample(own, len(own)), strict=True))
        answer = self._other(row["answer"], random)
        changed = {
            id_: _word(row["answer"]).sub(answer, self._corpus.documents[id_].text)
            for id_ in row["documents"]
        }
        goal = {"answer": answer, "documents": [ids[id_] for id_ in row["documents"]]}
        setup = {"ids": ids, "texts": changed}
        turns = 2 * len(row["documents"]) + 1
        return task(self.name, row["family"], row["level"], row["question"], goal, setup, turns)

    def _other(self, answer: str, random: Random) -> str:
        """Another answer of its kind: a number of as many digits, or the answer of another
        question."""
        if answer.isdigit():
            least = 10 ** (len(answer) - 1)
            return str(random.choice([n for n in range(least, 10 * least) if str(n) != answer]))
        named: set[str] = {row["answer"] for row in self._rows if not row["answer"].isdigit()}
        return random.choice(sorted(named - {answer}) or [answer])


def _word(answer: str) -> re.Pattern[str]:
    """Where an answer stands by itself."""
    return re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)")
