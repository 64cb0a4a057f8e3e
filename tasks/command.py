"""`python -m flows.NAME`: a flow as a program, with exit codes and one message."""

import argparse
import sys
from collections.abc import Callable
from typing import Any

from prefect import Flow
from prefect.client.schemas.objects import State

from tasks.stage import exit_code


def main(flow: "Flow[..., Any]", shown: Callable[[Any], None] | None = None) -> None:
    """Run a flow with the options of the command line; exits non-zero unless it completed.

    Args:
        shown: shows what the flow returns.
    """
    parser = argparse.ArgumentParser(prog=f"python -m flows.{flow.name}", description=flow.__doc__)
    parser.add_argument("--profile", default="cpu", help="a name in configs/ or a YAML file")
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="A.B=C",
        action="append",
        default=[],
        help="one key laid over the profile; not with the profile cpu",
    )
    options = parser.parse_args()
    state = _run(flow, options.profile, options.overrides)
    if not state.is_completed():
        sys.stderr.write(f"\n{state.message or state.name}\n")
        sys.exit(exit_code(state))
    if shown is not None:
        shown(state.result())


def _run(flow: "Flow[..., Any]", profile: str, overrides: list[str]) -> State[Any]:
    try:
        state: State[Any] = flow(profile, overrides, return_state=True)  # type: ignore[assignment]
    except KeyboardInterrupt:
        sys.exit(130)
    return state
