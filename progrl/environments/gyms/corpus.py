"""A small corpus of invented people, towns, firms and books, and the search in it."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from progrl.dialogue.acts import mentions, normal
from progrl.environments.service.world import FIRST_NAMES

PEOPLE, TOWNS, FIRMS, BOOKS = 8, 5, 4, 4
SHOWN = 2
"""Documents that a search shows at most."""

_K1, _B = 1.2, 0.75
_WORD = re.compile(r"\w+")
_FRONT = ("bal", "dor", "fen", "gar", "hol", "jor", "kel", "lan", "mor", "nar", "pel", "ros", "vel")
_BACK = ("bane", "dan", "go", "ker", "lin", "mar", "nok", "ra", "sta", "tem", "vik", "wy", "zan")
_TRADES = ("painter", "doctor", "sailor", "teacher", "chemist", "singer", "baker", "judge")
_GOODS = ("lamps", "carpets", "violins", "bridges", "kites", "soap", "clocks", "boots")
_FAME = ("cheese", "bells", "horses", "tulips", "glass", "salt", "honey", "fairs")
_TOPICS = ("storms", "chess", "whales", "gardens", "comets", "trains", "masks", "wells")


@dataclass(frozen=True)
class Corpus:
    """Facts and texts.

    Attributes:
        facts: by subject what is so of it.
        kinds: the subjects and values of each kind: people, towns, firms, books, years, ...
        texts: by subject the document about it.
        weights: by word the BM25 weight of each document that has it.
    """

    facts: Mapping[str, Mapping[str, str]]
    kinds: Mapping[str, Sequence[str]]
    texts: Mapping[str, str]
    weights: Mapping[str, Mapping[str, float]]

    def search(self, query: str) -> list[str]:
        """The subjects of the best documents for a query, best first; none where no word is known.

        The weight of a document is that of BM25; among equals the first of the corpus wins.
        """
        scores: defaultdict[str, float] = defaultdict(float)
        for word in set(_WORD.findall(normal(query))):
            for subject, weight in self.weights.get(word, {}).items():
                scores[subject] += weight
        place = {subject: number for number, subject in enumerate(self.texts)}
        return sorted(scores, key=lambda s: (-round(scores[s], 9), place[s]))[:SHOWN]

    def named(self, kind: str, text: str) -> list[str]:
        """The values of a kind that a text names."""
        return [value for value in self.kinds[kind] if mentions(text, value)]


def bm25(texts: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """By word the weight of each text that has it: idf tf (k1 + 1) / (tf + k1 (1 - b + b L)).

    L is the text's length over the mean length; idf = ln(1 + (N - n + 0.5) / (n + 0.5)), n of N
    texts having the word.
    """
    counts = {subject: Counter(_WORD.findall(text)) for subject, text in texts.items()}
    lengths = {subject: sum(count.values()) for subject, count in counts.items()}
    mean = sum(lengths.values()) / len(lengths)
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for subject, count in counts.items():
        for word in count:
            holders[word].append(subject)
    weights: dict[str, dict[str, float]] = {}
    for word, subjects in holders.items():
        idf = math.log(1 + (len(texts) - len(subjects) + 0.5) / (len(subjects) + 0.5))
        weights[word] = {
            s: idf
            * counts[s][word]
            * (_K1 + 1)
            / (counts[s][word] + _K1 * (1 - _B + _B * lengths[s] / mean))
            for s in subjects
        }
    return weights


@lru_cache(maxsize=512)
def corpus(seed: int) -> Corpus:
    """The corpus of a seed: who was born where, what is made by whom. No two years are the same."""
    random = Random(seed)
    made = [f + b for f in _FRONT for b in _BACK]
    names = iter(random.sample(made, PEOPLE + TOWNS + FIRMS + BOOKS))
    years = iter(str(y) for y in random.sample(range(1700, 2000), PEOPLE + TOWNS))
    people = [f"{first} {next(names)}" for first in random.sample(FIRST_NAMES, PEOPLE)]
    towns = [next(names) for _ in range(TOWNS)]
    firms = [f"{next(names)} works" for _ in range(FIRMS)]
    books = [f"the {next(names)} papers" for _ in range(BOOKS)]
    facts: dict[str, dict[str, str]] = {}
    texts: dict[str, str] = {}
    for person, trade in zip(people, random.sample(_TRADES, PEOPLE), strict=True):
        own = {"trade": trade, "born": next(years), "town": random.choice(towns)}
        facts[person] = own
        texts[person] = f"{person} was a {trade} , born in {own['town']} in {own['born']}"
    for town, fame in zip(towns, random.sample(_FAME, TOWNS), strict=True):
        facts[town] = {"fame": fame, "year": next(years)}
        texts[town] = f"{town} is a town known for its {fame} , founded in {facts[town]['year']}"
    founders = random.sample(people, FIRMS)
    for firm, goods, founder in zip(firms, random.sample(_GOODS, FIRMS), founders, strict=True):
        own = {"goods": goods, "founder": founder, "seat": random.choice(towns)}
        facts[firm] = own
        texts[firm] = f"{firm} makes {goods} in {own['seat']} , and its founder is {founder}"
    authors = random.sample(people, BOOKS)
    for book, topic, author in zip(books, random.sample(_TOPICS, BOOKS), authors, strict=True):
        facts[book] = {"author": author, "topic": topic}
        texts[book] = f"{book} is a book about {topic} , written by {author}"
    kinds = {"person": people, "town": towns, "firm": firms, "book": books}
    kinds |= {"trade": list(_TRADES), "goods": list(_GOODS), "fame": list(_FAME)}
    kinds["year"] = [own[k] for own in facts.values() for k in ("born", "year") if k in own]
    return Corpus(facts, kinds, texts, bm25(texts))
