"""Stages whose engine is a vLLM server; skipped where vLLM is not installed."""

from pathlib import Path

import pytest

from tests.agent.test_vllm_engine import installed
from tests.stages.conftest import finish, start
from tests.stages.test_kill import Copy, rows

SIZE = "agent={hidden: 96, heads: 3, head_dim: 32, ffn: 128}"  # heads that the CPU build takes
VLLM = (
    "engine={kind: vllm, slots: 32, dtype: float32, max_tokens: 48, sleep: true, correction: 2.0, "
    "memory: 0.02}"
)
FEW = ("grpo.steps=4", "grpo.probe_every=2", "grpo.temperature=1.0")


@installed
@pytest.mark.slow
def test_grpo_trains_on_what_the_server_samples_and_tells_the_mismatch(
    copy: Copy, tmp_path: Path
) -> None:
    root, log = copy("root", "data"), tmp_path / "log"
    finish("sft", root, log, SIZE)
    assert start("grpo", root, log, SIZE, VLLM, *FEW).wait(timeout=540) == 0, log.read_text()
    moved = [row for row in rows(root, "grpo") if row.get("gradient_norm")]
    assert moved
    for row in moved:
        assert 0 < row["mismatch_mean"] < row["mismatch_most"] < 0.01
        assert row["mismatch_capped"] == 0
