"""Stage `evaluate` alone: all agents on the held-out tasks."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from tasks.command import main
from tasks.stage import run_alone


@flow(name="evaluate", flow_run_name="evaluate {profile}", persist_result=False)
def evaluate(profile: str = "cpu", overrides: list[str] | None = None) -> State[Any]:
    """All agents on the held-out tasks.

    Args:
        profile: name in configs/; `cpu` is the versioned main path.
        overrides: `a.b=c`, laid over the profile; not with `cpu`.
    """
    return run_alone("evaluate", profile, overrides or [])


if __name__ == "__main__":
    main(evaluate)
