"""Killed anywhere and started again, a stage ends with the very bytes of one left in peace."""

import json
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from progrl.agent.native import find_compiler
from progrl.files import file_digest
from tests.stages.conftest import finish, start

pytestmark = pytest.mark.slow

Copy = Callable[..., Path]
Seen = Callable[[Path], bool]
PATIENCE = 120.0  # seconds until a stage must have come to where it is to be killed
KILLED = -9


def kill(
    name: str,
    root: Path,
    log: Path,
    seen: Seen,
    delay: float,
    *overrides: str,
    number: signal.Signals = signal.SIGKILL,
) -> int:
    """Start a stage, `kill -9` it (or by `number`) `delay` seconds after `seen`; its exit code."""
    process = start(name, root, log, *overrides)
    try:
        end = time.monotonic() + PATIENCE
        while process.poll() is None and not seen(root):
            assert time.monotonic() < end, f"{log.read_text()}\n{name} did not come that far."
            time.sleep(0.001)
        time.sleep(delay)
        process.send_signal(number)
        return process.wait(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()


def newest(root: Path, name: str) -> int:
    """The step of the newest checkpoint; -1 before the stage has its folder for them."""
    folders = list((root / "runs" / name).glob("*/checkpoints"))
    steps = [int(p.name[5:]) for folder in folders for p in folder.glob("step-*")]
    return max([0 if folders else -1, *steps])


def reached(name: str, step: int, root: Path) -> bool:
    """A checkpoint of `step` or later is there."""
    return newest(root, name) >= step


def unfinished(root: Path, name: str) -> set[Path]:
    """Checkpoints that are being written, or were when the stage was killed."""
    return set((root / "runs" / name).glob("*/checkpoints/.step-*"))


def rows(root: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(row) for row in (root / "metrics" / f"{name}.jsonl").open()]


def assert_same(one: Path, other: Path, *outputs: str) -> None:
    assert {o: file_digest(one / o) for o in outputs} == {
        o: file_digest(other / o) for o in outputs
    }


def test_grpo_killed_at_random_moments_ends_the_same(copy: Copy, tmp_path: Path) -> None:
    inputs = ("data", "models/untrained", "models/sft")
    left, killed = copy("left", *inputs), copy("killed", *inputs)
    said = finish("grpo", left, tmp_path / "left.log")
    assert "resuming" not in said
    # There is something to lose: weights and tool policy have moved, and memory holds patterns.
    assert file_digest(left / "models/sft/model.safetensors") != file_digest(
        left / "models/grpo/model.safetensors"
    )
    assert any(row.get("gradient_norm") for row in rows(left, "grpo"))
    assert any(row.get("tools_loss") for row in rows(left, "grpo"))
    assert rows(left, "grpo")[-1]["memory"]

    random, log = Random(7), tmp_path / "killed.log"
    # Before the first checkpoint, then some way into a step after one or two more.
    for more, most in ((0, 0.3), (1, 0.3), (2, 0.4)):
        step = max(0, newest(killed, "grpo")) + more
        delay = random.uniform(0, most)
        assert kill("grpo", killed, log, partial(reached, "grpo", step), delay) == KILLED
        assert not (killed / "metrics" / "grpo.jsonl").exists()
    # Told to end: it does so with one line, and has lost no more.
    seen = partial(reached, "grpo", newest(killed, "grpo") + 1)
    assert kill("grpo", killed, log, seen, 0.2, number=signal.SIGTERM) == 128 + signal.SIGTERM
    assert "Traceback" not in log.read_text()
    assert log.read_text().endswith("\nTerminated.\n")
    # While a checkpoint is being written.
    at, before = newest(killed, "grpo"), unfinished(killed, "grpo")
    assert kill("grpo", killed, log, lambda r: unfinished(r, "grpo") > before, 0.0) == KILLED
    assert f"resuming after step {at}" in log.read_text()
    # While outputs are being written: the model is there, memory and metrics may not be yet.
    kill("grpo", killed, log, lambda r: (r / "models" / "grpo").exists(), 0.0)

    assert "resuming after step" in finish("grpo", killed, log)
    assert_same(left, killed, "models/grpo", "memory", "metrics/grpo.jsonl")


LEARNED = (
    "reward.weights={kind: learned, floor: 0.4, hidden: 16, evidence: 2.0, price: 0.02}",
    "reward.weights={learning_rate: 0.01, passes: 10, window: 100, min_episodes: 16}",
)


def test_grpo_killed_goes_on_with_the_weights_it_had_learned(copy: Copy, tmp_path: Path) -> None:
    inputs = ("data", "models/untrained", "models/sft")
    left, killed = copy("left", *inputs), copy("killed", *inputs)
    finish("grpo", left, tmp_path / "left.log", *LEARNED)
    told = [row["weights"]["retail"] for row in rows(left, "grpo") if row.get("weights")]
    assert len(told) == 10 and len({row["progress"] for row in told}) > 6

    log = tmp_path / "killed.log"
    for step in (3, 6):
        seen = partial(reached, "grpo", step)
        assert kill("grpo", killed, log, seen, 0.05, *LEARNED) == KILLED
    assert "resuming after step" in finish("grpo", killed, log, *LEARNED)
    assert_same(left, killed, "models/grpo", "memory", "metrics/grpo.jsonl")


AHEAD = ("grpo.async_level=1", "grpo.checkpoint_every=4")


def test_grpo_killed_while_it_plays_ahead_ends_the_same(copy: Copy, tmp_path: Path) -> None:
    inputs = ("data", "models/untrained", "models/sft")
    left, killed = copy("left", *inputs), copy("killed", *inputs)
    finish("grpo", left, tmp_path / "left.log", *AHEAD)
    # A probe follows every third step and the last, a checkpoint every fourth.
    assert [row["lag"] for row in rows(left, "grpo")[1:]] == [0, 1, 1, 0, 0, 1, 0, 1, 0, 0]

    log, random = tmp_path / "killed.log", Random(9)
    for step in (0, 4):
        seen = partial(reached, "grpo", step)
        assert kill("grpo", killed, log, seen, random.uniform(0, 0.6), *AHEAD) == KILLED
    assert "resuming after step" in finish("grpo", killed, log, *AHEAD)
    assert_same(left, killed, "models/grpo", "memory", "metrics/grpo.jsonl")


def test_sft_killed_ends_the_same(trained: Path, copy: Copy, tmp_path: Path) -> None:
    killed, log = copy("killed", "data"), tmp_path / "killed.log"
    # Where it has just gone from learning to copy to learning dialogues.
    seen, delay = partial(reached, "sft", 40), Random(8).uniform(0, 0.4)
    assert kill("sft", killed, log, seen, delay) == KILLED
    assert not (killed / "models" / "sft").exists()
    assert "resuming after step" in finish("sft", killed, log)
    assert_same(trained, killed, "models/untrained", "models/sft", "metrics/sft.jsonl")


@pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler")
def test_with_kernels_too(copy: Copy, tmp_path: Path) -> None:
    kernels = ("agent.compile=true", "engine.compile=true")
    left, killed = copy("left", "data"), copy("killed", "data")
    outputs = {
        "sft": ("models/sft", "metrics/sft.jsonl"),
        "grpo": ("models/grpo", "memory", "metrics/grpo.jsonl"),
    }
    for name, written in outputs.items():
        finish(name, left, tmp_path / "left.log", *kernels)
        seen = partial(reached, name, max(1, newest(killed, name)))
        log = tmp_path / "killed.log"
        assert kill(name, killed, log, seen, 0.1, *kernels) == KILLED
        assert "resuming after step" in finish(name, killed, log, *kernels)
        assert_same(left, killed, *written)
