"""The one place that says how Prefect, MLflow and DVC are set up for this project.

`apply` is called before any of them is imported. What is set already is respected.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from progrl.offline import LOCAL
from progrl.tracking.store import PORT

PROJECT = Path(__file__).resolve().parent.parent
STATE = ".state"
ADDRESS = "127.0.0.1"
PREFECT_PORT, MLFLOW_PORT = "PROGRL_PREFECT_PORT", "PROGRL_MLFLOW_PORT"
PORTS = {PREFECT_PORT: 4200, MLFLOW_PORT: int(PORT)}
"""Of the local servers, by the variable that changes it."""


def port(name: str) -> int:
    """The port that the variable of that name, or else the default, gives."""
    return int(os.environ.get(name) or PORTS[name])


def variables(project: Path = PROJECT) -> dict[str, str]:
    """Everything local, nothing sent to anybody."""
    state = project / STATE
    return {
        **LOCAL,
        "PREFECT_HOME": str(state / "prefect"),
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
        "PREFECT_LOGGING_EXTRA_LOGGERS": "progrl",
        "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false",
        "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "DVC_SITE_CACHE_DIR": str(state / "dvc"),
        "PROGRL_PROJECT": str(project),
        MLFLOW_PORT: str(port(MLFLOW_PORT)),
    }


def apply(project: Path = PROJECT) -> None:
    """Set the variables in this process, for it and its children."""
    for name, value in variables(project).items():
        os.environ.setdefault(name, value)
    # Prefect does not make the folder of its database.
    Path(os.environ["PREFECT_HOME"]).mkdir(parents=True, exist_ok=True)
    url = standing(project)
    if url is not None:
        os.environ.setdefault("PREFECT_API_URL", url)


def standing(project: Path = PROJECT) -> str | None:
    """The address of the Prefect server that `make serve` has started, if it lives."""
    server = running(project, "prefect")
    return f"http://{ADDRESS}:{server.port}/api" if server else None


@dataclass(frozen=True)
class Running:
    """A server's process that lives, and the port that it was given."""

    process: psutil.Process
    port: int | None


def note_of(project: Path, name: str) -> Path:
    """The file that says which process a server is."""
    return project / STATE / "servers" / f"{name}.json"


def running(project: Path, name: str) -> Running | None:
    """The server of that name, if it lives."""
    try:
        told = json.loads(note_of(project, name).read_text())
        process = psutil.Process(told["pid"])
        same = abs(process.create_time() - told["created"]) < 2
        if same and process.status() != psutil.STATUS_ZOMBIE:
            return Running(process, told["port"])
    except (OSError, ValueError, KeyError, psutil.Error):
        pass
    return None
