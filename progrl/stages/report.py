"""Stage `report`: one HTML file that needs nothing but itself."""

from progrl.config import Config
from progrl.files import write_text
from progrl.reporting.page import StageTime, render
from progrl.reporting.sources import gather, stage_time
from progrl.stages.base import NAMES, Context, Metrics, Stage, find_stage, input_hash
from progrl.stages.evaluate import KEPT
from progrl.stages.evaluate import METRICS as EVALUATE
from progrl.stages.grpo import METRICS as GRPO
from progrl.stages.sft import METRICS as SFT

GENERATE = "metrics/generate.json"
PAGE = "reports/index.html"
INPUTS = (GENERATE, SFT, GRPO, EVALUATE, KEPT)


def run(context: Context) -> Metrics:
    """Write reports/index.html."""
    material = gather(context.root, context.project, context.config, INPUTS, _times(context))
    page = context.root / PAGE
    write_text(page, render(material))
    context.recorder.artifact(page)
    return {"report/bytes": float(page.stat().st_size)}


def _times(context: Context) -> list[StageTime]:
    """Of the stages that made these very results, where they ran on this machine."""
    times = []
    for name in NAMES[: NAMES.index("report")]:
        stage = find_stage(name)
        if all((context.root / path).exists() for path in stage.inputs):
            work = input_hash(stage, context.config, context.root)
            time = stage_time(name, context.root / "runs" / name / work)
            times += [time] if time else []
    return times


STAGE = Stage(
    name="report",
    sections=tuple(name for name in Config.model_fields if name != "tracking"),
    inputs=INPUTS,
    outputs=(PAGE,),
    packages=("config", "dialogue", "reporting", "stages", "tracking"),
    run=run,
)
