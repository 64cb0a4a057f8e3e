"""Stage `generate` alone: tasks, user wordings and expert dialogues."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from tasks.command import main
from tasks.stage import run_alone


@flow(name="generate", flow_run_name="generate {profile}", persist_result=False)
def generate(profile: str = "cpu", overrides: list[str] | None = None) -> State[Any]:
    """Tasks, user wordings and expert dialogues.

    Args:
        profile: name in configs/; `cpu` is the versioned main path.
        overrides: `a.b=c`, laid over the profile; not with `cpu`.
    """
    return run_alone("generate", profile, overrides or [])


if __name__ == "__main__":
    main(generate)
