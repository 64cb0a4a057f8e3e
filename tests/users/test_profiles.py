from collections import Counter

import pytest

from progrl.errors import ConfigurationError
from progrl.seeds import Seed
from progrl.users.profiles import FAMILIES, draw, members, profile


def test_two_families_of_different_people() -> None:
    assert sorted(FAMILIES) == ["a", "b"]
    names = [p.name for _, p in members("all")]
    assert len(names) == len(set(names)) >= 6
    assert all(profile(name).name == name for name in names)
    for family in FAMILIES:
        assert sum(weight for weight, _ in members(family)) == pytest.approx(1)


def test_the_parameters_are_chances() -> None:
    for _, p in members("all"):
        chances = (p.cooperativeness, p.verbosity, p.expertise, p.challenge, p.typos)
        assert all(0 <= chance <= 1 for chance in chances)
        assert p.patience >= 10


def test_families_differ_in_distribution() -> None:
    def mean(family: str, name: str) -> float:
        return sum(weight * getattr(p, name) for weight, p in members(family))

    assert mean("a", "cooperativeness") > mean("b", "cooperativeness") + 0.1
    assert mean("b", "challenge") > mean("a", "challenge") + 0.1
    assert mean("b", "typos") > 2 * mean("a", "typos")


def test_profiles_are_drawn_by_their_weights() -> None:
    seeds = [Seed.root(1).child("task", number) for number in range(2000)]
    drawn = [draw("a", seed).name for seed in seeds]
    assert drawn == [draw("a", seed).name for seed in seeds]
    shares = Counter(drawn)
    for weight, p in members("a"):
        assert shares[p.name] / len(seeds) == pytest.approx(weight, abs=0.04)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="a, b and all"):
        draw("c", Seed.root(1))
    with pytest.raises(ConfigurationError, match="plain"):
        profile("nobody")
