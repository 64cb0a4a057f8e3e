"""How a model is trained: thin matrices alone, with activations computed again, or compiled."""

import shutil
from math import log
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from progrl.agent.lora import folded
from progrl.agent.model import make_model, prepare_training
from progrl.config import load_config
from progrl.config.agent import HuggingFaceAgent, LoraTuning, WholeTuning
from progrl.seeds import Seed
from progrl.training.batching import Example, microbatches
from progrl.training.optimiser import Optimiser
from progrl.training.sft import SftTrainer
from tests.training.test_sft import Killed, examples

CONFIG = load_config(
    profile="tiny",
    overrides=["sft={warmup: {kind: none}, steps: 12, checkpoint_every: 4, learning_rate: 0.05}"],
).sft
LORA = LoraTuning(kind="lora", rank=4, alpha=8, targets=("q_proj", "down_proj"))
WHOLE = WholeTuning(kind="whole")


def agent(tuning: Any, checkpointing: bool = False, compiled: bool = False) -> HuggingFaceAgent:
    return HuggingFaceAgent(
        kind="huggingface",
        folder=Path("m"),
        window=64,
        dtype="float32",
        tuning=tuning,
        checkpointing=checkpointing,
        compile=compiled,
    )


def model(config: HuggingFaceAgent) -> Any:
    made = make_model(
        vocabulary=16, hidden=16, layers=2, heads=2, head_dim=8, ffn=32, window=128, seed=1
    )
    prepare_training(made, config, 3)
    return made


def trainer(folder: Path, dies_at: int = 10_000) -> SftTrainer:
    def progress(done: int, total: int, text: str) -> None:
        if done == dies_at:
            raise Killed

    made, seed = model(agent(LORA)), Seed.root(1)
    return SftTrainer(
        made, examples(40), examples(8), CONFIG, (0, 1), seed, folder, lambda row: None, progress
    )


def test_lora_trains_thin_matrices_alone_and_learns(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    rows = run.run()
    assert rows[-1]["validation_loss"] < log(16) - 0.2  # of 16 tokens, all as likely: log(16)
    moved = {n for n, v in run.model.state_dict().items() if not torch.equal(v, before[n])}
    assert moved == {name for name in before if "lora_" in name}
    saved = load_file(next(tmp_path.glob("step-*")) / "model.safetensors")
    assert set(saved) == moved


@pytest.mark.parametrize("dies_at", [3, 4, 10])
def test_lora_killed_anywhere_ends_the_same(tmp_path: Path, dies_at: int) -> None:
    whole = trainer(tmp_path / "whole")
    rows = whole.run()
    with pytest.raises(Killed):
        trainer(tmp_path / "cut", dies_at).run()
    resumed = trainer(tmp_path / "cut")
    assert resumed.run() == rows
    with folded(resumed.model) as mine, folded(whole.model) as other:
        expected = other.state_dict()
        assert all(torch.equal(value, expected[name]) for name, value in mine.state_dict().items())
    shutil.rmtree(tmp_path / "cut")


def gradients(config: HuggingFaceAgent, training: bool) -> tuple[float, list[torch.Tensor]]:
    made = model(config)
    optimiser = Optimiser(made, 1e-3, 0.0, 1.0)
    made.train(training)
    rows = [Example([1 + (3 * i + k) % 15 for i in range(9 + k)], [True] * (9 + k)) for k in (0, 4)]
    (micro,) = microbatches(rows, 1000)
    loss = -optimiser.scorer(micro.inputs).mean()
    optimiser.backward(loss)
    return loss.item(), [p.grad for p in made.parameters() if p.requires_grad]


@pytest.mark.parametrize("tuning", [WHOLE, LORA], ids=["whole", "lora"])
@pytest.mark.parametrize("training", [True, False])
def test_activations_computed_again_change_nothing(tuning: Any, training: bool) -> None:
    counts = []
    outcomes = []
    for checkpointing in (False, True):
        made = model(agent(tuning, checkpointing))
        calls = 0

        def count(*given: Any) -> None:
            nonlocal calls
            calls += 1

        made.model.layers[0].mlp.register_forward_pre_hook(count)
        optimiser = Optimiser(made, 1e-3, 0.0, 1.0)
        made.train(training)
        rows = [Example([1, 2, 3, 4, 5, 6], [True] * 6)]
        (micro,) = microbatches(rows, 1000)
        optimiser.backward(-optimiser.scorer(micro.inputs).mean())
        counts.append(calls)
        outcomes.append([p.grad for p in made.parameters() if p.requires_grad])
    assert counts == [1, 2]
    assert all(torch.equal(a, b) for a, b in zip(*outcomes, strict=True))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
def test_compiled_it_computes_the_same() -> None:
    loss, plain = gradients(agent(WHOLE), True)
    again, compiled = gradients(agent(WHOLE, compiled=True), True)
    assert again == pytest.approx(loss, abs=1e-5)
    for one, other in zip(plain, compiled, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
