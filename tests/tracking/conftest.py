"""A project of nothing but parameters, and a stage of no work."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from progrl.config import Config, load_config
from progrl.stages.base import Context, Metrics, Stage
from progrl.tracking.store import Store, open_store


@pytest.fixture
def project(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("PROGRL_PIPELINE_RUN", raising=False)
    shutil.copyfile(root / "params.yaml", tmp_path / "params.yaml")
    return tmp_path


@pytest.fixture
def config(project: Path) -> Config:
    return load_config(project / "params.yaml")


@pytest.fixture
def store(project: Path, config: Config) -> Store:
    return open_store(project, "progrl")


def make_stage(run: Callable[[Context], Metrics], name: str = "sft") -> Stage:
    return Stage(name, ("seed", "sft"), (), (), ("stages/base.py",), run)
