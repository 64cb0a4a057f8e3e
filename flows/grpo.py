"""Stage `grpo` alone: reinforcement within a growing horizon."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from tasks.command import main
from tasks.stage import run_alone


@flow(name="grpo", flow_run_name="grpo {profile}", persist_result=False)
def grpo(profile: str = "cpu", overrides: list[str] | None = None) -> State[Any]:
    """Reinforcement within a growing horizon.

    Args:
        profile: name in configs/; `cpu` is the versioned main path.
        overrides: `a.b=c`, laid over the profile; not with `cpu`.
    """
    return run_alone("grpo", profile, overrides or [])


if __name__ == "__main__":
    main(grpo)
