"""Checkpoints are whole or not there; a cut one says so."""

from pathlib import Path

import pytest
import torch

from progrl.errors import CheckpointError
from progrl.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint


def checkpoint(step: int) -> Checkpoint:
    return Checkpoint(step, {"model": {"w": torch.arange(6.0) + step}}, {"rows": [step]})


def test_the_newest_is_loaded_and_older_ones_go(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path / "none") is None
    for step in (5, 10):
        save_checkpoint(tmp_path, checkpoint(step))
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None
    assert (loaded.step, loaded.state) == (10, {"rows": [10]})
    assert torch.equal(loaded.tensors["model"]["w"], torch.arange(6.0) + 10)
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000010"]


def test_one_killed_while_being_written_does_not_count(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, checkpoint(5))
    (tmp_path / ".step-00000010.half").mkdir()
    (tmp_path / ".step-00000010.half" / "model.safetensors").write_bytes(b"half")
    loaded = load_checkpoint(tmp_path)
    assert loaded is not None and loaded.step == 5


@pytest.mark.parametrize("damage", ["cut", "bit", "gone", "state", "json"])
def test_a_damaged_one_is_refused_with_the_way_out(tmp_path: Path, damage: str) -> None:
    save_checkpoint(tmp_path, checkpoint(5))
    weights = tmp_path / "step-00000005" / "model.safetensors"
    state = tmp_path / "step-00000005" / "state.json"
    match damage:
        case "cut":
            weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
        case "bit":
            whole = weights.read_bytes()
            weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        case "gone":
            weights.unlink()
        case "state":
            state.write_text(state.read_text().replace("5\n    ]", "6\n    ]"))
        case "json":
            state.write_text("{")
    with pytest.raises(CheckpointError, match="Remove this folder"):
        load_checkpoint(tmp_path)
