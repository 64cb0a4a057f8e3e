"""Records of a desk: a first state that is never changed, and over it what an episode changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

Record = Mapping[str, Any]
Tables = Mapping[str, Mapping[str, Record]]

FIRST_NAMES = (
    "ana",
    "ben",
    "carl",
    "dora",
    "emil",
    "fay",
    "gus",
    "hana",
    "ivan",
    "jane",
    "karl",
    "lena",
    "mona",
    "noah",
    "olga",
    "paul",
    "rita",
    "sam",
    "tina",
    "uwe",
    "vera",
    "will",
    "yara",
    "zoe",
)
LAST_NAMES = (
    "adams",
    "berg",
    "cole",
    "diaz",
    "evans",
    "frost",
    "gray",
    "hill",
    "irwin",
    "jones",
    "king",
    "lopez",
    "moore",
    "novak",
    "owens",
    "park",
    "reed",
    "silva",
    "turner",
    "urban",
    "vogel",
    "wood",
    "young",
    "ziegler",
)
STREETS = ("oak", "elm", "pine", "lake", "hill", "rose", "park", "mill", "dale", "ford")


@dataclass(frozen=True, slots=True)
class Start:
    """A first state: its tables, and the id of the user whom the task is about."""

    tables: Tables
    hero: str


class World:
    """The records as they stand in an episode."""

    __slots__ = ("changed", "tables")

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.changed: dict[tuple[str, str], Record] = {}

    def get(self, table: str, key: str) -> Record | None:
        """The record as it stands; None if there is none."""
        return self.changed.get((table, key)) or self.tables[table].get(key)

    def put(self, table: str, key: str, **fields: Any) -> None:
        """Change fields of a record, or make one; `changed` holds it only while it differs."""
        new = {**(self.get(table, key) or {}), **fields}
        if new == self.tables[table].get(key):
            self.changed.pop((table, key), None)
        else:
            self.changed[table, key] = new


def numbers(random: Random, digits: int, count: int) -> list[str]:
    """Different numbers of that many digits, as text."""
    return [str(n) for n in random.sample(range(10 ** (digits - 1), 10**digits), count)]


def address(random: Random) -> str:
    """A house number of two digits and a street."""
    return f"{random.randrange(10, 100)} {random.choice(STREETS)}"


def make_people(random: Random, count: int) -> dict[str, Record]:
    """Users by id. Neither e-mail nor zip can be worked out from what other tools show."""
    ids, tails = numbers(random, 3, count), numbers(random, 3, count)
    zips, points = numbers(random, 4, count), numbers(random, 3, count)
    firsts, lasts = random.sample(FIRST_NAMES, count), random.sample(LAST_NAMES, count)
    people: dict[str, Record] = {}
    for i in range(count):
        card, gift = random.randrange(10, 100), random.randrange(10, 100)
        people[f"u{ids[i]}"] = {
            "name": f"{firsts[i]} {lasts[i]}",
            "email": f"{firsts[i]}{tails[i]}@mail.com",
            "zip": zips[i],
            "points": points[i],
            "address": address(random),
            "pays": (f"card-{card}", f"gift-{gift}", f"bank-{random.randrange(10, 100)}"),
        }
    return people
