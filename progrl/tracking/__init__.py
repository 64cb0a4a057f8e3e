"""Where runs and models are recorded; the only package that imports MLflow, and that lazily."""

from progrl.tracking.contracts import Metrics, Recorder, Silent
from progrl.tracking.provenance import provenance
from progrl.tracking.runs import Pipeline, open_pipeline, open_run, run_of
from progrl.tracking.store import page, tracking_uri
from progrl.tracking.zombies import Zombie, end_zombies, zombie_runs

__all__ = [
    "Metrics",
    "Pipeline",
    "Recorder",
    "Silent",
    "Zombie",
    "end_zombies",
    "open_pipeline",
    "open_run",
    "page",
    "provenance",
    "run_of",
    "tracking_uri",
    "zombie_runs",
]
