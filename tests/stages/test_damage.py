"""Files of a run that were damaged: each is told of by name, or does not matter."""

import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from progrl.agent.model import check_folder
from progrl.config import load_config
from progrl.errors import CheckpointError, DataError
from progrl.files import exclusive, write_json
from progrl.stages.base import find_stage, is_done
from progrl.stages.parts import Timings
from tests.stages.conftest import run

FEW = (
    "generate.train_tasks=40",
    "generate.validation_tasks=8",
    "generate.test_tasks=8",
    "generate.dialogues=30",
    "sft.dialogues=30",
    "sft.steps=2",
    "sft.warmup.steps=1",
    "grpo.steps=2",
    "grpo.checkpoint_every=1",
    "grpo.probe_every=1",
    "grpo.probe_tasks=8",
    "grpo.keep=best",
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("trained")
    for name in ("generate", "sft", "grpo"):
        done = run(name, root, *FEW)
        assert done.exit_code == 0, done.output
    return root


@pytest.fixture
def root(trained: Path, tmp_path: Path) -> Path:
    """A copy of `trained` to damage."""
    return Path(shutil.copytree(trained, tmp_path / "root"))


def refused(root: Path, *words: str) -> None:
    done = run("grpo", root, *FEW)
    said = " ".join(done.stderr.split())
    assert done.exit_code == 2 and "Traceback" not in said, said
    for word in words:
        assert word in said


@pytest.mark.parametrize("level", ['"x"', "NaN", "7", "null"])
def test_a_task_whose_level_is_none(root: Path, level: str) -> None:
    path = root / "data" / "tasks" / "retail_train.jsonl"
    first, rest = path.read_text().split("\n", 1)
    path.write_text(first.replace('"level":1', f'"level":{level}') + "\n" + rest)
    refused(root, "retail_train.jsonl, line 1")


def test_no_validation_tasks(root: Path) -> None:
    (root / "data" / "tasks" / "retail_validation.jsonl").write_text("")
    refused(root, "validation")


@pytest.mark.parametrize("damage", ["cut", "bit", "other", "gone"])
def test_the_best_weights_are_those_that_were_kept(root: Path, damage: str) -> None:
    (best,) = (root / "runs" / "grpo").glob("*/checkpoints/best-*.safetensors")
    whole = best.read_bytes()
    match damage:
        case "cut":
            best.write_bytes(whole[:900])
        case "bit":
            best.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        case "other":
            save_file({k: v + 1 for k, v in load_file(best).items()}, best)
        case "gone":
            best.unlink()
    before = (root / "models" / "grpo" / "model.safetensors").read_bytes()
    refused(root, "best weights cannot be used", str(best))
    assert (root / "models" / "grpo" / "model.safetensors").read_bytes() == before


def test_a_manifest_that_lists_nothing_vouches_for_nothing(root: Path) -> None:
    write_json(root / "models" / "sft" / "manifest.json", {})
    with pytest.raises(CheckpointError, match="does not list"):
        check_folder(root / "models" / "sft")


@pytest.mark.parametrize("content", ["{}", "{", "[]"])
def test_notes_that_cannot_be_read_are_none(root: Path, content: str) -> None:
    config = load_config(profile="tiny", overrides=["tracking.kind=none", *FEW])
    assert is_done(find_stage("sft"), config, root)
    for note in (root / "runs" / "sft").glob("*/done.json"):
        note.write_text(content)
    assert not is_done(find_stage("sft"), config, root)


def test_timings_that_cannot_be_read_are_forgotten(tmp_path: Path) -> None:
    (tmp_path / "timings.json").write_text("{")
    assert Timings(tmp_path).save({"rollout": 2.0})["rollout"] == 2.0


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(DataError, match="could not be written"),
        exclusive(tmp_path / "file" / "x" / "a.lock", "It"),
    ):
        pass
