"""GRPO's loss: worked values, and independence of how a minibatch is split."""

import math

import pytest
import torch

from progrl.training.objective import clipped_loss, kl_penalty, token_weights


def test_the_clip_by_hand() -> None:
    old = torch.zeros(4)
    logprobs = torch.tensor([1.5, 1.5, 0.5, 0.5]).log()
    advantages = torch.tensor([1.0, -1.0, 1.0, -1.0])
    losses, clipped = clipped_loss(logprobs, old, advantages, low=0.2, high=0.3)
    assert losses.tolist() == pytest.approx([-1.3, 1.5, -0.5, 0.8])
    assert clipped.tolist() == [True, False, False, True]


def test_a_clipped_token_has_no_gradient() -> None:
    logprobs = torch.tensor([math.log(1.5), math.log(1.1)], requires_grad=True)
    losses, _ = clipped_loss(logprobs, torch.zeros(2), torch.ones(2), 0.2, 0.2)
    losses.sum().backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == pytest.approx([0.0, -1.1])


def test_kl_is_zero_for_the_same_policy_and_positive_otherwise() -> None:
    logprobs = torch.tensor([-1.0, -2.0])
    assert kl_penalty(logprobs, logprobs).tolist() == [0.0, 0.0]
    penalty = kl_penalty(logprobs, logprobs + torch.tensor([0.5, -0.5]))
    assert penalty.tolist() == pytest.approx([math.exp(0.5) - 1.5, math.exp(-0.5) - 0.5])


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [("token_mean", [0.25, 0.25]), ("sequence_mean", [0.5, 1 / 6]), ("dr_grpo", [0.05, 0.05])],
)
def test_token_weights_by_hand(aggregation: str, expected: list[float]) -> None:
    weights = token_weights([1, 3, 0], aggregation, longest=10)  # type: ignore[arg-type]
    assert [len(w) for w in weights] == [1, 3, 0]
    assert [weights[0][0], weights[1][0]] == pytest.approx(expected)
