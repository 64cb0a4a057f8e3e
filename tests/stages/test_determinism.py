"""Outputs follow from configuration and inputs alone; inputs that are not sound stop a stage."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from progrl.dialogue.tasks import Task, read_tasks, split_of
from progrl.dialogue.trajectories import read_trajectories, write_trajectories
from progrl.files import file_digest
from tests.stages.conftest import EASY, run

FEW = (
    "generate.train_tasks=60",
    "generate.validation_tasks=12",
    "generate.test_tasks=12",
    "generate.dialogues=40",
    "sft.dialogues=40",
    "sft.steps=4",
    "sft.warmup.steps=2",
)


def generate(root: Path, *overrides: str) -> Path:
    done = run("generate", root, *FEW, *overrides)
    assert done.exit_code == 0, done.output
    return root


def digests(root: Path) -> dict[str, str]:
    """Of all files that the stages leave, by path."""
    files = [p for part in ("data", "metrics") for p in (root / part).rglob("*") if p.is_file()]
    return {p.relative_to(root).as_posix(): file_digest(p) for p in files}


def tasks(root: Path, name: str) -> list[Task]:
    return read_tasks(root / "data" / "tasks" / f"{name}.jsonl")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("first"))


@pytest.fixture
def spoiled(first: Path, tmp_path: Path) -> Path:
    """A copy of `first` to spoil."""
    return Path(shutil.copytree(first, tmp_path / "spoiled"))


def refused(name: str, root: Path, *words: str) -> None:
    """The stage ends with exit code 2 and a message alone, and has written nothing."""
    before = sorted(p.name for p in root.iterdir())
    done = run(name, root, *FEW)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in " ".join(done.stderr.split())
    assert sorted(p.name for p in root.iterdir()) == before


def test_generated_twice_it_is_the_same(first: Path, tmp_path: Path) -> None:
    made = digests(first)
    assert "data/tasks/retail_train.jsonl" in made
    assert "data/dialogues/train.safetensors" in made
    assert "data/users/airline/wordings.jsonl" in made
    assert digests(generate(tmp_path / "second")) == made
    # Once more over what is there already: nothing is added, nothing stays behind.
    assert digests(generate(tmp_path / "second")) == made


def test_another_seed_gives_other_tasks_to_train_on_and_the_same_to_test_on(
    first: Path, tmp_path: Path
) -> None:
    other = generate(tmp_path / "other", "seed=2")
    for name in ("retail_test", "airline_test"):
        assert tasks(other, name) == tasks(first, name)
    same = file_digest(first / "metrics" / "test_tasks.json")
    assert file_digest(other / "metrics" / "test_tasks.json") == same
    for name in ("retail_train", "retail_validation"):
        ids = {task.id for task in tasks(first, name)}
        assert ids.isdisjoint(task.id for task in tasks(other, name))
    # What one seed trains on, another never tests on.
    tests = {task.content_hash for task in tasks(first, "retail_test")}
    assert tests.isdisjoint(task.content_hash for task in tasks(other, "retail_train"))


def test_every_task_lies_in_the_split_that_its_content_gives(first: Path) -> None:
    for path in sorted((first / "data" / "tasks").iterdir()):
        split = path.stem.rsplit("_", 1)[1]
        assert {split_of(task.content_hash) for task in read_tasks(path)} == {split}


def test_the_dialogues_are_of_their_own_split(first: Path) -> None:
    for split in ("train", "validation"):
        ids = {task.id for task in tasks(first, f"retail_{split}")}
        dialogues = read_trajectories(first / "data" / "dialogues" / f"{split}.jsonl")
        assert dialogues
        assert {dialogue.task_id for dialogue in dialogues} <= ids


def add_test_task(root: Path) -> Task:
    """Put a test task among the training tasks; this task."""
    task = tasks(root, "retail_test")[3]
    with (root / "data" / "tasks" / "retail_train.jsonl").open("a") as file:
        file.write(json.dumps(task.to_json()) + "\n")
    return task


def test_grpo_does_not_train_on_a_test_task(spoiled: Path) -> None:
    done = run("sft", spoiled, *FEW)
    assert done.exit_code == 0, done.output
    task = add_test_task(spoiled)
    refused("grpo", spoiled, "share task", task.content_hash)
    assert not (spoiled / "models" / "grpo").exists()


def test_sft_does_not_train_where_splits_share_a_task(spoiled: Path) -> None:
    task = add_test_task(spoiled)
    refused("sft", spoiled, "share task", task.content_hash)


def test_sft_does_not_train_on_a_dialogue_of_another_split(spoiled: Path) -> None:
    task = tasks(spoiled, "retail_test")[3]
    path = spoiled / "data" / "dialogues" / "train.jsonl"
    dialogues = read_trajectories(path)
    dialogues[5].task_id = task.id
    write_trajectories(path, dialogues)
    refused("sft", spoiled, f"{path}, line 6: task {task.id}")


@pytest.mark.slow
def test_a_silent_tool_policy_learns_and_leaves_the_agent_as_it_is(
    copy: Callable[..., Path],
) -> None:
    easy = [override for override in EASY if not override.startswith("orchestration")]
    silent, off = copy("silent", "data"), copy("off", "data")
    for root, more in ((silent, ()), (off, ("orchestration={kind: off}",))):
        for name in ("sft", "grpo"):
            done = run(name, root, *easy, *more)
            assert done.exit_code == 0, done.output
    for model in ("models/sft", "models/grpo"):
        one, other = (root / model / "model.safetensors" for root in (off, silent))
        assert file_digest(one) == file_digest(other)
        assert (silent / model / "tools").is_dir()
        assert not (off / model / "tools").exists()
    learned = [silent / "models" / m / "tools/policy.safetensors" for m in ("sft", "grpo")]
    assert file_digest(learned[0]) != file_digest(learned[1])


def test_threads_by_measurement_are_noted_and_are_what_it_computes_with(tmp_path: Path) -> None:
    measured = generate(tmp_path / "auto", "threads=auto")
    (note,) = (measured / "runs" / "generate").glob("*/threads.json")
    number = json.loads(note.read_text())["threads"]
    assert number >= 1
    assert digests(measured) == digests(generate(tmp_path / "given", f"threads={number}"))


@pytest.mark.parametrize("key", ["agent.compile", "engine.compile"])
def test_without_a_compiler_training_says_so_before_it_begins(
    key: str, first: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run("sft", first, *FEW, f"{key}=true")
    assert done.exit_code == 2 and not (first / "models").exists()
    assert f"{key}: needs a C++ compiler" in " ".join(done.stderr.split())
