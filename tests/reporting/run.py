"""A small run's results on disk, made by the functions that make them in a run."""

from pathlib import Path
from typing import Any

from progrl.config import Config
from progrl.config.models import AGENTS
from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.trajectories import End, Trajectory, write_trajectories
from progrl.evaluation.metrics import measure
from progrl.evaluation.summary import Summariser, evaluation
from progrl.files import write_json, write_jsonl
from tests.evaluation.records import make_task, make_trajectory

TASKS = [make_task(n, level=n % 5 + 1) for n in range(10)]
HOSTILE = "<script>alert('&')</script>"


def trajectories(agent: str) -> list[Trajectory]:
    """Agent number n in the order of AGENTS solves twice as many tasks, the expert all."""
    solved = {"do_nothing": 0, "expert": 10, "untrained": 0, "sft": 4, "grpo": 8}[agent]
    made = []
    for n, task in enumerate(TASKS):
        actions = (Say(HOSTILE), ToolCall("look_up", {"order": HOSTILE}), Say("Bye.", closing=True))
        one = make_trajectory(task, actions, success=n < solved, progress=float(n < solved))
        one.turns[0].observation, one.turns[0].source = f"Why {HOSTILE}?", "user"
        one.turns[0].act = "challenge"
        made.append(one)
    made[-1].end = End.HORIZON
    return made


def grpo_row(step: int, **changes: Any) -> dict[str, Any]:
    row = {
        "step": step, "horizon": 2.0 + step / 2, "turns": 2 + step // 2, "branch": "low",
        "success_window": 0.3, "success": 0.25, "reward": 0.5, "progress": 0.4, "efficiency": 0.1,
        "groups": 8, "groups_zero_variance": 2, "groups_invalid": 1, "entropy": 0.2,
        "clip_share": 0.01, "gradient_norm": 0.4, "level_mean": 1.5,
        "probe": 0.35 if step % 2 == 0 else None,
    }  # fmt: skip
    return {**row, **changes}


def sft_row(step: int, phase: str) -> dict[str, Any]:
    return {"step": step, "phase": phase, "loss": 1 / step, "learning_rate": 0.001}


def write_run(root: Path, config: Config) -> None:
    """Everything that the report reads."""
    played = {agent: trajectories(agent) for agent in AGENTS}
    results = {
        agent: [measure(t, task, 0, config.reward) for t, task in zip(ts, TASKS, strict=True)]
        for agent, ts in played.items()
    }
    summary = Summariser(0.95, 200, 1).benchmark(results)
    benchmarks = {"retail": summary, "airline": summary}
    plain = {agent: [row.to_json() for row in rows] for agent, rows in results.items()}
    write_json(root / "evaluation/results.json", {"retail": plain, "airline": plain})
    tree = evaluation(benchmarks, config.evaluation, config.seed, config.domains.held_out)
    write_json(root / "metrics/evaluate.json", tree)
    write_json(root / "metrics/generate.json", {"tasks/retail_test": 10, "expert/turns": 2.125})
    rows = [grpo_row(1), grpo_row(2, branch="middle"), grpo_row(3), grpo_row(4)]
    write_jsonl(root / "metrics/grpo.jsonl", rows)
    phases = [(1, "copy"), (2, "copy"), (3, "sft"), (4, "sft")]
    write_jsonl(root / "metrics/sft.jsonl", [sft_row(*phase) for phase in phases])
    for benchmark in ("retail", "airline"):
        for agent, ts in played.items():
            write_trajectories(root / f"evaluation/{benchmark}_{agent}.jsonl", ts[:6])
