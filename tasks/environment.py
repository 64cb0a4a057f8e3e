"""The one place that says how Prefect, MLflow and DVC are set up for this project.

`apply` is called before any of them is imported. What is set already is respected.
"""

import json
import os
from pathlib import Path

from progrl.cli.stages import LOCAL

PROJECT = Path(__file__).resolve().parent.parent
STATE = ".state"
ADDRESS = "127.0.0.1"
PREFECT_PORT, MLFLOW_PORT = "PROGRL_PREFECT_PORT", "PROGRL_MLFLOW_PORT"
PORTS = {PREFECT_PORT: 4200, MLFLOW_PORT: 5005}
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
    import psutil

    note = project / STATE / "servers" / "prefect.json"
    try:
        told = json.loads(note.read_text())
        alive = abs(psutil.Process(told["pid"]).create_time() - told["created"]) < 2
    except (OSError, ValueError, KeyError, psutil.Error):
        return None
    return f"http://{ADDRESS}:{told['port']}/api" if alive else None
