"""Learning rates over the steps of a run."""

import math

from progrl.config.training import Constant, Cosine, Linear, Schedule, WarmupFlatDown


def rate(schedule: Schedule, step: int, steps: int) -> float:
    """The learning rate of optimiser step `step` (from 0) of `steps`, as a share of the peak.

    All schedules rise linearly over the first `warmup * steps` steps, so that the first step is
    above 0.
    """
    rise = schedule.warmup * steps
    if step < rise:
        return (step + 1) / (rise + 1)
    match schedule:
        case Constant():
            return 1.0
        case Cosine():
            done = (step - rise) / max(1.0, steps - rise)
            return schedule.final + (1 - schedule.final) * (1 + math.cos(math.pi * done)) / 2
        case Linear():
            done = (step - rise) / max(1.0, steps - rise)
            return schedule.final + (1 - schedule.final) * (1 - done)
        case WarmupFlatDown():
            flat_until = rise + schedule.flat * steps
            done = max(0.0, step - flat_until) / max(1.0, steps - flat_until)
            return schedule.final + (1 - schedule.final) * (1 - done)
