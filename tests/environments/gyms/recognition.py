"""How well free text is recognised: the labelled utterances of a gym, and figures on them.

`python -m tests.environments.gyms.recognition` prints the table of docs/gyms.md. The first half
is every other utterance from the first: cues were written with it in view, and the threshold of an
encoder is the best one for it alone and behind the cues, together. The figures are
reported on the other half.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from progrl.dialogue.acts import normal
from progrl.embedding import Encoder, Vectors, encoder
from progrl.environments.gyms import riddles, things, trips, wants
from progrl.environments.gyms.concerns import ARGUMENTS
from progrl.environments.gyms.persuade import arguments, heard
from progrl.environments.gyms.recognise import THRESHOLDS, Judge, Subject, about, judge_by
from progrl.environments.gyms.riddles import answers_in
from progrl.environments.gyms.things import traits_in
from progrl.environments.gyms.trips import DIMENSIONS, aspects_in, dimensions_in


class Remembering:
    """An encoder that encodes no text twice."""

    def __init__(self, inner: Encoder) -> None:
        self.name, self.dimension = inner.name, inner.dimension
        self._one = cache(lambda text: inner.encode([text])[0])

    def encode(self, texts: Sequence[str]) -> Vectors:
        """As the encoder does."""
        return np.stack([self._one(text) for text in texts])


@cache
def remembering(kind: str) -> Remembering:
    """The encoder of a kind."""
    return Remembering(encoder(kind))


Row = tuple[frozenset[str], str]
GRID = [step / 100 for step in range(25, 91, 5)]


class Figures(NamedTuple):
    """Precision and recall over all labels of all utterances."""

    precision: float
    recall: float

    @property
    def worth(self) -> float:
        """F 0.5: precision counts more than recall, for what is wrongly recognised is paid."""
        whole = 0.25 * self.precision + self.recall
        return 1.25 * self.precision * self.recall / whole if whole else 0.0


def _trip(text: str, judge: Judge | None) -> list[str]:
    named = dimensions_in(text) or tuple(DIMENSIONS)
    return [f"{name}.{aspect}" for name in named for aspect in aspects_in(text, name, judge)]


RECOGNISERS: Mapping[str, Callable[[str, Judge | None], Sequence[str]]] = {
    "intention": lambda text, judge: about(text, list(wants.SUBJECTS.values()), judge),
    "persuade": lambda text, judge: arguments(heard(text), judge),
    "telepathy": traits_in,
    "travel": _trip,
    "turtle": lambda text, judge: [n for own in answers_in(text, judge).values() for n in own],
}
"""What the gym itself makes of words."""


def _alone(name: str, text: str, judge: Judge) -> list[str]:
    """What the judge makes of words, whatever cues stand in them."""
    subjects: dict[str, Sequence[Subject]] = {
        "intention": list(wants.SUBJECTS.values()),
        "persuade": list(ARGUMENTS.values()),
        "telepathy": things.SUBJECTS,
        "turtle": list(riddles.SUBJECTS.values()),
    }
    if name != "travel":
        return judge(normal(text), subjects[name])
    named = dimensions_in(text) or tuple(DIMENSIONS)
    return [f"{d}.{aspect}" for d in named for aspect in judge(normal(text), trips.SUBJECTS[d])]


def labelled(name: str) -> list[Row]:
    """The utterances of a gym with their labels."""
    file = Path(__file__).with_name("utterances") / f"{name}.txt"
    rows = [line.split(" | ") for line in file.read_text(encoding="utf-8").splitlines()]
    return [(frozenset(names.split()) - {"none"}, words) for names, words in rows]


def figures(name: str, rows: Sequence[Row], judge: Judge | None) -> Figures:
    """How well a gym recognises utterances."""
    return _counted(rows, lambda words: RECOGNISERS[name](words, judge))


def _counted(rows: Sequence[Row], recognise: Callable[[str], Sequence[str]]) -> Figures:
    right = found = wanted = 0
    for want, words in rows:
        got = set(recognise(words))
        right, found, wanted = right + len(want & got), found + len(got), wanted + len(want)
    return Figures(right / found if found else 1.0, right / wanted)


def chosen(name: str, kind: str) -> float:
    """The threshold of the grid that is the best on the first half; the least among equals."""
    rows, used = labelled(name)[::2], remembering(kind)

    def worth(threshold: float) -> float:
        judge = judge_by(used, threshold)
        alone = _counted(rows, lambda words: _alone(name, words, judge))
        return round(alone.worth + figures(name, rows, judge).worth, 9)

    return max(GRID, key=lambda threshold: (worth(threshold), -threshold))


def main() -> None:
    """Print the figures of all gyms."""
    for name in RECOGNISERS:
        rows = labelled(name)
        for kind in ("rules", "hashed", "minilm"):
            least = None if kind == "rules" else THRESHOLDS[name][kind]
            judge = None if least is None else judge_by(remembering(kind), least)
            first, other = figures(name, rows[::2], judge), figures(name, rows[1::2], judge)
            best = "" if least is None else f"{least:.2f} (best {chosen(name, kind):.2f})"
            numbers = " ".join(f"{x:.2f}" for x in (*first, *other))
            sys.stdout.write(f"{name} {len(rows)} {kind} {best} | {numbers}\n")


if __name__ == "__main__":
    main()
