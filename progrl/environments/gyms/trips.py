"""Trips: what can be booked, the preferences one may have, and options made from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from progrl.dialogue.acts import contains, mentions, normal
from progrl.environments.gyms.recognise import Judge, Subject, about


@dataclass(frozen=True, slots=True)
class Aspect:
    """Something one may have a preference for.

    Attributes:
        name: what it is.
        cues: phrases in a question that ask for it.
        values: what may be wanted, in words that no other aspect has, nor any question.
    """

    name: str
    cues: tuple[str, ...]
    values: tuple[str, ...]


DIMENSIONS: Mapping[str, tuple[Aspect, ...]] = {
    "flight": (
        Aspect(
            "departure",
            ("time", "when", "leave", "hour", "early", "late"),
            ("morning", "noon", "evening"),
        ),
        Aspect(
            "stops",
            ("stops", "stop", "direct", "layover", "straight there", "without a break"),
            ("nonstop", "stopover"),
        ),
        Aspect("cabin", ("cabin", "class", "comfort", "premium"), ("economy", "business")),
        Aspect("seat", ("seat", "sit", "seating", "look out", "in the row"), ("window", "aisle")),
    ),
    "hotel": (
        Aspect(
            "area",
            ("area", "where", "location", "near", "district", "downtown", "surroundings"),
            ("centre", "beach", "airport"),
        ),
        Aspect(
            "room",
            ("room", "beds", "how many people is", "rooms", "bed"),
            ("single", "double", "suite"),
        ),
        Aspect(
            "meals",
            ("meals", "meal", "breakfast", "board", "supper", "want to eat"),
            ("halfboard", "fullboard"),
        ),
        Aspect(
            "extra",
            ("facilities", "facility", "extra", "amenity", "exercise", "else should", "wellness"),
            ("pool", "gym", "sauna"),
        ),
    ),
    "restaurant": (
        Aspect(
            "cuisine",
            ("cuisine", "food", "kitchen", "dishes", "cook"),
            ("thai", "italian", "mexican"),
        ),
        Aspect(
            "place",
            ("place", "indoors", "outdoors", "terrace", "under the stars", "inside", "outside"),
            ("garden", "rooftop", "hall"),
        ),
        Aspect(
            "diet",
            ("diet", "eat no", "allergy", "vegetarian", "tolerate", "leave out"),
            ("vegan", "halal", "glutenfree"),
        ),
        Aspect(
            "mood",
            ("mood", "atmosphere", "quiet", "lively", "romantic", "ambience"),
            ("calm", "festive"),
        ),
    ),
    "car": (
        Aspect(
            "size",
            (
                "size",
                "how big",
                "how large",
                "how many seats",
                "luggage",
                "what type",
                "how many people will",
            ),
            ("compact", "van", "estate"),
        ),
        Aspect(
            "fuel",
            ("fuel", "engine", "drive on", "charge", "motor", "tank"),
            ("electric", "petrol", "diesel"),
        ),
        Aspect(
            "gears", ("gears", "gear", "transmission", "shift", "stick"), ("automatic", "manual")
        ),
        Aspect(
            "cover",
            ("cover", "insurance", "insured", "damage", "scratch", "policy"),
            ("basic", "full"),
        ),
    ),
    "tour": (
        Aspect(
            "theme",
            ("theme", "kind", "interest", "fond of", "paintings", "sights"),
            ("castles", "wildlife", "art"),
        ),
        Aspect(
            "pace",
            ("pace", "walk", "transport", "on your feet", "by foot", "slow", "fast"),
            ("walking", "cycling", "bus"),
        ),
        Aspect(
            "tongue",
            ("language", "speak", "guide", "understand", "translated"),
            ("english", "french", "spanish"),
        ),
        Aspect(
            "length", ("length", "long", "duration", "last till", "short"), ("halfday", "wholeday")
        ),
    ),
}
NOUNS: Mapping[str, tuple[str, ...]] = {
    "flight": ("flight", "fly", "plane"),
    "hotel": ("hotel", "stay", "accommodation"),
    "restaurant": ("restaurant", "dinner", "eat out"),
    "car": ("car", "rental"),
    "tour": ("tour", "sightseeing"),
}
OPTIONS = 8
CORRECT = 3

Preferences = Mapping[str, Mapping[str, str]]
"""By dimension and aspect the value that is wanted."""
Options = Mapping[str, Mapping[str, str]]
"""By id the value of each aspect, and the price."""


def draw_preferences(random: Random, each: Sequence[int]) -> Preferences:
    """Dimensions of a trip, with `each[i]` preferences in the i-th, in the table's order."""
    names = random.sample(list(DIMENSIONS), len(each))
    wanted: dict[str, dict[str, str]] = {}
    for name, count in zip(names, each, strict=True):
        drawn = random.sample(DIMENSIONS[name], count)
        aspects = [a for a in DIMENSIONS[name] if a in drawn]
        wanted[name] = {a.name: random.choice(a.values) for a in aspects}
    return wanted


def draw_options(
    random: Random, dimension: str, wanted: Mapping[str, str], prices: Sequence[int]
) -> dict[str, dict[str, str]]:
    """Options by id: `CORRECT` fit all that is wanted, the others miss a part of it.

    The cheapest of all fits nothing: what was not asked for cannot be guessed from prices.
    """
    made: list[dict[str, str]] = []
    for number in range(OPTIONS):
        option = {a.name: random.choice(a.values) for a in DIMENSIONS[dimension]}
        option |= wanted
        if number >= CORRECT:
            missed = random.sample(sorted(wanted), random.randint(1, len(wanted)))
            for name in missed:
                aspect = next(a for a in DIMENSIONS[dimension] if a.name == name)
                option[name] = random.choice([v for v in aspect.values if v != wanted[name]])
        made.append(option)
    # The last, which does not fit, is the cheapest.
    costs = sorted(prices)
    rest = costs[1:]
    random.shuffle(rest)
    for option, price in zip(made, [*rest, costs[0]], strict=True):
        option["price"] = str(price)
    ids = random.sample(range(10, 100), OPTIONS)
    order = list(zip(ids, made, strict=True))
    random.shuffle(order)
    return {f"{dimension[0]}{number}": option for number, option in order}


def fitting_by_price(options: Options, wanted: Mapping[str, str]) -> list[str]:
    """The ids of the options that have all that is wanted, the cheapest first."""
    fits = [key for key, option in options.items() if wanted.items() <= option.items()]
    return sorted(fits, key=lambda key: int(options[key]["price"]))


@lru_cache(maxsize=65536)
def dimensions_in(text: str) -> tuple[str, ...]:
    """The dimensions that a text is about."""
    text = normal(text)
    return tuple(name for name, nouns in NOUNS.items() if contains(text, nouns))


SUBJECTS = {
    name: [Subject(a.name, a.cues, f"which {a.cues[0]} do you want for the {name} ?") for a in own]
    for name, own in DIMENSIONS.items()
}


@lru_cache(maxsize=65536)
def aspects_in(text: str, dimension: str, judge: Judge | None = None) -> tuple[str, ...]:
    """The aspects of a dimension that a question asks for; a judge is asked last."""
    return tuple(about(text, SUBJECTS[dimension], judge))


@lru_cache(maxsize=65536)
def values_in(text: str, dimension: str) -> tuple[tuple[str, str], ...]:
    """Aspect and value of each value of a dimension that a text names."""
    text = normal(text)
    return tuple(
        (a.name, value)
        for a in DIMENSIONS[dimension]
        for value in a.values
        if mentions(text, value)
    )


class Guide:
    """What may be booked in a trip of ours: how words about it are read."""

    def __init__(self, judge: Judge | None = None) -> None:
        self._judge = judge

    def dimensions_in(self, text: str) -> Sequence[str]:
        """The dimensions that a text is about."""
        return dimensions_in(text)

    def aspects_in(self, text: str, dimension: str) -> Sequence[str]:
        """The aspects of a dimension that a question asks for."""
        return aspects_in(text, dimension, self._judge)


class ImportedGuide(Guide):
    """The same for an imported trip, whose preferences are texts.

    Args:
        cues: by dimension and aspect the phrases that ask for it.
    """

    def __init__(self, cues: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        super().__init__()
        self._cues = cues

    def dimensions_in(self, text: str) -> Sequence[str]:
        """The dimensions that a text names."""
        text = normal(text.replace("_", " "))
        return [name for name in self._cues if mentions(text, name.replace("_", " "))]

    def aspects_in(self, text: str, dimension: str) -> Sequence[str]:
        """The aspects of which a phrase stands in the text."""
        text = normal(text)
        return [name for name, cues in self._cues[dimension].items() if contains(text, cues)]


OURS = Guide()


@dataclass(frozen=True, slots=True)
class Told:
    """What a user answers: how (asked, again, volunteered, indifferent, vague), and about what."""

    how: str
    dimension: str = ""
    aspect: str = ""


PATIENT = 3
"""After so many of the agent's words that found out nothing, the user volunteers a preference."""


def conversation(wanted: Preferences, questions: Sequence[str], guide: Guide = OURS) -> list[Told]:
    """What the user tells after each of the agent's words: one preference at a time.

    A question asks for an aspect. Where it does not say of what, it may be of anything.
    """
    known: set[tuple[str, str]] = set()
    answers, idle = [], 0
    for question in questions:
        told = _told(wanted, question, known, guide)
        idle = 0 if told.how == "asked" else idle + 1
        if idle == PATIENT:
            left = [(d, a) for d, aspects in wanted.items() for a in aspects if (d, a) not in known]
            if left:
                told, idle = Told("volunteered", *left[0]), 0
        if told.how in ("asked", "volunteered"):
            known.add((told.dimension, told.aspect))
        answers.append(told)
    return answers


def _told(wanted: Preferences, question: str, known: set[tuple[str, str]], guide: Guide) -> Told:
    named = [name for name in guide.dimensions_in(question) if name in wanted] or list(wanted)
    asked = [(name, aspect) for name in named for aspect in guide.aspects_in(question, name)]
    mine = [(name, aspect) for name, aspect in asked if aspect in wanted[name]]
    fresh = [pair for pair in mine if pair not in known]
    if fresh:
        return Told("asked", *fresh[0])
    if mine:
        return Told("again", *mine[0])
    return Told("indifferent") if asked else Told("vague")
