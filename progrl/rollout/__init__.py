"""Playing episodes: one at a time, and many at once."""

from progrl.rollout.ahead import Ahead
from progrl.rollout.collect import check_faults, collect
from progrl.rollout.episode import Clock, EpisodeSpec, play
from progrl.rollout.world import World

__all__ = ["Ahead", "Clock", "EpisodeSpec", "World", "check_faults", "collect", "play"]
