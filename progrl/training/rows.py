"""What is told of a training step: a row of metrics/grpo.jsonl, and a line of text."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from progrl.config.training import GrpoConfig
from progrl.rewards import RewardParts
from progrl.training.update import Group

Row = dict[str, Any]


def episodes_row(groups: Sequence[Group], parts: Sequence[RewardParts], grpo: GrpoConfig) -> Row:
    """What a step's episodes were like; means over the valid ones, None where there is none."""
    trajectories = [t for group in groups for t in group.trajectories]
    valid = [t for t in trajectories if t.valid]
    lengths = [(len(turn.context), len(turn.sampled)) for t in trajectories for turn in t.turns]
    few = [group for group in groups if len(group.scores) < 2]
    silent = [g for g in groups if len(g.scores) >= 2 and not g.episodes(grpo)]

    def mean(values: list[float]) -> float | None:
        return fmean(values) if values else None

    return {
        "success": mean([p.task for p in parts]),
        "reward": mean([p.total for p in parts]),
        "progress": mean([p.progress for p in parts]),
        "efficiency": mean([p.efficiency for p in parts]),
        "score_std": mean([float(np.std(g.scores)) for g in groups if g.scores]),
        "groups": len(groups),
        "groups_zero_variance": len(silent),
        "groups_invalid": len(few),
        "episodes": len(trajectories),
        "faults": len(trajectories) - len(valid),
        "turns_used": mean([float(len(t.turns)) for t in valid]),
        "tokens_read": sum(read for read, _ in lengths),
        "tokens_sampled": sum(sampled for _, sampled in lengths),
        "level_mean": mean([float(t.level) for t in trajectories]),
    }


def line(row: Row) -> str:
    """What a person is told of a step."""
    probe = f", probe {row['probe']:.2f}" if row["probe"] is not None else ""
    return f"success {row['success'] or 0:.2f}, horizon {row['horizon']:.1f}{probe}"
