"""How rollouts grow: with episodes, turns and the size of the model. Part of `--full` alone."""

from typing import Any

from speed.compare import Way, compare, kernels, memory, middle
from speed.plan import Found, Plan
from speed.workload import Shape, Workload

EPISODES = (1, 4, 16)
"""Times the workload's."""
TURNS = (2, 5, 10, 20)
SHAPES = {
    "0.4M": Shape(),
    "3M": Shape(hidden=192, layers=6, heads=6, kv_heads=6, ffn=512),
    "14M": Shape(4096, 320, 8, 10, 10, 32, 1024),
    "50M": Shape(16384, 512, 12, 8, 4, 64, 1408),
    "135M": Shape(49152, 576, 30, 9, 3, 64, 1536),
}
"""By their parameters, the last with SmolLM2-135M's."""
MODELS = {"conversations": 8, "turns": 3}
"""Sizes of the workload where models differ: the largest must end in a minute."""


def measure(plan: Plan) -> Found:
    """Tokens a second and memory along each axis."""
    work = plan.work
    several = {f"{n}x": work.sized(conversations=n * work.conversations) for n in EPISODES}
    longer = {str(n): work.sized(turns=n) for n in TURNS}
    larger = {name: Workload(**MODELS, shape=shape) for name, shape in SHAPES.items()}
    details = {
        "episodes": {name: _row(some, plan) for name, some in several.items()},
        "turns": {name: _row(some, plan) for name, some in longer.items()},
        "model": {name: _row(some, plan) for name, some in larger.items()},
    }
    return Found({}, {"growth_of_rollouts": details})


def _row(work: Workload, plan: Plan) -> dict[str, Any]:
    """One size alone: side by side they would not fit into memory."""
    ways = {"ours": Way("ours.rollout", work, kernels(), threads=plan.threads)}
    (some,) = compare(ways, max(1, plan.rounds // 2)).values()
    return {
        "parameters": work.shape.parameters,
        "tokens_per_s": work.tokens / middle(some, plan.key),
        "memory_mib": memory(some),
    }
