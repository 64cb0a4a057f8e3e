"""Answers of a language model, kept by the content of what was asked."""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import asdict, dataclass
from pathlib import Path

from progrl.errors import DataError
from progrl.files import read_json, write_json

logger = logging.getLogger(__name__)
_RECENT = 16_384


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model wrote, and the tokens that it read and wrote, as its endpoint counted them."""

    content: str
    tokens_in: int
    tokens_out: int


class AnswerCache:
    """A folder with a file an answer, named by the digest of the request.

    Files are written whole and never changed, so processes may share the folder. One that is
    damaged or cannot be written costs a request, never a result: the recent answers are kept in
    memory too, so that within a run equal requests get equal answers.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._recent: OrderedDict[str, Answer] = OrderedDict()

    def get(self, key: str) -> Answer | None:
        """The answer kept for a request, if there is one."""
        answer = self._recent.get(key) or self._read(self._path(key))
        if answer is not None:
            self._remember(key, answer)
        return answer

    async def put(self, key: str, answer: Answer) -> None:
        """Keep an answer; the disk is waited for in a thread."""
        self._remember(key, answer)
        try:
            await asyncio.to_thread(write_json, self._path(key), asdict(answer))
        except DataError as error:
            logger.warning("an answer of the user's model is not kept: %s", error)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def _remember(self, key: str, answer: Answer) -> None:
        self._recent[key] = answer
        self._recent.move_to_end(key)
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)

    @staticmethod
    def _read(path: Path) -> Answer | None:
        if not path.exists():
            return None
        try:
            answer = Answer(**read_json(path))
            if [type(v) for v in asdict(answer).values()] != [str, int, int]:
                raise TypeError("values of other kinds")
        except (DataError, TypeError) as error:
            logger.warning("%s: damaged (%s); the model is asked again", path, error)
            return None
        return answer
