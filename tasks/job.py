"""What a flow is asked to do: which profile, where, and with what changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from progrl.config import Config, find_profile, load_config
from progrl.errors import ConfigurationError
from tasks.environment import PROJECT

MAIN = "cpu"
"""The profile whose results DVC keeps, at the project's root."""


@dataclass(frozen=True)
class Job:
    """A run of the pipeline, or of a stage of it.

    Attributes:
        profile: name in configs/, or path of a YAML file.
        overrides: `a.b=c`, laid over it.
        config: all of it, resolved.
        project: the repository.
        root: folder of inputs and outputs.
    """

    profile: str
    overrides: tuple[str, ...]
    config: Config
    project: Path
    root: Path

    @property
    def main(self) -> bool:
        """The versioned main path, which DVC runs."""
        return self.root == self.project


def make_job(profile: str, overrides: Sequence[str] = (), project: Path = PROJECT) -> Job:
    """The job that a profile and overrides describe.

    Raises:
        ConfigurationError: the configuration is wrong, or overrides are given for the main path,
            whose results must follow from what is committed.
    """
    config = load_config(project / "params.yaml", profile, overrides)
    if profile != MAIN:
        find_profile(project / "params.yaml", profile)
        root = project / "outputs" / Path(profile).stem
        return Job(profile, tuple(overrides), config, project, root)
    if overrides:
        raise ConfigurationError(
            f"The profile {MAIN!r} is the versioned main path, which follows from params.yaml "
            f"alone: it takes no overrides ({', '.join(overrides)}). Edit params.yaml, or make a "
            "profile of your own in configs/ and run that."
        )
    return Job(profile, (), config, project, project)
