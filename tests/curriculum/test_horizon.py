"""Horizon policies: eq. 7-8 by hand, and a resume at every boundary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from progrl.config.training import HorizonConfig
from progrl.curriculum import Horizon
from progrl.errors import CheckpointError

ADAPTIVE = {"kind": "adaptive", "start": 2, "delta": 1.0, "cap": 20, "min_episodes": 32}
ALL = [
    ADAPTIVE,
    {**ADAPTIVE, "kind": "bidirectional", "low": 0.3, "hysteresis": 0.1},
    {"kind": "fixed", "turns": 10},
    {"kind": "linear", "start": 2, "cap": 20, "steps": 10},
    {"kind": "scaling_inter", "stages": [6, 13, 20], "every": 4},
]


def horizon(values: dict[str, object]) -> Horizon:
    return Horizon(TypeAdapter(HorizonConfig).validate_python(values))


@pytest.mark.parametrize(
    ("success", "branch", "value"),
    [
        (0.8, "high", 3.5),
        (0.79, "middle", 3.0),
        (0.6, "middle", 3.0),
        (0.59, "low", 2.5),
        (0.0, "low", 2.5),
    ],
)
def test_growth_by_branch(success: float, branch: str, value: float) -> None:
    policy = horizon(ADAPTIVE)
    assert policy.update(success, counted=32) == branch
    assert policy.value == value


def test_half_turns_do_not_count() -> None:
    policy = horizon(ADAPTIVE)
    policy.update(0.1, counted=40)
    assert (policy.value, policy.turns) == (2.5, 2)


def test_it_waits_for_enough_episodes() -> None:
    policy = horizon(ADAPTIVE)
    assert policy.update(0.9, counted=31) == "hold"
    assert policy.update(None, counted=0) == "hold"
    assert policy.value == 2


@given(st.lists(st.floats(0, 1), max_size=60))
def test_it_stays_within_two_and_the_cap(rates: list[float]) -> None:
    for values in ALL:
        policy = horizon(values)
        for rate in rates:
            policy.update(rate, counted=100)
            assert 2 <= policy.value <= 20


def test_bidirectional_shrinks_and_waits_to_grow() -> None:
    policy = horizon({**ALL[1], "start": 10})
    branches = [policy.update(p, 100) for p in (0.2, 0.35, 0.41, 0.35)]
    assert branches == ["shrink", "shrink", "low", "low"]
    assert policy.value == 10 - 0.5 - 0.5 + 0.5 + 0.5


@pytest.mark.parametrize("values", ALL, ids=lambda v: str(v["kind"]))
def test_resuming_anywhere_changes_nothing(values: dict[str, object]) -> None:
    rates = [0.1, 0.9, 0.7, 0.2, 0.2, 0.35, 0.9, 0.5, 0.65, 0.8, 0.3, 0.1]
    whole = horizon(values)
    expected = [(whole.update(p, 100), whole.value) for p in rates]
    for cut in range(len(rates)):
        first, second = horizon(values), horizon(values)
        seen = [(first.update(p, 100), first.value) for p in rates[:cut]]
        second.load_state_dict(first.state_dict())
        seen += [(second.update(p, 100), second.value) for p in rates[cut:]]
        assert seen == expected


def test_another_policys_state_is_refused() -> None:
    with pytest.raises(CheckpointError, match="adaptive"):
        horizon(ALL[2]).load_state_dict(horizon(ADAPTIVE).state_dict())
    with pytest.raises(CheckpointError, match="horizon"):
        horizon(ADAPTIVE).load_state_dict({"value": 3})
