"""Playing episodes: one at a time, and many at once."""

from progrl.rollout.collect import check_faults, collect
from progrl.rollout.episode import Clock, EpisodeSpec, play

__all__ = ["Clock", "EpisodeSpec", "check_faults", "collect", "play"]
