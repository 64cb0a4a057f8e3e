"""A sweep: variants by seeds, over processes or a cluster; `progrl ablations` sums it up."""

import argparse
import re
from collections.abc import Sequence
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.logging import get_run_logger
from prefect.states import Crashed, Failed

from progrl.errors import ConfigurationError, ProgrlError
from progrl.tracking import open_pipeline
from tasks.cell import run_base, run_cell
from tasks.command import call
from tasks.lifeline import lifeline
from tasks.process import stop_all
from tasks.runners import RUNNERS, THREADS, make_runner
from tasks.stage import exit_code
from tasks.sweep import chosen, make_sweep, note_settings


@flow(name="ablate", flow_run_name="ablate {name}", persist_result=False)
def ablate(
    name: str,
    profile: str = "sweep",
    seeds: list[int] | None = None,
    variants: list[str] | None = None,
    overrides: list[str] | None = None,
) -> dict[str, Any] | State[Any]:
    """Run what is missing of a sweep. A cell that fails leaves the others alone.

    Args:
        name: of the folder in outputs/sweeps.
        profile: laid over params.yaml, for all cells.
        seeds: one warm start each; 1, 2 and 3 by default.
        variants: presets of configs/ablations, or groups of them, besides `full`; by default all of
            no group that are applicable.
        overrides: `a.b=c`, laid over the profile, for all cells.
    """
    try:
        return _ablate(name, profile, seeds or [1, 2, 3], variants, overrides or [])
    except ProgrlError as error:
        return Failed(message=str(error), data=error.exit_code)
    except BaseException:
        # Threads would go on with their cells otherwise, and hold this program back.
        stop_all()
        raise


def _ablate(
    name: str, profile: str, seeds: list[int], variants: list[str] | None, overrides: list[str]
) -> dict[str, Any] | State[Any]:
    sweep = make_sweep(name, profile, overrides)
    names = chosen(sweep, variants)
    note_settings(sweep, names, seeds)
    given = (name, profile, overrides)
    with (
        open_pipeline(sweep.project, sweep.config(seeds[0]), sweep.root) as run,
        lifeline() as flow,
    ):
        bases = {seed: run_base.submit(*given, seed, run.run, flow) for seed in seeds}
        failed = {f"seed {seed}": state for seed, state in _ends(bases).items() if _bad(state)}
        ready = [seed for seed in seeds if f"seed {seed}" not in failed]
        # Seed by seed: a sweep that is stopped early has whole rows to pair.
        cells = {
            f"{variant} of seed {seed}": run_cell.submit(*given, seed, variant, run.run, flow)
            for seed in ready
            for variant in names
        }
        failed |= {cell: state for cell, state in _ends(cells).items() if _bad(state)}
    done = sum(cell not in failed for cell in cells)
    get_run_logger().info("%d of %d cells are done", done, len(seeds) * len(names))
    if failed:
        lines = [f"  {cell}: {state.message or state.name}" for cell, state in failed.items()]
        told = "\n".join(lines)
        message = f"{len(failed)} failed, {done} cells are done:\n{told}"
        return Failed(message=message, data=exit_code(next(iter(failed.values()))))
    return {"folder": str(sweep.root), "cells": done}


def _ends(futures: "dict[Any, PrefectFuture[Any]]") -> dict[Any, State[Any]]:
    """How each ended; none raises."""
    for future in futures.values():
        future.wait()
    return {key: _end(future) for key, future in futures.items()}


def _end(future: PrefectFuture[Any]) -> State[Any]:
    state = future.state
    return state if state.is_final() else Crashed(message="the cluster has lost its worker")


def _check(name: str, profile: str, variants: list[str], overrides: list[str]) -> None:
    sweep = make_sweep(name, profile, overrides)
    for variant in chosen(sweep, variants):
        sweep.config(0, variant)


def _bad(state: State[Any]) -> bool:
    return not state.is_completed()


def numbers(text: str) -> list[int]:
    """`1,2,5-8` as numbers.

    Raises:
        ConfigurationError: it is no such list, or has a number twice.
    """
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match:
            raise ConfigurationError(f"--seeds {text}: write it as 1,2,5-8.")
        first = int(match[1])
        found += range(first, int(match[2] or first) + 1)
    if not found or len(set(found)) < len(found):
        raise ConfigurationError(f"--seeds {text}: each seed once, at least one.")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a sweep with the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m flows.ablate", description=ablate.__doc__)
    parser.add_argument("--name", default="ablations", help="folder in outputs/sweeps")
    parser.add_argument("--profile", default="sweep", help="a name in configs/ or a YAML file")
    parser.add_argument("--seeds", default="1-3", help="as 1,2,5-8")
    parser.add_argument("--variants", default="", help="presets, or a group: userrl")
    parser.add_argument("--workers", type=int, default=1, help="cells at a time, one core each")
    parser.add_argument("--runner", choices=RUNNERS, default=THREADS, help="what cells run on")
    parser.add_argument("--address", help="of a Dask cluster that stands, as HOST:PORT")
    parser.add_argument("--set", dest="overrides", metavar="A.B=C", action="append", default=[])
    options = parser.parse_args(arguments)
    try:
        seeds = numbers(options.seeds)
        if options.workers < 1:
            raise ConfigurationError("--workers: at least 1.")
        runner = make_runner(options.runner, options.workers, options.address)
    except ConfigurationError as error:
        parser.exit(error.exit_code, f"{error}\n")
    names = [name for name in options.variants.split(",") if name]
    given = [options.name, options.profile, seeds, names or None, options.overrides]
    flow = ablate.with_options(task_runner=runner)
    call(flow, given, check=lambda: _check(options.name, options.profile, names, options.overrides))


if __name__ == "__main__":
    main()
