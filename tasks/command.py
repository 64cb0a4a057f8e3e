"""`python -m flows.NAME`: a flow as a program, with exit codes and one message."""

import argparse
import atexit
import gc
import sys
from collections.abc import Callable, Sequence
from typing import Any, cast

from prefect import Flow
from prefect.client.schemas.objects import State

from progrl.errors import ProgrlError
from tasks.job import make_job
from tasks.stage import exit_code
from tasks.temporary import use_prefect_server


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
    given = [options.profile, options.overrides]
    call(flow, given, shown, lambda: make_job(*given))


def call(
    flow: "Flow[..., Any]",
    arguments: Sequence[Any],
    shown: Callable[[Any], None] | None = None,
    check: Callable[[], object] = lambda: None,
) -> None:
    """Run a flow as the whole of a program; exits non-zero unless it completed.

    Args:
        shown: shows what the flow returns.
        check: raises where the arguments are wrong: said at once, before any server starts.
    """
    atexit.register(gc.freeze)  # no search for cycles among all objects at the end
    try:
        check()
        use_prefect_server()
        run = cast("Callable[..., State[Any]]", flow)
        state = run(*arguments, return_state=True)
    except ProgrlError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    if not state.is_completed():
        sys.stderr.write(f"\n{state.message or state.name}\n")
        sys.exit(exit_code(state))
    if shown is not None:
        shown(state.result())
