"""How good an agent is, on which tasks, and how sure that is."""

from progrl.evaluation.statistics import Interval, paired_difference, t_interval

__all__ = ["Interval", "paired_difference", "t_interval"]
