"""Drawing tasks by difficulty and horizon."""

from collections import Counter
from random import Random

import pytest

from progrl.config.training import AdaptiveDifficulty, CurriculumConfig, UniformDifficulty
from progrl.curriculum import Sampler, SuccessWindow
from progrl.curriculum.difficulty import level_weights
from progrl.errors import CheckpointError, ConfigurationError
from tests.builders import make_task

ADAPTIVE = CurriculumConfig(
    window=100,
    reachable=0.5,
    difficulty=AdaptiveDifficulty(kind="adaptive", sharpness=1.0),
)
UNIFORM = ADAPTIVE.model_copy(update={"difficulty": UniformDifficulty(kind="uniform")})
TASKS = [make_task(n, level=n % 5 + 1, expert_turns=2 + 3 * (n % 5)) for n in range(200)]


def test_the_mean_level_rises_with_success() -> None:
    means = []
    for success in (0.0, 0.25, 0.5, 0.75, 1.0):
        weights = level_weights(success, ADAPTIVE)
        assert sum(weights) == pytest.approx(1)
        means.append(sum(w * level for level, w in enumerate(weights, start=1)))
    assert means == sorted(means) and means[2] == pytest.approx(3)
    assert level_weights(0.9, UNIFORM) == [0.2] * 5


@pytest.mark.parametrize("turns", [2, 5, 9, 20])
def test_at_least_half_are_reachable_and_none_twice(turns: int) -> None:
    drawn = Sampler(TASKS, ADAPTIVE).draw(16, turns, 0.4, Random(1))
    assert len({t.id for t in drawn}) == 16
    assert sum(t.expert_turns <= turns for t in drawn) >= 8


def test_drawing_depends_on_the_seed_alone() -> None:
    one = Sampler(TASKS, ADAPTIVE).draw(16, 5, 0.4, Random(1))
    assert one == Sampler(list(reversed(TASKS)), ADAPTIVE).draw(16, 5, 0.4, Random(1))
    assert one != Sampler(TASKS, ADAPTIVE).draw(16, 5, 0.4, Random(2))


def test_a_small_pool_is_drawn_whole() -> None:
    drawn = Sampler(TASKS[:5], ADAPTIVE).draw(16, 20, 0.4, Random(1))
    assert Counter(t.id for t in drawn) == Counter(t.id for t in TASKS[:5])


def test_nothing_reachable_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="within 2 turns"):
        Sampler([make_task(1, expert_turns=4)], ADAPTIVE).draw(1, 2, None, Random(1))


def test_the_window_forgets() -> None:
    window = SuccessWindow(4)
    assert window.rate is None
    window.add([True, True, False, False, False])
    assert (window.rate, window.counted, len(window)) == (0.25, 5, 4)
    other = SuccessWindow(4)
    other.load_state_dict(window.state_dict())
    other.add([True])
    assert other.rate == 0.25
    with pytest.raises(CheckpointError, match="size 4"):
        SuccessWindow(5).load_state_dict(window.state_dict())
