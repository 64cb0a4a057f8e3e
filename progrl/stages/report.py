"""Stage `report`: one HTML file that needs nothing but itself."""

from progrl.files import write_text
from progrl.reporting.artifacts import write_artifacts
from progrl.reporting.page import render
from progrl.reporting.sources import gather, stage_times
from progrl.stages.base import NAMES, Context, Metrics
from progrl.stages.definitions import PAGE

BEFORE = NAMES[: NAMES.index("report")]


def run(context: Context) -> Metrics:
    """Write reports/index.html; the paper's figures and tables go to the tracking as files too."""
    times = stage_times(context.root, BEFORE)
    material = gather(context.root, context.project, context.config, times)
    page = context.root / PAGE
    write_text(page, render(material))
    context.recorder.artifact(page)
    kept = context.work / "report"
    write_artifacts(kept, material)
    context.recorder.artifact(kept, "report")
    return {"report/bytes": float(page.stat().st_size)}
