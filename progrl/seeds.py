"""One seed tree: run -> step -> task -> episode.

A node's value depends on its path alone, never on the order in which nodes are visited, so work
may run in any order, stop anywhere and resume.
"""

import hashlib
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Seed:
    """A node of the seed tree, named by its path from the root.

    >>> Seed.root(1).child("step", 3).value != Seed.root(1).child("step", 4).value
    True
    """

    path: str

    @classmethod
    def root(cls, value: int) -> "Seed":
        """The tree of the run whose configured seed is `value`."""
        return cls(f"run={value}")

    def child(self, name: str, key: int | str = "") -> "Seed":
        """The branch `name`, and within it `key`."""
        return Seed(f"{self.path}/{name}={key}")

    @property
    def value(self) -> int:
        """63 uniform bits, the same on every platform."""
        digest = hashlib.blake2b(self.path.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little") >> 1

    def random(self) -> Random:
        """A generator of this node's own."""
        return Random(self.value)
