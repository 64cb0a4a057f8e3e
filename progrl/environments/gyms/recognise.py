"""What words are about: recognised by rule, and where one is given by a sentence encoder too."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

import numpy as np
from pydantic import Field

from progrl.dialogue.acts import contains, normal
from progrl.embedding import Encoder, Vectors, encoder
from progrl.environments.gyms.base import GymOptions

Kind = Literal["rules", "hashed", "minilm"]
"""`rules` alone, or with an encoder of that kind behind them."""

THRESHOLDS: Mapping[str, Mapping[str, float]] = {
    "intention": {"hashed": 0.45, "minilm": 0.40},
    "persuade": {"hashed": 0.30, "minilm": 0.35},
    "turtle": {"hashed": 0.35, "minilm": 0.35},
    "telepathy": {"hashed": 0.60, "minilm": 0.45},
    "travel": {"hashed": 0.45, "minilm": 0.45},
}
"""Least cosine, by gym and encoder; chosen on one half of the gym's labelled utterances."""

_SENTENCE = re.compile(r"[^.!?]+[.!?]*")
_DENIED = re.compile(
    r"(?:\b(?:not(?! only| just)|never|hardly ever|neither)\b|\w+n't\b)(?: \w+){0,2}"
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_LITTLE = """
a about above after again all also although always am an and another any anyone anything are as
ask asks at be because been before being below best between both but by can certain cause causes
consider considerations considering could desired detail details did do does doing down during
each either else especially ever every few for from further get give given had has have having
he her here hers him his how i if in include including information interested into involved is
it its itself just kind know known let like likely looking made make makes many matter may me
mean might mind more most much must my need needed needs no not of off on once one ones only or
other our out over own particular people person please prefer preference preferences preferred
really required requirements reveal reveals said same say see seek several shall she should so
some someone something specific specify story such tell than that the their them then there
these they thing things this those through to too type types under until up upon use used using
very want was way we were what when where whether which while who whom whose why will wish with
within without would yes you your
"""
_COMMON = frozenset(_LITTLE.split())


class JudgedOptions(GymOptions):
    """What may be chosen of a gym that judges free text."""

    recogniser: Kind = Field(
        default="rules",
        description="What recognises words: rules, or with an encoder behind them.",
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """Something that words may be about.

    Attributes:
        name: unique among those that are told apart.
        cues: lower-case phrases one of which is enough.
        example: a sentence that is about it; with the cues, what an encoder compares words with.
    """

    name: str
    cues: tuple[str, ...]
    example: str


Judge = Callable[[str, Sequence[Subject]], list[str]]
"""The subjects, by name, that a text is about although no cue of any stands in it."""


@lru_cache(maxsize=262144)
def holds(text: str, cues: tuple[str, ...]) -> bool:
    """One of the cues stands in a text, both in lower case."""
    return contains(text, cues)


def about(text: str, subjects: Sequence[Subject], judge: Judge | None = None) -> list[str]:
    """The names of the subjects that a text is about, in their order.

    The cues decide, word for word, or where that finds nothing whatever the endings of the words; a
    judge is asked where no cue of any subject stands in the text.
    """
    text = normal(text)
    named = [subject.name for subject in subjects if holds(text, subject.cues)]
    if not named:
        plain = _stemmed(text)
        named = [subject.name for subject in subjects if holds(plain, _all_stemmed(subject.cues))]
    if named or judge is None:
        return named
    return judge(text, subjects)


@lru_cache(maxsize=65536)
def _stemmed(text: str) -> str:
    return _WORD.sub(lambda word: stem(word[0]), text)


@lru_cache(maxsize=4096)
def _all_stemmed(cues: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_stemmed, cues))


def judge_by(encoder: Encoder, threshold: float) -> Judge:
    """A text is about the subject whose prototype is nearest, if the cosine is high enough.

    A prototype lies midway between a subject's example and the mean of its cues. Among equals the
    first one; encoders give vectors of length 1.
    """

    @lru_cache(maxsize=8192)
    def vector(text: str) -> Vectors:
        found: Vectors = encoder.encode([text])[0]
        return found

    @lru_cache(maxsize=4096)
    def prototype(subject: Subject) -> Vectors:
        example, *cues = encoder.encode([normal(text) for text in (subject.example, *subject.cues)])
        return _unit(example + _unit(np.mean(cues, axis=0))) if cues else example

    @lru_cache(maxsize=256)
    def prototypes(subjects: tuple[Subject, ...]) -> Vectors:
        return np.stack([prototype(subject) for subject in subjects])

    def judged(text: str, subjects: Sequence[Subject]) -> list[str]:
        if not text.strip(" .!?") or not subjects:
            return []
        near = prototypes(tuple(subjects)) @ vector(text)
        best = int(near.argmax())
        return [subjects[best].name] if near[best] >= threshold else []

    return judged


def _unit(vector: Vectors) -> Vectors:
    length = np.linalg.norm(vector)
    return vector / length if length else vector


@cache
def judge(kind: Kind, gym: str) -> Judge | None:
    """The judge of a kind, with the threshold that was chosen for a gym; None for rules alone.

    Raises:
        ConfigurationError: what the encoder needs is not here.
    """
    return None if kind == "rules" else judge_by(encoder(kind), THRESHOLDS[gym][kind])


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with what ends it."""
    return [part.strip() for part in _SENTENCE.findall(text) if part.strip(" .!?\n")]


@lru_cache(maxsize=65536)
def affirmed(text: str) -> str:
    """A text without what it denies: `not` and the like, with the two words behind it."""
    return _DENIED.sub(" ", text)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A word without its most common endings: `travelling`, `travels` and `travel` are one."""
    for ending, kept in (("'s", ""), ("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 4 - len(kept):
            word = word.removesuffix(ending) + kept
            break
    if len(word) > 4 and word[-1] == word[-2]:
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 4 else word


@lru_cache(maxsize=65536)
def stems(text: str) -> frozenset[str]:
    """The stems of a text's words, without those that tell nothing."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    return frozenset(stem(word) for word in words if word not in _COMMON)


@lru_cache(maxsize=4096)
def cues_of(texts: tuple[str, ...], context: str = "") -> tuple[tuple[str, ...], ...]:
    """For each text the words that stand in it alone, and neither in `context`.

    Where a text has none of its own, all of its words are its cues.
    """
    counted = Counter(word for text in texts for word in stems(text))
    made = []
    for text in texts:
        words = [w for w in dict.fromkeys(_WORD.findall(text.lower())) if w not in _COMMON]
        own = [w for w in words if counted[stem(w)] == 1 and stem(w) not in stems(context)]
        made.append(tuple(f for word in own or words for f in _forms(word)))
    return tuple(made)


def _forms(word: str) -> tuple[str, ...]:
    """A word, with and without the plural's ending."""
    if word.endswith("ies"):
        return word, word[:-3] + "y"
    if word.endswith("s") and not word.endswith("ss"):
        return word, word[:-1]
    return word, word + "s"
