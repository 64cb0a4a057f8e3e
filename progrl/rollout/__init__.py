"""Playing episodes: one at a time, and many at once."""

from progrl.rollout.collect import check_faults, collect
from progrl.rollout.episode import Clock, EpisodeSpec, play
from progrl.rollout.world import World

__all__ = ["Clock", "EpisodeSpec", "World", "check_faults", "collect", "play"]
