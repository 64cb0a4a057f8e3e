"""Domain weights: what predicts success gains, what is merely easy loses, the task keeps its share,
and a run that stops and goes on gives the same bytes."""

from collections.abc import Callable
from dataclasses import astuple
from random import Random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from safetensors.torch import save

from progrl.config.training import Budget, FixedWeights, LearnedWeights, RewardConfig
from progrl.dialogue.trajectories import End
from progrl.embedding import HashedEncoder
from progrl.errors import CheckpointError
from progrl.rewards import Weights
from progrl.rewards.weights import (
    COMPONENTS,
    FEATURES,
    DomainWeights,
    Observation,
    observe,
)
from progrl.seeds import Seed
from tests.builders import make_trajectory

LEARNED = LearnedWeights(
    kind="learned",
    floor=0.4,
    hidden=32,
    evidence=2.0,
    price=0.02,
    learning_rate=0.003,
    passes=10,
    window=256,
    min_episodes=32,
)
REWARD = RewardConfig(
    task=1,
    progress=0.5,
    efficiency=0.2,
    reference=Budget(kind="budget", factor=2),
    weights=FixedWeights(kind="fixed"),
)
DESCRIPTIONS = ("Orders, returns and exchanges of a shop.", "Flights, fares and baggage.")
EMBEDDINGS = {
    name: row.tolist()
    for name, row in zip(("shop", "air"), HashedEncoder().encode(DESCRIPTIONS), strict=True)
}
UNIFORM = Weights(0.55, 0.15, 0.15, 0.15)
Episode = Callable[[Random], tuple[bool, tuple[float, float, float]]]


def fresh(seed: int = 1, **changes: Any) -> DomainWeights:
    config = LEARNED.model_copy(update=changes)
    return DomainWeights(config, EMBEDDINGS, Seed.root(seed))


def telling(random: Random) -> tuple[bool, tuple[float, float, float]]:
    """Progress tells of success; efficiency is nearly always high and tells nothing; the policy is
    always kept."""
    success = random.random() < 0.5
    progress = min(1.0, max(0.0, 0.35 + 0.3 * success + random.gauss(0, 0.15)))
    return success, (progress, random.uniform(0.8, 1.0), 1.0)


def mute(random: Random) -> tuple[bool, tuple[float, float, float]]:
    """Nothing tells of success."""
    return random.random() < 0.5, (random.random(), random.random(), random.random())


def step(
    random: Random, episode: Episode, domain: str = "shop", count: int = 32
) -> list[Observation]:
    return [Observation(domain, random.randint(1, 5), *episode(random)) for _ in range(count)]


def fitted(episode: Episode, steps: int = 25, **changes: Any) -> DomainWeights:
    weights, random = fresh(**changes), Random(1)
    for _ in range(steps):
        weights.update(step(random, episode))
    return weights


def test_the_network_is_357_to_4() -> None:
    tensors = fresh().tensors()
    assert (FEATURES, COMPONENTS) == (357, 4)
    assert tensors["net/hidden.weight"].shape == (32, 357)
    assert tensors["net/out.weight"].shape == (4, 32)


def test_before_the_first_fit_all_components_weigh_alike_above_the_floor() -> None:
    weights = fresh()
    weights.update(step(Random(1), telling, count=31))
    assert astuple(weights.weights("shop", 3)) == pytest.approx(astuple(UNIFORM))


def test_what_predicts_gains_and_what_is_easy_loses() -> None:
    weights = fitted(telling).weights("shop", 3)
    assert weights.progress > 2 * UNIFORM.progress
    assert weights.efficiency < 0.5 * UNIFORM.efficiency
    assert weights.domain < 0.5 * UNIFORM.domain
    assert sum(astuple(weights)) == pytest.approx(1.0)


def test_where_nothing_predicts_the_weight_falls_to_the_task() -> None:
    weights = fitted(mute).weights("shop", 3)
    assert weights.task > 0.85


def test_weight_that_was_lost_is_won_back() -> None:
    weights, random = fresh(), Random(1)
    for episode in (mute, telling):
        for _ in range(20):
            weights.update(step(random, episode))
    assert weights.weights("shop", 3).progress > 2 * UNIFORM.progress


def test_domains_have_weights_of_their_own() -> None:
    weights, random = fresh(), Random(1)

    def turned(random: Random) -> tuple[bool, tuple[float, float, float]]:
        success, (progress, efficiency, _) = telling(random)
        return success, (efficiency, 0.5, progress)

    for _ in range(25):
        weights.update(step(random, telling) + step(random, turned, "air"))
    shop, air = weights.weights("shop", 3), weights.weights("air", 3)
    assert shop.progress > 3 * shop.domain and air.domain > 3 * air.progress


@given(st.integers(0, 3), st.sampled_from([0.0, 0.4, 0.9]), st.sampled_from([0.05, 1.0]))
@settings(max_examples=12, deadline=None)
def test_the_task_never_falls_below_its_floor(seed: int, floor: float, rate: float) -> None:
    weights, random = fresh(seed, floor=floor, learning_rate=rate, passes=5), Random(seed)
    for _ in range(4):
        weights.update(step(random, telling))
        for level in range(1, 6):
            row = astuple(weights.weights("shop", level))
            assert row[0] >= floor and min(row) >= 0
            assert sum(row) == pytest.approx(1.0)


def test_weights_are_frozen_within_a_step() -> None:
    weights = fitted(telling, steps=3)
    once = weights.weights("shop", 2)
    assert weights.weights("shop", 2) == once
    weights.update(step(Random(2), telling))
    assert weights.weights("shop", 2) != once


def test_the_calibration_is_of_episodes_that_the_fit_had_not_seen() -> None:
    weights, random = fresh(), Random(1)
    rows = [weights.update(step(random, telling))[0] for _ in range(25)]
    assert (rows[0].episodes, rows[0].domain) == (32, "shop")
    assert len({row.loss for row in rows}) == 25
    assert fmean(row.loss for row in rows[-8:]) < 0.6 < rows[0].loss
    assert all(0 <= row.error <= 1 for row in rows)


def test_a_lone_domain_that_is_foreseen_perfectly_has_no_error() -> None:
    weights = fresh()
    half = [Observation("air", 1, n % 2 == 0, (0.5, 0.5, 0.5)) for n in range(8)]
    (row,) = weights.update(half)
    assert (row.domain, row.observed, row.error) == ("air", 0.5, 0.0)


def test_episodes_of_a_single_turn_count_as_outcomes_alone() -> None:
    weights = fresh()
    assert weights.update([Observation("shop", 1, True, None)]) == []
    assert weights.state_dict() == {"outcomes": {"air": [], "shop": [1]}}
    assert len(weights.tensors()["window/success"]) == 0


def test_the_window_and_the_outcomes_are_bounded() -> None:
    weights, random = fresh(window=40), Random(1)
    for _ in range(4):
        weights.update(step(random, telling))
    assert len(weights.tensors()["window/success"]) == 40
    assert len(weights.state_dict()["outcomes"]["shop"]) == 100


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    assert save(fitted(telling, 3).tensors()) == save(fitted(telling, 3).tensors())
    assert save(fresh(1).tensors()) != save(fresh(2).tensors())


def test_a_run_that_goes_on_gives_the_bytes_of_one_never_stopped() -> None:
    whole, random = fitted(telling, steps=3), Random(7)
    resumed = fresh(seed=1)
    resumed.load_state_dict(whole.state_dict(), whole.tensors())
    for _ in range(2):
        seen = step(random, telling) + step(random, mute, "air")
        assert resumed.update(seen) == whole.update(seen)
        assert resumed.weights("air", 4) == whole.weights("air", 4)
    assert save(resumed.tensors()) == save(whole.tensors())
    assert resumed.state_dict() == whole.state_dict()


def test_a_checkpoint_of_others_is_refused() -> None:
    saved = fitted(telling, steps=2)
    other = DomainWeights(LEARNED, {"shop": EMBEDDINGS["shop"]}, Seed.root(1))
    with pytest.raises(CheckpointError, match="domains with weights"):
        other.load_state_dict(saved.state_dict(), saved.tensors())
    for changes in ({"hidden": 8}, {"window": 50}):
        with pytest.raises(CheckpointError, match="do not fit"):
            fresh(**changes).load_state_dict(saved.state_dict(), saved.tensors())


def test_an_episode_as_it_stood_at_a_turn_before_its_end() -> None:
    trajectory = make_trajectory(gains=(0.2, 0.3, 0.5), expert_turns=2)
    for turn, declared in zip(trajectory.turns, (0.9, 0.1, 0.0), strict=True):
        turn.domain = declared
    wanted = {(0.2, 0.75, 0.9), (0.5, 0.5, 0.1)}
    seen = {observe(trajectory, REWARD, Random(s)).standing for s in range(20)}
    assert seen == wanted
    assert observe(trajectory, REWARD, Random(1)).success
    single = make_trajectory(gains=(0.2,), end=End.HORIZON)
    assert observe(single, REWARD, Random(1)) == Observation("toy", 1, False, None)


@pytest.mark.parametrize("changes", [{"floor": 1.0}, {"window": 16}, {"passes": 0}])
def test_settings_that_could_have_no_effect_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        LearnedWeights.model_validate({**LEARNED.model_dump(), **changes})
