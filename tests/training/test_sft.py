"""The warm start on a tiny model: it learns, and a kill changes nothing."""

from pathlib import Path
from random import Random

import pytest
import torch

from progrl.agent.model import make_model
from progrl.config import load_config
from progrl.seeds import Seed
from progrl.training.batching import Example
from progrl.training.sft import SftTrainer

CONFIG = load_config(profile="tiny").sft.model_copy(update={"steps": 20, "checkpoint_every": 5})


class Killed(Exception):
    """Stands for a kill at a step."""


def examples(count: int) -> list[Example]:
    random = Random(1)
    lengths = [random.randint(4, 12) for _ in range(count)]
    return [Example([5 + i % 3 for i in range(n)], [False] + [True] * (n - 1)) for n in lengths]


def test_an_update_does_not_depend_on_micro_batches(tmp_path: Path) -> None:
    told = []
    for budget in (1, 30, 10_000):
        config = CONFIG.model_copy(update={"tokens_per_microbatch": budget})
        run = trainer(tmp_path / str(budget))
        run.config = config
        optimiser = run._optimiser()
        row = run._learn(optimiser, 3)
        state = optimiser.tensors()["optimiser"]
        moments = [v.flatten() for k, v in sorted(state.items()) if k.startswith("exp_avg/")]
        told.append((row["loss"], torch.cat(moments)))
    for loss, moment in told[1:]:
        assert loss == pytest.approx(told[0][0], rel=1e-6)
        torch.testing.assert_close(moment, told[0][1], atol=1e-8, rtol=1e-4)


def trainer(folder: Path, dies_at: int = 10_000) -> SftTrainer:
    def progress(done: int, total: int, text: str) -> None:
        if done == dies_at:
            raise Killed

    model = make_model(
        vocabulary=16, hidden=16, layers=2, heads=2, head_dim=8, ffn=32, window=128, seed=1
    )
    seed = Seed.root(1)
    learn, check = examples(40), examples(8)
    return SftTrainer(
        model, learn, check, CONFIG, (5, 16), seed, folder, lambda row: None, progress
    )


def weights(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_the_loss_falls(tmp_path: Path) -> None:
    rows = trainer(tmp_path).run()
    losses = [float(r["validation_loss"] or 0) for r in rows if r.get("validation_loss")]
    assert losses[-1] < 0.7 * losses[0]
    assert [r["phase"] for r in rows] == ["copy", "sft", "sft"]


@pytest.mark.parametrize("dies_at", [1, 5, 9, 10, 11, 27, 29])
def test_killed_anywhere_it_ends_the_same(tmp_path: Path, dies_at: int) -> None:
    whole = trainer(tmp_path / "whole")
    rows = whole.run()
    with pytest.raises(Killed):
        trainer(tmp_path / "cut", dies_at).run()
    resumed = trainer(tmp_path / "cut")
    assert resumed.run() == rows
    assert torch.equal(weights(resumed.model), weights(whole.model))
