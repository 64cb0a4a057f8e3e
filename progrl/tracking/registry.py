"""The model registry: versions of a model, and which of them is challenger or champion."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from progrl.config.models import MlflowTracking
from progrl.errors import TrackingError
from progrl.files import read_json
from progrl.tracking.secrets import redacted
from progrl.tracking.store import Store, open_store, reaching

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion

CHALLENGER, CHAMPION = "challenger", "champion"

_CONTENT = "progrl.content"


@dataclass(frozen=True, slots=True)
class Version:
    """A registered version of a model.

    Attributes:
        number: of the version, from 1.
        model: id of the logged model whose artifacts it is.
        tags: what it was registered with.
    """

    number: str
    model: str
    tags: Mapping[str, str]


@dataclass(frozen=True)
class Registry:
    """The versions of one registered model.

    Attributes:
        store: where they are.
        name: of the registered model.
    """

    store: Store
    name: str

    @classmethod
    def open(cls, project: Path, tracking: MlflowTracking) -> "Registry":
        """The registry of the configured store and model; TrackingError if out of reach."""
        return cls(open_store(project, tracking.experiment), tracking.model)

    def find(self, content: str) -> Version | None:
        """The version with this content, if it was registered before."""
        with reaching(self.store.uri):
            found = self.store.client.search_model_versions(f"name = '{self.name}'")
        versions = [_version(v) for v in found if v.tags.get(_CONTENT) == content]
        return max(versions, key=lambda v: int(v.number), default=None)

    def named(self, alias: str) -> Version | None:
        """The version that has the alias."""
        with reaching(self.store.uri):
            found = self.store.client.search_registered_models(f"name = '{self.name}'")
            number = found[0].aliases.get(alias) if found else None
            if number is None:
                return None
            return _version(self.store.client.get_model_version(self.name, str(number)))

    def add(
        self, run: str, content: str, folders: Sequence[Path], tags: Mapping[str, str]
    ) -> Version:
        """Log a model from files and register it as a new version.

        Args:
            run: the run that it belongs to.
            content: a hash of what it consists of, by which `find` finds it.
            folders: what they hold becomes the model's artifacts.
            tags: of the version.
        """
        client = self.store.client
        all_tags = {key: redacted(value) for key, value in {**tags, _CONTENT: content}.items()}
        with reaching(self.store.uri):
            made = client.create_logged_model(
                self.store.experiment, self.name, run, all_tags, model_type="agent"
            )
            try:
                for folder in folders:
                    client.log_model_artifacts(made.model_id, str(folder))
            except BaseException:
                client.finalize_logged_model(made.model_id, "FAILED")
                raise
            client.finalize_logged_model(made.model_id, "READY")
            if not client.search_registered_models(f"name = '{self.name}'"):
                client.create_registered_model(
                    self.name, description="Agents trained by progrl; see each version's README.md."
                )
            source = f"models:/{made.model_id}"
            version = client.create_model_version(
                self.name, source, run, all_tags, model_id=made.model_id
            )
        return _version(version)

    def measure(self, version: Version, run: str, values: Mapping[str, float]) -> None:
        """Attach figures to a version's model and to the run that it belongs to."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [
            Metric(key, value, now, 0, model_id=version.model, run_id=run)
            for key, value in sorted(values.items())
        ]
        with reaching(self.store.uri):
            self.store.client.log_batch(run, metrics=metrics)

    def name_version(self, alias: str, version: Version) -> None:
        """Give the alias to a version, taking it from any other."""
        with reaching(self.store.uri):
            self.store.client.set_registered_model_alias(self.name, alias, version.number)

    def artifact(self, version: Version, name: str) -> Any:
        """The value in a JSON artifact of a version.

        Raises:
            TrackingError: the version has no such artifact.
        """
        import tempfile

        from mlflow.artifacts import download_artifacts

        client = self.store.client
        with reaching(self.store.uri), tempfile.TemporaryDirectory() as folder:
            location = client.get_logged_model(version.model).artifact_location
            if location is None:
                raise TrackingError(f"{self.name} version {version.number} has no artifacts.")
            path = download_artifacts(
                artifact_uri=f"{location.rstrip('/')}/{name}",
                dst_path=folder,
                tracking_uri=self.store.uri,
            )
            return read_json(Path(path))


def _version(found: "ModelVersion") -> Version:
    # A local store gives the id of the logged model back as the source alone.
    model = found.model_id or str(found.source).removeprefix("models:/")
    return Version(str(found.version), model, dict(found.tags))
