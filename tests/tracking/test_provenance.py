"""Where a result came from: git, DVC, versions."""

import subprocess
import sys
from pathlib import Path

import pytest

from progrl.config import Config, load_config
from progrl.tracking import provenance
from progrl.tracking.data import changed_stages, data_hash
from progrl.tracking.provenance import configuration_hash
from progrl.tracking.secrets import is_private, redacted


def _git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@localhost"]
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def committed(project: Path) -> Path:
    (project / "progrl").mkdir()
    (project / "progrl" / "a.py").write_text("one = 1\n")
    (project / "notes.txt").write_text("free\n")
    _git(project, "init", "-q")
    _git(project, "add", ".")
    _git(project, "commit", "-qm", "One")
    return project


def test_a_clean_project(committed: Path, config: Config) -> None:
    record = provenance(committed, config)
    assert record["commit"] == _git(committed, "rev-parse", "HEAD")
    assert (record["dirty"], record["diff"], record["dvc_lock"]) == ([], None, None)
    assert record["seed"] == 1
    assert set(record["versions"]) >= {"python", "progrl", "torch", "mlflow"}


def test_what_decides_results_makes_a_project_dirty(committed: Path, config: Config) -> None:
    (committed / "notes.txt").write_text("changed\n")
    assert provenance(committed, config)["dirty"] == []
    (committed / "progrl" / "a.py").write_text("one = 2\n")
    (committed / "progrl" / "b.py").write_text("")
    (committed / "params.yaml").unlink()
    first = provenance(committed, config)
    assert first["dirty"] == ["params.yaml", "progrl/a.py", "progrl/b.py"]
    (committed / "progrl" / "a.py").write_text("one = 3\n")
    second = provenance(committed, config)
    assert second["dirty"] == first["dirty"] and second["diff"] != first["diff"]


def test_staged_changes_count_as_uncommitted(committed: Path, config: Config) -> None:
    (committed / "progrl" / "a.py").write_text("one = 2\n")
    _git(committed, "add", ".")
    assert provenance(committed, config)["dirty"] == ["progrl/a.py"]


def test_outside_of_git(project: Path, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.parent))
    record = provenance(project, config)
    assert (record["commit"], record["dirty"]) == (None, [])


def test_where_runs_are_recorded_does_not_change_the_configuration(project: Path) -> None:
    def hashed(*overrides: str) -> str:
        return configuration_hash(load_config(project / "params.yaml", overrides=overrides))

    assert hashed() == hashed("tracking={kind: none}")
    assert hashed() != hashed("seed=2")


def test_hashes_are_those_of_dvc(tmp_path: Path) -> None:
    """Of a file and of a folder with subfolders and names beyond ASCII."""
    (tmp_path / "data" / "b").mkdir(parents=True)
    (tmp_path / "data" / "b" / "ä.txt").write_text("one")
    (tmp_path / "data" / "a.txt").write_text("two")
    (tmp_path / "data" / "b.txt").write_text("")
    (tmp_path / "file").write_bytes(b"three\r\n")
    run = [sys.executable, "-m", "dvc"]
    subprocess.run([*run, "init", "-q", "--no-scm"], cwd=tmp_path, check=True)
    subprocess.run([*run, "add", "-q", "data", "file"], cwd=tmp_path, check=True)
    for name in ("data", "file"):
        assert f"md5: {data_hash(tmp_path / name)}\n" in (tmp_path / f"{name}.dvc").read_text()


def test_without_dvc_every_stage_counts_as_changed(tmp_path: Path) -> None:
    assert changed_stages(tmp_path, ["sft", "grpo"]) == ["sft", "grpo"]


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "token", "db-password", "HF_TOKEN", "auth"])
def test_private_names(name: str) -> None:
    assert is_private(name)


@pytest.mark.parametrize("name", ["max_tokens", "tokens_per_microbatch", "keep", "authors"])
def test_names_that_are_not_private(name: str) -> None:
    assert not is_private(name)


def test_values_and_logins_are_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "s3cretvalue")
    assert redacted("a s3cretvalue b") == "a (hidden) b"
    assert redacted("at https://me:pw@host/x?a@b") == "at https://host/x?a@b"
