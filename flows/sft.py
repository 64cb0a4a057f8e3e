"""Stage `sft` alone: the model's warm start on the best dialogues."""

from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from tasks.command import main
from tasks.stage import run_alone


@flow(name="sft", flow_run_name="sft {profile}", persist_result=False)
def sft(profile: str = "cpu", overrides: list[str] | None = None) -> State[Any]:
    """The model's warm start on the best dialogues.

    Args:
        profile: name in configs/; `cpu` is the versioned main path.
        overrides: `a.b=c`, laid over the profile; not with `cpu`.
    """
    return run_alone("sft", profile, overrides or [])


if __name__ == "__main__":
    main(sft)
