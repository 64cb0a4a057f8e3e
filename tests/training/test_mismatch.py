"""Tokens that another program has sampled: scored again by the trainer, weighed within a bound."""

from math import exp, log
from random import Random
from typing import Any

import pytest
import torch

from progrl.training.mismatch import corrected
from progrl.training.optimiser import Optimiser
from progrl.training.update import Group, policy_update, stats_row
from tests.training.test_update import GRPO, group, tiny


def test_weights_by_hand() -> None:
    own = [[log(0.5), log(0.2)], [log(0.9)]]
    theirs = [[log(0.4), log(0.25)], [log(0.3)]]
    weights, mismatch = corrected(own, theirs, 2.0)
    assert weights[0] == pytest.approx([0.5 / 0.4, 0.2 / 0.25])
    assert weights[1] == [2.0]  # 0.9 / 0.3 = 3, cut
    apart = [log(0.5 / 0.4), log(0.25 / 0.2), log(3)]
    assert mismatch.mean == pytest.approx(sum(apart) / 3)
    assert (mismatch.most, mismatch.capped) == (pytest.approx(log(3)), pytest.approx(1 / 3))


def shifted(groups: list[Group], by: float) -> list[Group]:
    """The same groups, where the sampler told log-probabilities that are lower by `by`."""
    for each in groups:
        for trajectory in each.trajectories:
            for turn in trajectory.turns:
                turn.logprobs = [p - by for p in turn.logprobs]
    return groups


def moment(by: float, cap: float | None, **changed: Any) -> tuple[torch.Tensor, dict[str, Any]]:
    """The gradient, as Adam's first moment holds it, and the step's row."""
    model = tiny()
    groups = [group(model, [1.0, 0.0, 0.5, 0.0]), group(model, [0.0, 1.0])]
    optimiser = Optimiser(model, 0.01, 0, 1e9)
    config = GRPO.model_copy(update={"minibatches": 1, **changed})
    stats = policy_update(optimiser, shifted(groups, by), config, 1.0, 40, Random(1), None, cap)
    state = optimiser.tensors()["optimiser"]
    rows = [v.flatten() for k, v in sorted(state.items()) if k.startswith("exp_avg/")]
    return torch.cat(rows), stats_row(stats)


def test_where_the_programs_agree_nothing_changes() -> None:
    plain, row = moment(0.0, None)
    same, corrected_row = moment(0.0, 2.0)
    torch.testing.assert_close(same, plain, atol=1e-7, rtol=1e-4)
    assert corrected_row["mismatch_mean"] < 1e-5
    assert set(corrected_row) - set(row) == {"mismatch_mean", "mismatch_most", "mismatch_capped"}


@pytest.mark.parametrize("budget", [20, 10_000])
def test_the_ratio_is_the_trainers_own_and_the_gradient_weighed(budget: int) -> None:
    """A sampler that says e^-0.3 of the truth: no ratio is clipped, each token weighs e^0.3."""
    plain, _ = moment(0.0, None)
    weighed, row = moment(0.3, 2.0, tokens_per_microbatch=budget)
    torch.testing.assert_close(weighed, plain * exp(0.3), atol=1e-6, rtol=1e-3)
    assert row["mismatch_mean"] == pytest.approx(0.3, abs=1e-4)
    assert row["clip_share"] == 0
    cut, row = moment(0.3, 1.1, tokens_per_microbatch=budget)
    torch.testing.assert_close(cut, plain * 1.1, atol=1e-6, rtol=1e-3)
    assert row["mismatch_capped"] == 1
