"""What a run will take, told beforehand, beside what it took."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from progrl.agent.engines.local import LocalEngine
from progrl.agent.model import make_model, save_model
from progrl.agent.shape import KNOWN, Shape, shape_of
from progrl.config import load_config
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.errors import DataError
from progrl.stages import estimate as stage
from progrl.stages.estimate import estimate, too_large
from progrl.training.batching import Example

MEMORY_FACTOR = 2.0
"""How far the estimated bytes may be from those measured, either way."""
TIME_FACTOR = 5.0
"""As for seconds, on a machine that others use too."""

_PEAK = """
import resource, sys
from pathlib import Path
import torch
from progrl.agent.engines.local import LocalEngine
from progrl.agent.model import make_model
from progrl.training.batching import Example, microbatches
from progrl.training.optimiser import Optimiser
hidden, layers, window, slots, budget = map(int, sys.argv[1:])
torch.set_num_threads(1)
model = make_model(vocabulary=768, hidden=hidden, layers=layers, heads=hidden // 32, head_dim=32,
                   ffn=4 * hidden, window=window, seed=1)
engine = LocalEngine(model, slots=slots, window=window)
engine._batch._cache.ensure(window)
engine._batch._cache.keys.fill_(1.0), engine._batch._cache.values.fill_(1.0)
optimiser = Optimiser(model, 1e-3, 0.0, 1.0)
rows = [Example([7] * window, [True] * window) for _ in range(budget // window)]
for _ in range(2):
    for micro in microbatches(rows, budget):
        optimiser.backward(-optimiser.scorer(micro.inputs).mean())
    optimiser.step(1.0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def sized(hidden: int, layers: int, window: int, slots: int, budget: int) -> list[str]:
    agent = f"hidden: {hidden}, layers: {layers}, heads: {hidden // 32}, head_dim: 32"
    return [
        f"agent={{{agent}, ffn: {4 * hidden}, window: {window}, vocabulary: 768}}",
        f"engine.slots={slots}",
        f"sft.tokens_per_microbatch={budget}",
        f"grpo.tokens_per_microbatch={budget}",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes",
    [(96, 3, 256, 32, 2048), (384, 8, 256, 64, 2048), (256, 6, 512, 128, 8192)],
    ids=["small", "weights", "activations"],
)
def test_memory_is_what_is_measured(sizes: tuple[int, int, int, int, int]) -> None:
    config = load_config(profile="tiny", overrides=sized(*sizes))
    told = estimate(config, Path(), trial=False)["memory"]["process"]
    command = [sys.executable, "-c", _PEAK, *map(str, sizes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    peak = int(done.stdout)
    assert peak / MEMORY_FACTOR < told < peak * MEMORY_FACTOR, (told, peak)


def test_weights_are_counted_exactly(tmp_path: Path) -> None:
    sizes = {"vocabulary": 300, "hidden": 48, "layers": 2, "heads": 4, "kv_heads": 2, "ffn": 80}
    for tied in (True, False):
        model = make_model(**sizes, head_dim=16, window=64, tied=tied, seed=1)
        save_model(tmp_path / "m", model, CompactCodec(train_tokenizer(["hello"], (), 300)))
        given = "agent={kind: huggingface, folder: m, window: 64, dtype: float32}"
        more = ["sft.warmup={kind: none}", "agent={checkpointing: false, compile: false}"]
        tuning = "agent.tuning={kind: whole}"
        config = load_config(profile="tiny", overrides=[given, *more, tuning])
        shape = shape_of(config.agent, tmp_path)
        assert shape == Shape(300, 48, 2, 4, 2, 16, 80, tied)
        assert shape.weights == sum(p.numel() for p in model.parameters())
        lora = "agent.tuning={kind: lora, rank: 4, alpha: 8, targets: [q_proj, down_proj]}"
        thin = load_config(profile="tiny", overrides=[given, *more, lora]).agent
        assert shape.trained(thin) == 2 * 4 * ((48 + 64) + (80 + 48))
    (tmp_path / "m" / "config.json").write_text('{"model_type": "other"}')
    with pytest.raises(DataError, match=r"config\.json: no model of the Qwen or Llama kind"):
        shape_of(config.agent, tmp_path)


def test_public_models_have_about_the_weights_they_are_named_for() -> None:
    said = {"smollm": 0.135e9, "qwen3-0.6b": 0.6e9, "qwen3-4b": 4.0e9, "qwen3-14b": 14.8e9}
    assert {name: shape.weights for name, shape in KNOWN.items()} == pytest.approx(said, rel=0.02)


@pytest.mark.parametrize("profile", ["qwen3-0.6b", "qwen3-4b", "qwen3-14b"])
def test_profiles_are_estimated_without_their_folder(profile: str, tmp_path: Path) -> None:
    told = estimate(load_config(profile=profile), tmp_path)
    assert told["memory"]["weights"] > told["model"]["weights"]
    assert told["seconds"] is None and "agent.folder" in told["unknown"]["time"]
    elsewhere = load_config(profile=profile, overrides=["agent.folder=nowhere"])
    assert estimate(elsewhere, tmp_path)["memory"] is None
    if profile != "qwen3-0.6b":  # of few weights there are few gradients
        assert told["memory"]["optimiser"] < 0.1 * told["memory"]["weights"]


@pytest.mark.slow
def test_time_is_what_it_takes(trained: Path, root: Path) -> None:
    from tests.stages.conftest import EASY

    config = load_config(root / "params.yaml", "tiny", EASY)
    told = estimate(config, root)
    done = json.loads(next((trained / "runs/sft").glob("*/done.json")).read_text())
    assert told["seconds"]["sft"] < TIME_FACTOR * done["seconds"]
    assert done["seconds"] < TIME_FACTOR * (told["seconds"]["sft"] + 10)  # loading what it needs


def test_a_run_that_does_not_fit_is_told_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(profile="qwen3-4b")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=2**30))
    told = too_large(config, tmp_path)
    assert told is not None and re.match(r"This run takes about [\d.]+ GiB .* 1\.0 GiB are", told)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=2**40))
    assert too_large(config, tmp_path) is None


def test_a_servers_memory_is_its_own(tmp_path: Path) -> None:
    told = estimate(load_config(profile="qwen3-0.6b"), tmp_path, trial=False)
    assert (told["memory"]["engine_weights"], told["memory"]["engine_cache"]) == (0, 0)
    assert "30% of its device" in told["unknown"]["memory of the engine"]


def test_a_rate_counts_the_tokens_of_all_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_model(
        vocabulary=64, hidden=32, layers=1, heads=1, head_dim=32, ffn=32, window=64, seed=1
    )
    config = load_config(profile="tiny")  # 16 episodes at once
    dialogue = Example([7] * 6, [False, False, True, True, False, True])
    ticks = iter(range(9))
    monkeypatch.setattr(stage, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    monkeypatch.setattr(stage, "_SECONDS", 1.5)  # so one round of all, and three ticks
    rate = stage._rollout_rate(config, LocalEngine(model, slots=16), [dialogue])
    assert rate * 3 == pytest.approx(16 * 6)
