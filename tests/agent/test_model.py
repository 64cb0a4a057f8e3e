"""Models on disk: whole or not at all, the same for a seed, faults named."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from progrl.agent.model import load_agent_folder, load_model, make_model, save_model
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.errors import CheckpointError
from progrl.files import read_json, write_json

CODEC = CompactCodec(train_tokenizer(["hello there"], (), 300))


def tiny(seed: int) -> Any:
    return make_model(vocabulary=CODEC.size, hidden=32, layers=1, ffn=32, heads=1, seed=seed)


def test_a_seed_makes_one_model_and_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = tiny(1).state_dict()
    assert torch.equal(torch.rand(3), expected)
    second, other = tiny(1).state_dict(), tiny(2).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_saved_and_loaded_agree(tmp_path: Path) -> None:
    model = tiny(1)
    for name in ("one", "two"):
        save_model(tmp_path / name, model, CODEC)
    loaded, codec = load_agent_folder(tmp_path / "one")
    assert codec.act is not None and isinstance(codec, CompactCodec)
    assert codec.encode("hello") == CODEC.encode("hello")
    ids = torch.arange(20)[None]
    with torch.no_grad():
        assert torch.equal(loaded(ids).logits, model(ids).logits)
    contents = [
        {p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "two")
    ]
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    "part", ["model.safetensors", "config.json", "tokenizer.json", "codec.json", "manifest.json"]
)
@pytest.mark.parametrize("damage", ["missing", "cut", "flipped"])
def test_damage_is_found_and_named(tmp_path: Path, part: str, damage: str) -> None:
    folder = tmp_path / "model"
    save_model(folder, tiny(1), CODEC)
    path = folder / part
    content = path.read_bytes()
    middle = len(content) // 2
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[:middle])
    else:
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    if part == "manifest.json" and damage == "missing":
        load_agent_folder(folder)  # as any folder made by others
        return
    with pytest.raises(CheckpointError, match=part.replace(".", r"\.")):
        load_agent_folder(folder)


@pytest.mark.parametrize("key", ["num_hidden_layers", "intermediate_size", "model_type"])
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, key: str) -> None:
    folder = tmp_path / "model"
    save_model(folder, tiny(1), CODEC)
    (folder / "manifest.json").unlink()
    changes = {
        "num_hidden_layers": {"num_hidden_layers": 2, "layer_types": ["full_attention"] * 2},
        "intermediate_size": {"intermediate_size": 48},
        "model_type": {"model_type": "unheard-of"},
    }
    original = read_json(folder / "config.json")
    write_json(folder / "config.json", {**original, **changes[key]})
    with pytest.raises(CheckpointError, match=re.escape(str(folder))):
        load_model(folder)


def test_folders_without_a_model_are_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such model folder"):
        load_model(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        load_model(tmp_path / "empty")


def test_a_failed_write_leaves_the_old_model(tmp_path: Path) -> None:
    class Broken(CompactCodec):
        def save(self, folder: Path) -> None:
            raise RuntimeError("stopped here")

    folder = tmp_path / "model"
    save_model(folder, tiny(1), CODEC)
    before = (folder / "model.safetensors").read_bytes()
    with pytest.raises(RuntimeError, match="stopped"):
        save_model(folder, tiny(2), Broken(CODEC.tokenizer))
    assert (folder / "model.safetensors").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    load_agent_folder(folder)
