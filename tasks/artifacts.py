"""What a flow run shows on its page: results, the horizon, where the rest is."""

import base64
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup
from prefect import task
from prefect.artifacts import create_image_artifact, create_link_artifact, create_markdown_artifact

from progrl.files import canonical, read_jsonl
from progrl.reporting import markdown
from progrl.reporting.figures import grpo_figures
from progrl.tracking import provenance
from tasks.job import make_job
from tasks.summary import places

_STYLE = """
svg { font-family: sans-serif; background: #fff; } text { font-size: 11px; fill: #333; }
.end { text-anchor: end; } .middle { text-anchor: middle; } .grid { stroke: #ddd; }
.line { fill: none; stroke-width: 2; } .c-soft { --c: #9aa7b8; } .c-1 { --c: #1f6fb5; }
.line { stroke: var(--c); } .dot { fill: var(--c); } .guide { stroke: #999; stroke-dasharray: 2 4; }
"""


@task(name="publish", task_run_name="publish", persist_result=False)
def publish(profile: str, overrides: list[str], summary: dict[str, Any]) -> None:
    """Publish the results of a job as artifacts of the flow run."""
    job = make_job(profile, overrides)
    record = provenance(job.project, job.config)
    create_markdown_artifact(
        key="results", markdown=_results(summary, record), description=f"Profile {profile}"
    )
    rows = [row for _, row in read_jsonl(job.root / "metrics" / "grpo.jsonl")]
    for figure in grpo_figures(rows):
        if figure.title in ("Horizon", "Success") and figure.chart is not None:
            create_image_artifact(
                key=figure.title.lower(),
                image_url=picture(figure.chart),
                description=figure.caption,
            )
    if summary["tracking"]:
        create_link_artifact(key="mlflow", link=summary["tracking"], link_text="The run in MLflow")


def picture(chart: Markup) -> str:
    """A chart as an address that holds it, with the little style that it needs alone."""
    head, inner = str(chart).split(">", 1)
    start = head.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg" width="720"', 1)
    text = f"{start}><style>{_STYLE}</style>{inner}"
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


def _results(summary: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    lines = "".join(f"* {name}: {text}\n" for name, text in places(summary).items())
    return f"{markdown(summary['rows'])}\n{lines}\nProvenance: `{canonical(record)}`\n"
