"""What a stage and its tracking know of each other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

Metrics = Mapping[str, float]


class Recorder(Protocol):
    """What a stage may tell the tracking of its run."""

    def metrics(self, values: Metrics, step: int = 0) -> None:
        """Metrics at a step; the same step may be told again after a resume."""
        ...

    def tags(self, values: Mapping[str, str]) -> None:
        """What the run can be found by."""
        ...

    def artifact(self, path: Path, folder: str = "") -> None:
        """A file or folder to keep with the run."""
        ...


class Silent:
    """A recorder that records nothing."""

    def metrics(self, values: Metrics, step: int = 0) -> None:
        """Nothing."""

    def tags(self, values: Mapping[str, str]) -> None:
        """Nothing."""

    def artifact(self, path: Path, folder: str = "") -> None:
        """Nothing."""


class Described(Protocol):
    """What the tracking needs to know of a stage."""

    @property
    def name(self) -> str:
        """As in dvc.yaml."""
        ...

    @property
    def sections(self) -> tuple[str, ...]:
        """Of the configuration."""
        ...

    @property
    def inputs(self) -> tuple[str, ...]:
        """Files and folders, relative to the root."""
        ...
