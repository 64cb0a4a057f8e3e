"""Which tasks' dialogues are kept to be read."""

from collections.abc import Sequence
from itertools import chain, zip_longest
from math import ceil

from progrl.evaluation.metrics import Result


def choose_examples(before: Sequence[Result], after: Sequence[Result], count: int) -> list[str]:
    """The ids of at most `count` tasks, by rule and not by looking.

    Up to a third are the first tasks that `after` solves and `before` does not, up to a third
    those the other way round, and the rest goes round the complexity levels; always in the order
    of the task list, by the first trial. Where there are too few of one kind, the rest is longer.
    """
    of_before = {r.task: r.success for r in before if r.trial == 0 and r.valid}
    of_after = {r.task: r.success for r in after if r.trial == 0 and r.valid}
    common = [r for r in after if r.trial == 0 and r.task in of_before and r.task in of_after]
    gained = [r.task for r in common if of_after[r.task] and not of_before[r.task]]
    lost = [r.task for r in common if of_before[r.task] and not of_after[r.task]]
    levels = [
        [r.task for r in common if r.level == level] for level in sorted({r.level for r in common})
    ]
    rest = [task for task in chain.from_iterable(zip_longest(*levels)) if task is not None]
    third = ceil(count / 3)
    return list(dict.fromkeys([*gained[:third], *lost[:third], *rest]))[:count]
