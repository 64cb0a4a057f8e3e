"""The MLflow store: where it is, how it is opened, how it is shown."""

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from progrl.errors import TrackingError
from progrl.tracking.secrets import redacted

if TYPE_CHECKING:
    from mlflow import MlflowClient

_URI = "MLFLOW_TRACKING_URI"
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
}
"""Nothing is sent to anybody, and a server that is away is noticed in seconds; a value that is
set already is respected."""

PORT = "5005"
"""Where `make serve` shows the local store, unless PROGRL_MLFLOW_PORT says otherwise; macOS itself
holds MLflow's usual 5000."""

AWAY = "cannot be reached"
"""Stands in the message of an error that may be gone later."""

_KIND = {"mlflow.experimentKind": "custom_model_development"}
"""Of the page that MLflow shows for an experiment: training runs, not traces."""

_AWAY = re.compile(r"API request to .* failed with exception|database is locked|error code (429|5)")


@dataclass(frozen=True)
class Store:
    """An open store and the experiment that runs are kept in.

    Attributes:
        uri: the tracking URI.
        experiment: the experiment's id.
        client: speaks to it; its calls may raise what `reaching` turns into a TrackingError.
        lock: file to hold while something is looked for and made if missing.
    """

    uri: str
    experiment: str
    client: "MlflowClient"
    lock: Path


def tracking_uri(project: Path) -> str:
    """MLFLOW_TRACKING_URI where it is set, else a SQLite file in the project's `.state/`."""
    return os.environ.get(_URI) or _local(project)


def _local(project: Path) -> str:
    return f"sqlite:///{project.resolve() / '.state' / 'mlflow.db'}"


def exists(project: Path) -> bool:
    """There is a store to look into: a server's is supposed to be there."""
    return tracking_uri(project) != _local(project) or (project / ".state" / "mlflow.db").exists()


def open_store(project: Path, experiment: str) -> Store:
    """Open the store, making its schema and the experiment where they are missing.

    Raises:
        TrackingError: the store cannot be reached, or is no MLflow store.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    uri = tracking_uri(project)
    state = project.resolve() / ".state"
    lock = state / "mlflow.lock"
    state.mkdir(parents=True, exist_ok=True)
    with reaching(uri), FileLock(lock):
        import mlflow
        from mlflow import MlflowClient

        # Some calls of a client look at these instead of at the client's own.
        given = os.environ.get(_URI)
        mlflow.set_tracking_uri(uri)
        if given is None:  # it has set the variable, which would hold for other projects too
            os.environ.pop(_URI, None)
        mlflow.set_registry_uri(uri)
        client = MlflowClient(tracking_uri=uri, registry_uri=uri)
        found = client.get_experiment_by_name(experiment)
        if found is None:
            # A server keeps artifacts where it was told to; the local store keeps them beside it.
            folder = (state / "mlartifacts").as_uri() if uri == _local(project) else None
            identity = client.create_experiment(experiment, folder, _KIND)
        elif found.lifecycle_stage != "active":
            raise TrackingError(
                f"The experiment {experiment!r} was deleted in {redacted(uri)}. Restore it "
                "(`mlflow experiments restore`), or choose another: --set tracking.experiment=NAME."
            )
        else:
            identity = found.experiment_id
    return Store(uri, identity, client, lock)


@contextlib.contextmanager
def reaching(uri: str) -> Iterator[None]:
    """Turn whatever a store may raise into a TrackingError that names the store."""
    from mlflow.exceptions import MlflowException
    from requests.exceptions import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (MlflowException, RequestException, SQLAlchemyError, OSError) as error:
        reason = redacted(" ".join(str(error).split()))[:400]
        store = f"The MLflow store {redacted(uri)}"
        if isinstance(error, RequestException) or _AWAY.search(reason):
            raise TrackingError(
                f"{store} {AWAY}: {reason}. Start its server or mend MLFLOW_TRACKING_URI; without "
                "that variable the store is a local file."
            ) from error
        raise TrackingError(f"{store} refused: {reason}. `progrl doctor` may know more.") from error


def page(project: Path, experiment: str, run: str = "") -> str:
    """The address of an experiment's or a run's page, once a server shows the store."""
    uri = redacted(tracking_uri(project))
    local = f"http://127.0.0.1:{os.environ.get('PROGRL_MLFLOW_PORT') or PORT}"
    base = uri.rstrip("/") if uri.startswith(("http://", "https://")) else local
    return f"{base}/#/experiments/{experiment}" + (f"/runs/{run}" if run else "")
