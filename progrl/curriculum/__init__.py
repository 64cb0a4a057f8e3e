"""What the agent trains on as it gets better: horizon, success window, difficulty."""

from progrl.curriculum.difficulty import Sampler
from progrl.curriculum.horizon import Horizon
from progrl.curriculum.window import SuccessWindow

__all__ = ["Horizon", "Sampler", "SuccessWindow"]
