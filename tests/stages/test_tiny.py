"""The profile `tiny` as it stands: in it, too, every stage does what it is for."""

from pathlib import Path

import pytest

from progrl.files import read_jsonl
from tests.stages.conftest import run

pytestmark = pytest.mark.slow


def test_grpo_moves_the_weights(tmp_path: Path) -> None:
    for name in ("generate", "sft", "grpo"):
        done = run(name, tmp_path)
        assert done.exit_code == 0, done.output
    rows = [row for _, row in read_jsonl(tmp_path / "metrics" / "grpo.jsonl")]
    steps = [row for row in rows if row["step"]]
    moved = [row for row in steps if row["gradient_norm"]]
    assert len(moved) >= 2
    assert all(row["groups_zero_variance"] < row["groups"] for row in moved)
    before, after = (
        (tmp_path / "models" / name / "model.safetensors").read_bytes() for name in ("sft", "grpo")
    )
    assert before != after
