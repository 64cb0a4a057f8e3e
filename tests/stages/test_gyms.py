"""The profile `gyms`, made small: several training domains from tasks to tables."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from progrl.cli.app import app
from progrl.dialogue.tasks import read_tasks
from progrl.dialogue.trajectories import read_trajectories
from progrl.files import read_json, read_jsonl

pytestmark = pytest.mark.slow
PARAMS = Path(__file__).parents[2] / "params.yaml"
TRAIN = ("intention", "persuade", "telepathy", "travel", "turtle")
HELD_OUT = ("function", "search", "tau")
AGENTS = ["do_nothing", "random", "expert", "untrained", "sft", "grpo"]
SMALL = (
    "processes=1", "embedding={kind: hashed}", "tracking={kind: none}",
    "generate.train_tasks=12", "generate.validation_tasks=4", "generate.test_tasks=4",
    "generate.dialogues=12", "generate.responses=60", "generate.pool=120",
    "agent={vocabulary: 900, hidden: 32, layers: 2, heads: 1, head_dim: 12, ffn: 32}",
    "engine={slots: 40, max_tokens: 12}", "sft.dialogues=40", "sft.steps=4", "sft.batch=8",
    "sft.warmup={steps: 2, batch: 4}", "grpo.steps=2", "grpo.tasks=3", "grpo.group=2",
    "grpo.probe_tasks=10", "grpo.probe_every=2", "grpo.probe_horizon=4", "grpo.keep=last",
    "horizon={kind: fixed, turns: 4}",
    "evaluation.horizon=5", "evaluation.bootstrap=100", "evaluation.examples=1",
)  # fmt: skip


def progrl(*line: str, overrides: tuple[str, ...] = ()) -> Result:
    given = [part for one in (*SMALL, *overrides) for part in ("--set", one)]
    options = ["--params", str(PARAMS), "--profile", "gyms", "--quiet", "--json", *given]
    done = CliRunner().invoke(app, [*line, *options])
    assert done.exit_code == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gyms")
    progrl("run", "--output", str(folder))
    return folder


def test_each_training_gym_has_the_same_share(root: Path) -> None:
    for split, each in (("train", 12), ("validation", 4)):
        played = [d.domain for d in read_trajectories(root / f"data/dialogues/{split}.jsonl")]
        assert {name: played.count(name) for name in played} == dict.fromkeys(TRAIN, each)
    for name in (*TRAIN, *HELD_OUT):
        assert len(read_tasks(root / f"data/tasks/{name}_test.jsonl")) == 4
    assert not (root / "data/tasks/tau_train.jsonl").exists()


def test_the_table_has_every_agent_on_every_gym(root: Path) -> None:
    found = read_json(root / "metrics/evaluate.json")
    assert list(found["benchmarks"]) == [*TRAIN, *HELD_OUT]
    assert set(found["retention"]) == set(HELD_OUT)
    for part in found["benchmarks"].values():
        assert list(part["agents"]) == AGENTS
        for agent in AGENTS:
            figure = part["agents"][agent]["success"]
            assert figure["low"] <= figure["mean"] <= figure["high"]
        assert part["agents"]["do_nothing"]["success"]["mean"] == 0
    page = (root / "reports/index.html").read_text()
    assert all(name in page for name in (*TRAIN, *HELD_OUT, "random"))


def test_runs_give_the_transfer_table(root: Path, tmp_path: Path) -> None:
    output = tmp_path / "transfer.json"
    runs = [f"a={root}", f"b={root}"]
    told = json.loads(progrl("transfer", *runs, "--output", str(output)).stdout)
    assert told == read_json(output)
    assert list(told["benchmarks"]) == [*TRAIN, *HELD_OUT, "all trained on", "all held out"]
    evaluated = read_json(root / "metrics/evaluate.json")["benchmarks"]
    for name, part in told["benchmarks"].items():
        users: dict[str, Any] = part["evaluated_with"]
        assert list(users) == ["a", "b"]
        for agents in (found["agents"] for found in users.values()):
            assert agents["a"] == agents["b"]  # it is the same run
        if name in evaluated:  # the pipeline has evaluated with family a
            expected = evaluated[name]["agents"]["grpo"]["success"]["mean"]
            assert users["a"]["agents"]["a"]["success"]["mean"] == expected


@pytest.mark.parametrize(
    "changes",
    [
        ("grpo.start=untrained",),
        (
            "grpo.credit={kind: em, k: 2.0, combine: {kind: published}}",
            "grpo.score={kind: r2g, gamma: 0.8}",
        ),
        ("grpo.credit={kind: naive, combine: {kind: published}}", "grpo.score={kind: mean}"),
    ],
    ids=("no_sft", "em", "naive"),
)
def test_userrls_variants_train(root: Path, tmp_path: Path, changes: tuple[str, ...]) -> None:
    (tmp_path / "models").mkdir()
    for part in ("data", "models/untrained", "models/sft"):
        (tmp_path / part).symlink_to(root / part)
    progrl("grpo", "--output", str(tmp_path), overrides=changes)
    rows = [row for _, row in read_jsonl(tmp_path / "metrics/grpo.jsonl")]
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert sum(row.get("faults", 0) for row in rows) == 0
    made = read_json(tmp_path / "models/grpo/provenance.json")
    start = "untrained" if changes[0].startswith("grpo.start") else "sft"
    other = read_json(root / "models/grpo/provenance.json")["start"]
    assert (made["start"] == other) == (start == "sft")
