"""The stages of the pipeline: what each reads, writes and depends on.

Whoever only asks whether a stage is done loads nothing of what it computes with.
"""

import importlib
from collections.abc import Callable

from progrl.config import Config
from progrl.reporting import sources
from progrl.stages.base import Context, Metrics, Stage
from progrl.stages.parts import DIALOGUES, TASKS, USERS

UNTRAINED, SFT, GRPO, MEMORY = "models/untrained", "models/sft", "models/grpo", "memory"
TEST_IDS, PAGE = "metrics/test_tasks.json", "reports/index.html"


def _work(name: str) -> Callable[[Context], Metrics]:
    """The function `run` of the stage's module, which is loaded as the stage runs."""

    def run(context: Context) -> Metrics:
        metrics: Metrics = importlib.import_module(f"progrl.stages.{name}").run(context)
        return metrics

    return run


_STAGES = (
    Stage(
        name="generate",
        sections=("seed", "domains", "embedding", "generate", "user", "threads"),
        inputs=(),
        outputs=(TASKS, DIALOGUES, USERS, sources.GENERATE, TEST_IDS),
        packages=(
            "config",
            "dialogue",
            "embedding",
            "environments",
            "users",
            "rollout",
            "agent",
            "stages/base.py",
            "stages/generate.py",
            "stages/parts.py",
        ),
        run=_work("generate"),
    ),
    Stage(
        name="sft",
        sections=(
            "seed",
            "domains",
            "embedding",
            "agent",
            "sft",
            "reward",
            "memory",
            "orchestration",
            "threads",
            "processes",
        ),
        inputs=(TASKS, DIALOGUES),
        outputs=(UNTRAINED, SFT, sources.SFT),
        packages=(
            "config",
            "dialogue",
            "embedding",
            "environments",
            "agent",
            "memory",
            "orchestration",
            "rewards",
            "training",
            "stages/advice.py",
            "stages/base.py",
            "stages/parts.py",
            "stages/processes.py",
            "stages/sft.py",
        ),
        run=_work("sft"),
        divided=True,
    ),
    Stage(
        name="grpo",
        sections=(
            "seed",
            "domains",
            "embedding",
            "user",
            "agent",
            "engine",
            "reward",
            "grpo",
            "horizon",
            "curriculum",
            "memory",
            "orchestration",
            "threads",
            "processes",
        ),
        inputs=(TASKS, USERS, UNTRAINED, SFT),
        outputs=(GRPO, MEMORY, sources.GRPO),
        packages=(
            "agent",
            "config",
            "curriculum",
            "dialogue",
            "embedding",
            "environments",
            "memory",
            "orchestration",
            "rewards",
            "rollout",
            "stages/advice.py",
            "stages/base.py",
            "stages/grpo.py",
            "stages/parts.py",
            "stages/processes.py",
            "training",
            "users",
        ),
        run=_work("grpo"),
        divided=True,
    ),
    Stage(
        name="evaluate",
        sections=(
            "seed",
            "domains",
            "embedding",
            "agent",
            "engine",
            "reward",
            "orchestration",
            "evaluation",
            "threads",
            "processes",
        ),
        inputs=(TASKS, USERS, UNTRAINED, SFT, GRPO),
        outputs=(sources.EVALUATE, sources.KEPT),
        packages=(
            "agent",
            "config",
            "dialogue",
            "embedding",
            "environments",
            "evaluation",
            "memory",
            "orchestration",
            "rewards",
            "rollout",
            "stages/advice.py",
            "stages/base.py",
            "stages/evaluate.py",
            "stages/parts.py",
            "stages/processes.py",
            "users",
        ),
        run=_work("evaluate"),
        divided=True,
    ),
    Stage(
        name="report",
        sections=tuple(name for name in Config.model_fields if name != "tracking"),
        inputs=sources.INPUTS,
        outputs=(PAGE,),
        packages=(
            "config",
            "dialogue",
            "evaluation",
            "reporting",
            "stages/base.py",
            "stages/report.py",
            "tracking",
        ),
        run=_work("report"),
    ),
    Stage(
        name="register",
        sections=("seed", "domains", "agent", "evaluation", "tracking"),
        inputs=(TASKS, GRPO, sources.EVALUATE, sources.KEPT),
        outputs=(),
        packages=(
            "config",
            "evaluation",
            "reporting",
            "stages/base.py",
            "stages/card.py",
            "stages/parts.py",
            "stages/register.py",
            "tracking",
        ),
        run=_work("register"),
    ),
)
STAGES = {stage.name: stage for stage in _STAGES}
