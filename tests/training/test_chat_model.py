"""A pretrained chat model as the agent: the stages on a tiny Llama with a chat template."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from progrl.agent.model import load_agent_folder, save_model
from progrl.config import load_config
from progrl.dialogue.chat import ChatCodec
from progrl.dialogue.trajectories import Trajectory
from progrl.files import read_jsonl
from progrl.rewards import RewardParts
from progrl.stages import Context, find_stage
from progrl.training import grpo, update
from tests.dialogue.chat_models import SEPARATED, chat_tokenizer

WINDOW = 8192
SMALL = (
    "embedding.kind=hashed",
    "generate={train_tasks: 20, validation_tasks: 20, test_tasks: 2, dialogues: 2}",
    "generate={responses: 60, pool: 120}",
    f"agent={{folder: chat, window: {WINDOW}}}",
    "engine={slots: 4, max_tokens: 12}",
    "sft={dialogues: 2, steps: 1, batch: 2, checkpoint_every: 1}",
    "grpo={steps: 1, tasks: 2, group: 2, learning_rate: 0.001, kl: 0.1, keep: last}",
    "grpo={probe_every: 1, probe_tasks: 1, probe_horizon: 2, checkpoint_every: 1}",
)


def tiny_llama(tokens: int) -> Any:
    config = LlamaConfig(
        vocab_size=tokens,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=WINDOW,
        tie_word_embeddings=True,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return LlamaForCausalLM(config)


def first_sampled(trajectory: Trajectory, config: object) -> RewardParts:
    """Pays for what untrained weights do too; a task's own reward would be 0 for all of them."""
    total = trajectory.turns[0].sampled[0] / 300
    return RewardParts(0.0, total, 0.0, 0.0, total)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_it_goes_through_the_stages(
    dtype: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (grpo, update):
        monkeypatch.setattr(module, "structured_reward", first_sampled)
    tokenizer = chat_tokenizer(SEPARATED)
    save_model(tmp_path / "chat", tiny_llama(len(tokenizer)), ChatCodec(tokenizer))
    dtypes = (f"agent.dtype={dtype}", f"engine.dtype={dtype}")
    config = load_config(root / "params.yaml", "smollm", (*SMALL, *dtypes))
    for name in ("generate", "sft", "grpo"):
        find_stage(name).run(Context(config, tmp_path, tmp_path, tmp_path / "runs" / name))

    (learned,) = [row for _, row in read_jsonl(tmp_path / "metrics/sft.jsonl")]
    assert 4 < learned["validation_loss"] < learned["loss"] < 7  # log 300 = 5.7, before and after
    (_, row) = [row for _, row in read_jsonl(tmp_path / "metrics/grpo.jsonl")]
    assert (row["episodes"], row["groups"], row["faults"]) == (4, 2, 0)
    assert row["groups_zero_variance"] < 2
    assert row["gradient_norm"] > 0
    # What was sampled has the same log-probabilities in training, so nothing is clipped.
    assert row["clip_share"] == 0
    assert 0 < row["kl"] < 0.1

    names = ("untrained", "sft", "grpo")
    weights = [load_file(tmp_path / f"models/{name}/model.safetensors") for name in names]
    for before, after in pairwise(weights):
        assert before.keys() == after.keys()
        assert all(not torch.equal(before[key], after[key]) for key in before)
    given = load_file(tmp_path / "chat/model.safetensors")
    assert all(torch.equal(given[key], weights[0][key]) for key in given)
    model, codec = load_agent_folder(tmp_path / "models/grpo")
    assert isinstance(codec, ChatCodec)
    assert codec.stop_ids == ChatCodec(tokenizer).stop_ids
    assert model.config.model_type == "llama"
