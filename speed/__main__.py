"""`python -m speed`: a table, or JSON alone with --json."""

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line's options."""
    parser = argparse.ArgumentParser(prog="python -m speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="each measure once")
    parser.add_argument("--json", action="store_true", help="JSON alone on standard output")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--save", action="store_true", help="write speed/results.json too")
    return parser.parse_args(arguments)


def table(results: dict[str, Any]) -> None:
    """Print the results for people."""
    from rich.console import Console
    from rich.table import Table

    rollout = results["rollout"]
    shape = ", ".join(f"{value} {name}" for name, value in rollout["workload"].items())
    view = Table("way", "tokens/s", "ratio", title=f"Rollout: {shape}")
    for name, rate in rollout["tokens_per_second"].items():
        view.add_row(name, f"{rate:,}", f"{rollout['ratio_to_generate'][name]}")
    Console().print(view)


def main() -> None:
    """Measure, print, and save if asked to."""
    options = parse(sys.argv[1:])
    # Read by torch when it is first imported.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch

    from progrl.files import write_json
    from speed.rollout import Workload, measure

    torch.set_num_threads(options.threads)
    results = {
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "threads": options.threads,
            "torch": torch.__version__,
        },
        "rollout": measure(Workload(), repeats=1 if options.quick else 3),
    }
    if options.json:
        print(json.dumps(results))
    else:
        table(results)
    if options.save:
        write_json(Path(__file__).parent / "results.json", results)


main()
