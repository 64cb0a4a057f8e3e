"""Profiles of simulated users, in two families that differ: train with one, evaluate with both."""

from collections.abc import Mapping

from progrl.errors import ConfigurationError
from progrl.seeds import Seed
from progrl.users.contracts import Profile

FAMILIES: Mapping[str, tuple[tuple[float, Profile], ...]] = {
    "a": (
        (0.4, Profile("plain", 20, 0.97, 0.2, 0.05, 0.03, 0.0)),
        (0.25, Profile("chatty", 20, 0.95, 0.8, 0.15, 0.05, 0.01)),
        (0.2, Profile("brisk", 16, 0.98, 0.0, 0.1, 0.0, 0.02)),
        (0.15, Profile("wary", 18, 0.85, 0.4, 0.0, 0.2, 0.01)),
    ),
    "b": (
        (0.35, Profile("hurried", 12, 0.9, 0.0, 0.25, 0.0, 0.06)),
        (0.35, Profile("doubtful", 16, 0.7, 0.5, 0.0, 0.4, 0.02)),
        (0.3, Profile("rambling", 18, 0.8, 1.0, 0.3, 0.15, 0.05)),
    ),
}
"""Weight and profile, by family; the weights of a family sum to 1."""


def members(family: str) -> tuple[tuple[float, Profile], ...]:
    """Weights and profiles of a family, or of "all"."""
    if family == "all":
        return tuple(entry for name in sorted(FAMILIES) for entry in FAMILIES[name])
    if family not in FAMILIES:
        raise ConfigurationError(
            f"No family of profiles {family!r}: there are {', '.join(FAMILIES)} and all."
        )
    return FAMILIES[family]


def profile(name: str) -> Profile:
    """The profile of that name, of any family."""
    known = {p.name: p for _, p in members("all")}
    if name not in known:
        raise ConfigurationError(f"No user profile {name!r}: there are {', '.join(sorted(known))}.")
    return known[name]


def draw(family: str, seed: Seed) -> Profile:
    """A profile of the family, by its weights; decided by the seed alone."""
    entries = members(family)
    weights = [weight for weight, _ in entries]
    chosen: Profile = seed.child("profile").random().choices([p for _, p in entries], weights)[0]
    return chosen
