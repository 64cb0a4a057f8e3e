"""A project like ours whose stages are declared as ours and do their work in no time."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from progrl.config.models import AGENTS
from progrl.errors import DataError
from progrl.evaluation.metrics import measure
from progrl.files import new_folder, read_jsonl, write_json, write_jsonl, write_text
from progrl.stages.base import Context, Metrics, Stage
from tests.reporting.run import TASKS, grpo_row, sft_row, trajectories, write_run

ROOT = Path(__file__).parent.parent.parent
COPIED = ("progrl", "flows", "tasks", "configs", "params.yaml", "dvc.yaml", "prefect.yaml")
COPIED += ("pyproject.toml", "constraints.txt", ".dvcignore", ".gitignore")
STEPS = 12
PAUSE = "TOY_PAUSE"
"""Variable: seconds that each of grpo's steps takes."""
FAIL = "TOY_FAIL"
"""Variable: the kind of horizon with which training fails."""


def toy(stage: Stage) -> Stage:
    """The stage with its inputs, outputs and sections, but a toy's work."""
    works: dict[str, Callable[[Context], Metrics]] = {
        "generate": _generate,
        "sft": _sft,
        "grpo": _grpo,
        "evaluate": _evaluate,
    }

    def run(context: Context) -> Metrics:
        metrics = works[stage.name](context)
        for name in stage.outputs:
            if not (context.root / name).exists():
                write_json(context.root / name, {})
        return metrics

    return replace(stage, run=run)


def _generate(context: Context) -> Metrics:
    for name in ("data/tasks", "data/dialogues", "data/users/retail"):
        with new_folder(context.root / name) as folder:
            write_jsonl(folder / "retail_test.jsonl", [{"id": n} for n in range(3)])
    write_json(context.root / "metrics/generate.json", {"tasks/retail_test": 3})
    return {"generate/tasks": 3.0}


def _model(folder: Path, word: str) -> None:
    with new_folder(folder) as made:
        write_text(made / "config.json", f'{{"is": "{word}"}}\n')


def _sft(context: Context) -> Metrics:
    _model(context.root / "models/untrained", "untrained")
    _model(context.root / "models/sft", "sft")
    write_jsonl(context.root / "metrics/sft.jsonl", [sft_row(1, "dialogues")])
    return {"sft/loss": 1.0}


def _grpo(context: Context) -> Metrics:
    """Checkpoints every third step, like the real one, so that a resume tells steps again."""
    if context.config.horizon.kind == os.environ.get(FAIL):
        raise DataError("A toy that was told to fail.")
    checkpoint = context.work / "rows.jsonl"
    rows = [row for _, row in read_jsonl(checkpoint)] if checkpoint.exists() else []
    for step in range(len(rows), STEPS):
        time.sleep(float(os.environ.get(PAUSE, "0")))
        context.recorder.metrics({"grpo/success": step / 100, "time/rollout": time.time()}, step)
        rows.append(grpo_row(step))
        if step % 3 == 2:
            write_jsonl(checkpoint, rows)
    _model(context.root / "models/grpo", f"grpo of {context.config.grpo.steps} steps")
    with new_folder(context.root / "memory") as folder:
        write_jsonl(folder / "patterns.jsonl", [])
    write_jsonl(context.root / "metrics/grpo.jsonl", rows)
    return {"grpo/probe": 0.5}


def _evaluate(context: Context) -> Metrics:
    made = context.work / "made"
    write_run(made, context.config)
    shutil.copyfile(made / "metrics/evaluate.json", context.root / "metrics/evaluate.json")
    shutil.copytree(made / "evaluation", context.root / "evaluation", dirs_exist_ok=True)
    rows = {
        agent: [
            measure(one, task, 0, context.config.reward).to_json()
            for one, task in zip(trajectories(agent), TASKS, strict=True)
        ]
        for agent in AGENTS
    }
    results = {"retail": rows, "airline": rows}
    write_json(context.root / "evaluation" / "results.json", results)
    return {"evaluate/retail/grpo/success": 0.8}


def copy_project(folder: Path) -> None:
    """A copy of this repository: what decides results."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignore)
        else:
            shutil.copyfile(source, folder / name)


_TOYS = """
from tests.flows.toys import toy  # noqa: E402

for name in ("generate", "sft", "grpo", "evaluate"):
    STAGES[name] = toy(STAGES[name])
"""


def make_project(folder: Path) -> None:
    """A committed copy of this repository with toy stages."""
    copy_project(folder)
    path = folder / "progrl" / "stages" / "definitions.py"
    path.write_text(path.read_text() + _TOYS)
    git(folder, "init", "-q")
    call(folder, "dvc", "init", "-q")
    shutil.copyfile(ROOT / ".dvc" / "config", folder / ".dvc" / "config")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Toy")


def environment(folder: Path) -> dict[str, str]:
    """For the project's processes: its own sources, nothing of the caller's servers."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "MLFLOW_"))}
    who = {"NAME": "Toy", "EMAIL": "toy@localhost"}
    return {
        **kept,
        **{f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()},
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(folder), os.environ["PYTHONPATH"]]),
        "PROGRL_PROJECT": str(folder),
        "DVC_SITE_CACHE_DIR": str(folder / ".state" / "dvc"),
    }


def git(folder: Path, *arguments: str) -> str:
    """Run git in the project."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment(folder), text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def call(
    folder: Path, module: str, *arguments: str, code: int = 0, extra: Sequence[str] = ()
) -> str:
    """Run a module in the project; gives all that it said."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        env={**environment(folder), **dict(pair.split("=", 1) for pair in extra)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def table(project: Path, name: str) -> dict[str, Any]:
    """The table of a sweep, without its name."""
    output = project / f"{name}.json"
    root = f"outputs/sweeps/{name}"
    call(project, "progrl.cli", "ablations", "--root", root, "--output", str(output))
    found: dict[str, Any] = json.loads(output.read_text())
    assert found.pop("sweep") == name
    return found
