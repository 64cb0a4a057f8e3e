"""Which tasks a training step draws: difficulty g(p_t) (PMT, eq. 9) within the horizon."""

import math
from collections import defaultdict
from collections.abc import Sequence
from random import Random

from progrl.config.training import AdaptiveDifficulty, CurriculumConfig
from progrl.dialogue.tasks import Task
from progrl.errors import ConfigurationError

LEVELS = (1, 2, 3, 4, 5)


def level_weights(success: float | None, config: CurriculumConfig) -> list[float]:
    """g(p): the probability of each complexity level, in the order 1 to 5.

    Adaptive: proportional to exp(-sharpness * |level - (1 + 4p)|), whose mean rises with p.
    """
    if not isinstance(config.difficulty, AdaptiveDifficulty):
        return [1 / len(LEVELS)] * len(LEVELS)
    centre = 1 + 4 * (success or 0.0)
    weights = [math.exp(-config.difficulty.sharpness * abs(level - centre)) for level in LEVELS]
    total = sum(weights)
    return [w / total for w in weights]


class Sampler:
    """Draws a step's tasks from the training tasks."""

    def __init__(self, tasks: Sequence[Task], config: CurriculumConfig) -> None:
        self.config = config
        self._by_level: dict[int, list[Task]] = defaultdict(list)
        for task in sorted(tasks, key=lambda t: (t.level, t.expert_turns, t.id)):
            self._by_level[task.level].append(task)
        if not tasks:
            raise ConfigurationError("There is no task to train on.")

    def draw(self, count: int, turns: int, success: float | None, random: Random) -> list[Task]:
        """`count` distinct tasks, while there are as many.

        The first `reachable` share of them have an expert that needs at most `turns` turns; for
        the rest the horizon is no bound. Levels are drawn by g(p).
        """
        must = math.ceil(self.config.reachable * count)
        weights = dict(zip(LEVELS, level_weights(success, self.config), strict=True))
        chosen: dict[str, Task] = {}
        while len(chosen) < count:
            limit = turns if len(chosen) < must else None
            task = self._one(limit, weights, chosen, random)
            if task is None:
                break
            chosen[task.id] = task
        return list(chosen.values())

    def _one(
        self,
        limit: int | None,
        weights: dict[int, float],
        taken: dict[str, Task],
        random: Random,
    ) -> Task | None:
        open_levels = {}
        for level, tasks in sorted(self._by_level.items()):
            allowed = [t for t in tasks if limit is None or t.expert_turns <= limit]
            if allowed:
                open_levels[level] = allowed
        if not open_levels:
            raise ConfigurationError(
                f"No training task can be solved within {limit} turns. Start with a longer horizon "
                "(horizon), or lower curriculum.reachable to 0."
            )
        for _ in range(100):
            levels = list(open_levels)
            level = random.choices(levels, [weights[x] for x in levels])[0]
            task = random.choice(open_levels[level])
            if task.id not in taken:
                return task
        left = [t for x in sorted(open_levels) for t in open_levels[x] if t.id not in taken]
        return random.choice(left) if left else None
