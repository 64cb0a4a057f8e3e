"""A new model that starts with the copying circuit can copy after a few steps."""

from random import Random

import pytest
import torch

from progrl.agent.model import make_model
from progrl.config import load_config
from progrl.errors import ConfigurationError
from progrl.training.scoring import Inputs, Scorer


def loss_on_repeats(copying: bool, seed: int) -> float:
    random, model = Random(1), make_model(vocabulary=512, copying=copying, seed=seed)
    total = 0.0
    for _ in range(8):
        once = random.sample(range(64, 512), 16)
        mask = torch.tensor([[False] * 16 + [True] * 15])
        with torch.no_grad():
            logprobs = Scorer(model)(Inputs.of(torch.tensor([once * 2]), mask))
        total -= float(logprobs.mean()) / 8
    return total


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_untrained_it_already_prefers_what_followed_before(seed: int) -> None:
    assert loss_on_repeats(copying=True, seed=seed) < loss_on_repeats(copying=False, seed=seed) - 1


def test_a_model_without_room_for_the_circuit_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="two layers"):
        load_config(overrides=["agent.layers=1"])
