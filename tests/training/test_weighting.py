"""Learned domain weights in training: what scores a group, what is learned from, what is kept."""

from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from progrl.config import Config, load_config
from progrl.dialogue.trajectories import End, Trajectory
from progrl.embedding import HashedEncoder
from progrl.errors import CheckpointError
from progrl.rewards import Weights, fixed_weights
from progrl.seeds import Seed
from progrl.stages.grpo import flat
from progrl.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from progrl.training.update import Group
from progrl.training.weighting import Weighting
from tests.builders import make_task, make_trajectory

FIXED = load_config()
LEARNED = (
    "domains.train=[toy]",
    "evaluation.gate.benchmark=toy",
    "reward.weights={kind: learned, floor: 0.4, hidden: 8, evidence: 2.0, price: 0.02}",
    "reward.weights={learning_rate: 0.01, passes: 10, window: 64, min_episodes: 4}",
)
FIRST = Weights(0.55, 0.15, 0.15, 0.15)
WORLD: Any = SimpleNamespace(domains={"toy": SimpleNamespace(description="Toys to look at.")})


def learned() -> Config:
    return load_config(overrides=LEARNED)


def weighting(config: Config, world: Any = WORLD) -> Weighting:
    return Weighting(config, world, HashedEncoder(), Seed.root(3))


def telling(seed: int) -> list[Trajectory]:
    """Episodes that progress early on are the ones that succeed."""
    random = Random(seed)
    made = []
    for _ in range(8):
        success = random.random() < 0.5
        gains = (0.6, 0.2, 0.2) if success else (0.0, 0.1, 0.0)
        made.append(make_trajectory(gains, success, expert_turns=3))
    return made


def test_fixed_weights_are_those_of_the_configuration_and_nothing_is_learned_or_kept() -> None:
    fixed = weighting(FIXED, world=None)  # no domain is asked for
    assert fixed.of(make_task()) == fixed_weights(FIXED.reward) == Weights(1.0, 0.5, 0.2, 0.0)
    assert fixed.learn(telling(1), 20, Random(1)) == {}
    assert (fixed.tensors(), fixed.state_dict()) == ({}, {})
    fixed.load_state_dict({"rows": []}, {})
    made = telling(1)
    plain = Group.of(made, FIXED.reward, FIXED.grpo.score)
    assert Group.of(made, FIXED.reward, FIXED.grpo.score, fixed.of(made[0])) == plain


def test_a_group_is_scored_by_its_domains_weights() -> None:
    config = learned()
    made = [
        make_trajectory((0.5, 0.5), expert_turns=2),  # T_opt = 4: efficiency 0.5
        make_trajectory((0.5, 0.5), policy_kept=False),
        make_trajectory((0.25, 0.0), success=False),
        make_trajectory(end=End.FAULT),
    ]
    weights = weighting(config).of(make_task())
    assert weights.task == pytest.approx(0.55) and weights.domain == pytest.approx(0.15)
    group = Group.of(made, config.reward, config.grpo.score, weights)
    assert group.scores == [
        pytest.approx(0.55 + 0.15 + 0.075 + 0.15),
        pytest.approx(0.55 + 0.15),
        pytest.approx(0.15 * 0.25 + 0.15),
    ]
    # The weights sum to 1, so rescaled turn rewards are as they were.
    assert [sum(row) for row in group.rewards] == [pytest.approx(s) for s in group.scores]
    assert group.rewards[0] == [pytest.approx(0.075), pytest.approx(0.85)]


def test_a_step_tells_the_weights_that_it_was_scored_with_and_fits_the_next() -> None:
    it = weighting(learned())
    for step in range(12):
        before = it.of(make_task())
        row = it.learn(telling(step), 20, Random(step))
        assert list(row) == ["weights", "calibration"]
        assert row["weights"]["toy"] == pytest.approx(
            {"task": before.task, "progress": before.progress,
             "efficiency": before.efficiency, "domain": before.domain}
        )  # fmt: skip
        assert row["calibration"]["toy"]["episodes"] == 8
        assert set(row["calibration"]["toy"]) == {
            *("episodes", "predicted", "observed", "loss", "error")
        }
    after = it.of(make_task())
    assert after.progress > 2 * FIRST.progress > 4 * after.domain
    assert after.task >= 0.4


def test_tracking_has_the_figures_by_domain() -> None:
    row = {"step": 3, "probe": None, **weighting(learned()).learn(telling(1), 20, Random(1))}
    names = [name for name, _ in flat(row)]
    assert names[:3] == ["step", "probe", "weights/toy/task"]
    assert names[-1] == "calibration/toy/error"
    assert dict(flat(row))["weights/toy/progress"] == row["weights"]["toy"]["progress"]


def test_what_nobody_could_solve_and_what_was_spoiled_is_not_learned_from() -> None:
    it = weighting(learned())
    lost = [make_trajectory(end=End.FAULT)]
    row = it.learn([*telling(1), *lost], 2, Random(1))  # the expert needs three turns
    assert set(row["weights"]) == {"toy"} and row["calibration"] == {}
    assert it.state_dict() == {"weights": {"outcomes": {"toy": []}}}
    row = it.learn([*telling(1), *lost], 3, Random(1))
    assert row["calibration"]["toy"]["episodes"] == 8
    assert it.learn(lost, 3, Random(1)) == {"weights": {}, "calibration": {}}


def test_a_run_that_goes_on_from_a_checkpoint_learns_the_same(tmp_path: Path) -> None:
    whole = weighting(learned())
    for step in range(3):
        whole.learn(telling(step), 20, Random(step))
    save_checkpoint(tmp_path, Checkpoint(3, whole.tensors(), {"rows": [], **whole.state_dict()}))
    checkpoint = load_checkpoint(tmp_path)
    assert checkpoint is not None
    resumed = weighting(learned())
    assert resumed.of(make_task()) != whole.of(make_task())
    resumed.load_state_dict(checkpoint.state, checkpoint.tensors)
    for step in range(3, 6):
        assert resumed.of(make_task()) == whole.of(make_task())
        rows = [it.learn(telling(step), 20, Random(step)) for it in (resumed, whole)]
        assert rows[0] == rows[1]


def test_a_checkpoint_without_its_weights_is_refused() -> None:
    with pytest.raises(CheckpointError, match="domain weights"):
        weighting(learned()).load_state_dict({"rows": []}, {})
