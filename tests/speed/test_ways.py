"""Each way of doing a job does it, at a workload of a blink."""

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from progrl.agent import native
from progrl.config import load_config
from speed.compare import PEER, VLLM, Way, WayFailed, compare, kernels, started
from speed.worker import find, serve
from speed.workload import Shape, Workload

TINY = Workload(8, 3, 6, 4, 4, Shape(64, 32, 2, 2, 2, 16, 32))
PARAMS = Path(__file__).parents[2] / "params.yaml"
compiler = pytest.mark.skipif(native.find_compiler() is None, reason="needs a C++ compiler")
WAYS: list[tuple[str, dict[str, Any], dict[str, float]]] = [
    ("ours.rollout", {}, {"tokens": 96}),
    ("ours.rollout", {"latency": 0.001, "dtype": "bfloat16"}, {"tokens": 96}),
    ("hf.reread", {}, {"tokens": 96}),
    ("hf.cached", {}, {"tokens": 96}),
    ("sft.train", {}, {"tokens": 200}),
    ("hf.train", {"batch": 3}, {"tokens": 200}),
    ("step.grpo", {}, {}),
    ("domain.retail", {}, {}),
    ("machine.bounds", {"side": 16, "floats": 256}, {}),
]


COMPILED = [
    pytest.param(way, {**options, "compile": True}, facts, marks=compiler)
    for way, options, facts in WAYS
    if way in {"ours.rollout", "sft.train", "step.grpo"} and "dtype" not in options
]


@pytest.mark.parametrize(("way", "options", "facts"), [*WAYS, *COMPILED])
def test_a_way_does_its_job_as_often_as_asked(
    way: str, options: dict[str, Any], facts: dict[str, float]
) -> None:
    answers = io.StringIO()
    spec = {"way": way, "work": TINY.to_json(), "options": options}
    serve(spec, io.StringIO("\n\n"), answers)
    ready, *readings = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert ready == {"ready": True} and len(readings) == 2
    for reading in readings:
        assert reading.items() >= facts.items()
        assert reading["peak_mib"] >= reading["idle_mib"] > 0
        numbers = [n for n in reading.values() if not isinstance(n, list)]
        assert all(math.isfinite(n) and n >= 0 for n in numbers)


@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=compiler)])
def test_turns_read_what_is_new_alone(compile: bool) -> None:
    work = replace(TINY, shape=Shape(64, 32, 1, 2, 1, 16, 32))
    facts = find("ours.turns")(work, compile=compile)()
    # The token that was sampled last is read with what follows it.
    assert facts["turn_read"] == [6, 7, 7]
    assert len(facts["turn_cpu"]) == 3 and len(facts["attention"]) == 2


def test_a_step_of_grpo_has_episodes_and_an_update() -> None:
    from speed.ways import step

    work = TINY.sized(turns=2)
    config = step.config_of(work, "tree", compile=False)
    assert (config.grpo.tasks, config.grpo.group, config.horizon.turns) == (2, 4, 2)
    job = step.grpo(work)
    spent = [job() for _ in range(4)]
    # In four steps of two groups of four, by coin, some group has both outcomes.
    assert all(row["rollout"] > 0 for row in spent)
    assert any(row["update"] > 0 for row in spent)


def test_all_ways_have_the_same_model_and_it_is_the_default_jobs() -> None:
    ours, theirs = find("ours.model_of")(TINY), find("hf.model_of")(TINY)
    for (name, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert torch.equal(a, b), name
    assert sum(p.numel() for p in ours.parameters()) == TINY.shape.parameters
    agent: Any = load_config(PARAMS).agent
    shape = Shape()
    for name in ("vocabulary", "hidden", "layers", "heads", "head_dim", "ffn"):
        assert getattr(shape, name) == getattr(agent, name)
    assert round(shape.parameters / 1e6, 1) == 0.4


def test_conversations_are_the_same_each_time() -> None:
    contexts, dialogues = TINY.contexts(), TINY.dialogues()
    assert len(contexts) == 8 and {len(turn) for c in contexts for turn in c} == {6}
    assert contexts == TINY.contexts() and contexts[0] != contexts[1]
    assert [len(ids) for ids, _ in dialogues] == [20, 30] * 4
    assert sum(dialogues[0][1]) == 8


def test_processes_take_turns_and_the_first_round_is_left_out() -> None:
    ways = {n: Way("machine.bounds", TINY, {"side": 8, "floats": 64}) for n in ("a", "b")}
    readings = compare(ways, 2)
    assert {name: len(rows) for name, rows in readings.items()} == {"a": 2, "b": 2}


def test_what_ends_a_process_is_told() -> None:
    with (
        pytest.raises(WayFailed, match=r"nowhere.way: .*No module named"),
        started(Way("nowhere.way", TINY)),
    ):
        pass


@pytest.mark.slow
@pytest.mark.skipif(not Path(PEER).exists(), reason="make setup-speed was not run")
def test_trl_samples_as_many_tokens_in_as_many_turns() -> None:
    with started(Way("trl.grpo", TINY, {"batch": 4}, PEER)) as run:
        reading = run()
    assert (reading["length"], reading["turns"]) == (TINY.turns * TINY.sampled, TINY.turns)


@pytest.mark.slow
@pytest.mark.skipif(not Path(VLLM).exists(), reason="make setup-vllm was not run")
def test_vllm_plays_the_same_conversations() -> None:
    shape = Shape(64, 64, 2, 2, 2, 32, 64)  # vLLM has no kernels for narrower heads
    with started(Way("vllm.rollout", Workload(4, 2, 6, 4, 4, shape), python=VLLM)) as run:
        assert run()["tokens"] == 32


def test_without_a_compiler_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "find_compiler", lambda: None)
    assert kernels() == {"compile": False}
