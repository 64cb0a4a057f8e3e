"""The whole pipeline: generate, sft, grpo, evaluate, report, register."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.states import Failed

from progrl.errors import ProgrlError
from progrl.stages import NAMES
from progrl.tracking import open_pipeline
from tasks.artifacts import publish
from tasks.command import main
from tasks.job import Job, make_job
from tasks.stage import CACHED, StageFailed, recorded, run_stage
from tasks.summary import places, show, summarise, wide


@flow(name="pipeline", flow_run_name="pipeline {profile}", persist_result=False)
def pipeline(
    profile: str = "cpu", overrides: list[str] | None = None
) -> dict[str, Any] | State[Any]:
    """Run all stages, skip what is unchanged, publish the results.

    Args:
        profile: name in configs/; `cpu` is the versioned main path.
        overrides: `a.b=c`, laid over the profile; not with `cpu`.
    """
    try:
        job = make_job(profile, overrides or [])
        return _pipeline(job)
    except StageFailed as error:
        return Failed(message=str(error), data=error.code)
    except ProgrlError as error:
        return Failed(message=str(error), data=error.exit_code)


def _pipeline(job: Job) -> dict[str, Any]:
    logger = get_run_logger()
    with open_pipeline(job.project, job.config, job.root) as run:
        for name in NAMES:
            state = run_stage(name, job.profile, list(job.overrides), run.run, return_state=True)
            if not state.is_completed():
                raise StageFailed(name, state)
            told = recorded(job, name)
            if state.name == CACHED and told:
                run.recorder.tags({f"progrl.stage.{name}": told["run"]})
        summary = summarise(job, run.run, run.experiment)
        publish(job.profile, list(job.overrides), summary)
    for name, text in places(summary).items():
        logger.info("%s: %s", name, text)
    return summary


if __name__ == "__main__":
    main(pipeline, lambda summary: show(summary, wide()))
