"""`python -m speed`: progrl beside its peers, as a table, and as JSON alone with --json."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from progrl.errors import ProgrlError
from progrl.files import write_json, write_text
from speed.compare import ROOT, WayFailed
from speed.measures import pipeline, rollout, scaling, step, turns
from speed.plan import Found, Plan
from speed.report import GOALS, markdown, met

Measure = Callable[[Plan], Found]
MEASURES: dict[str, Measure] = {
    "rollout": rollout.measure,
    "growth": turns.growth,
    "overlap": turns.overlap,
    "grpo": step.grpo,
    "training": step.training,
    "pipeline": pipeline.measure,
}
FULL: dict[str, Measure] = {"scaling": scaling.measure}


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line's options."""
    parser = argparse.ArgumentParser(prog="python -m speed", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="about ten minutes (the default)")
    size.add_argument("--full", action="store_true", help="more rounds, and how things grow")
    parser.add_argument("--json", action="store_true", help="JSON alone on standard output")
    parser.add_argument("--threads", type=int, default=1, help="of each way")
    parser.add_argument("--rounds", type=int, help="turns that the ways take (3, or 5 with --full)")
    names = [*MEASURES, *FULL]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--output", type=Path, default=ROOT / "outputs" / "speed", help="folder of the results"
    )
    options = parser.parse_args(arguments)
    if options.threads < 1 or (options.rounds is not None and options.rounds < 1):
        parser.error("--threads and --rounds: at least 1")
    return options


def run(plan: Plan, names: list[str], tell: Callable[[str], None]) -> dict[str, Any]:
    """Measure; what fails leaves null and a note behind."""
    start, busy = time.perf_counter(), os.getloadavg()[0]
    found = Found(dict.fromkeys(GOALS))
    for name in names:
        begun = time.perf_counter()
        try:
            found.add({**MEASURES, **FULL}[name](plan))
        except WayFailed as error:
            found.notes.append(f"{name} failed: {error}")
        tell(f"{name}: {time.perf_counter() - begun:.0f} s")
    goals = {name: met(name, value) for name, value in found.figures.items()}
    return {
        **found.figures,
        "goals_met": {name: reached for name, reached in goals.items() if reached is not None},
        "mode": "full" if plan.full else "quick",
        "seconds": time.perf_counter() - start,
        "workload": plan.work.to_json(),
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "threads": plan.threads,
            "rounds": plan.rounds,
            "load before": round(busy, 1),
        },
        "details": found.details,
        "notes": found.notes,
    }


def main(arguments: list[str]) -> None:
    """Measure, write both files, and show one."""
    options = parse(arguments)
    rounds = options.rounds or (5 if options.full else 3)
    plan = Plan(rounds=rounds, full=options.full, threads=options.threads)
    names = options.only or [*MEASURES, *(FULL if options.full else ())]
    results = run(plan, names, lambda line: print(line, file=sys.stderr, flush=True))
    options.output.mkdir(parents=True, exist_ok=True)
    write_json(options.output / "results.json", results)
    write_text(options.output / "results.md", markdown(results))
    print(json.dumps(results) if options.json else markdown(results))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ProgrlError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
