"""Two agents on the same tasks."""

from collections.abc import Iterable

from progrl.evaluation.metrics import Result, Value, by_task, success
from progrl.evaluation.statistics import Interval, paired_difference, task_means


def paired(
    a: Iterable[Result], b: Iterable[Result], value: Value = success
) -> tuple[list[float], list[float]]:
    """The task means of both, over the tasks that both have a value for, in the order of ids."""
    of_a, of_b = by_task(a, value), by_task(b, value)
    common = sorted(of_a.keys() & of_b.keys())
    return task_means([of_a[t] for t in common]), task_means([of_b[t] for t in common])


def difference(
    a: Iterable[Result],
    b: Iterable[Result],
    confidence: float,
    resamples: int,
    seed: int,
    value: Value = success,
) -> Interval | None:
    """The task-paired mean of a - b with its bootstrap interval over tasks.

    None where they have fewer than two tasks in common: there is no spread to judge by.
    """
    pairs = paired(a, b, value)
    if len(pairs[0]) < 2:
        return None
    return paired_difference(*pairs, confidence, resamples, seed)
