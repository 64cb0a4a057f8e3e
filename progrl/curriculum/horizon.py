"""The adaptive horizon (PMT, eq. 7-8) and the policies it is compared with."""

import math
from collections.abc import Mapping
from typing import Any

from progrl.config.training import (
    AdaptiveHorizon,
    BidirectionalHorizon,
    FixedHorizon,
    HorizonConfig,
    LinearHorizon,
    ScalingInterHorizon,
)
from progrl.errors import CheckpointError, check_names

FLOOR = 2.0


def growth(success: float) -> tuple[str, float]:
    """s_t of eq. 8 by branch: 1.5 if p >= 0.8, 1.0 if 0.6 <= p < 0.8, else 0.5."""
    if success >= 0.8:
        return "high", 1.5
    if success >= 0.6:
        return "middle", 1.0
    return "low", 0.5


class Horizon:
    """The horizon over training steps. `value` is real; an episode gets `turns` agent turns."""

    def __init__(self, config: HorizonConfig) -> None:
        self.config = config
        self.step = 0
        self._shrinking = False
        match config:
            case AdaptiveHorizon() | LinearHorizon():
                self.value = float(config.start)
            case FixedHorizon():
                self.value = float(config.turns)
            case ScalingInterHorizon():
                self.value = float(config.stages[0])

    @property
    def turns(self) -> int:
        """floor(h)."""
        return math.floor(self.value)

    def update(self, success: float | None, counted: int) -> str:
        """Go one training step on.

        Args:
            success: p_t, or None if nothing is counted yet.
            counted: training episodes counted so far.

        Returns:
            The branch taken: "high", "middle", "low", "shrink", "hold", or the policy's name.
        """
        self.step += 1
        config = self.config
        match config:
            case AdaptiveHorizon():
                return self._adapt(config, success, counted)
            case FixedHorizon():
                return "fixed"
            case LinearHorizon():
                share = min(1.0, self.step / config.steps)
                self.value = config.start + share * (config.cap - config.start)
                return "linear"
            case ScalingInterHorizon():
                stage = min(self.step // config.every, len(config.stages) - 1)
                self.value = float(config.stages[stage])
                return "scaling_inter"

    def _adapt(self, config: AdaptiveHorizon, success: float | None, counted: int) -> str:
        if success is None or counted < config.min_episodes:
            return "hold"
        branch, speed = growth(success)
        if isinstance(config, BidirectionalHorizon):
            rise = config.low + config.hysteresis
            self._shrinking = success < (rise if self._shrinking else config.low)
            if self._shrinking:
                branch, speed = "shrink", -0.5
        self.value = min(max(self.value + config.delta * speed, FLOOR), float(config.cap))
        return branch

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed run needs."""
        return {
            "kind": self.config.kind,
            "value": self.value,
            "step": self.step,
            "shrinking": self._shrinking,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state; CheckpointError if it is another policy's."""
        check_names(state, {"kind", "value", "step", "shrinking"}, "horizon")
        if state["kind"] != self.config.kind:
            raise CheckpointError(
                f"The checkpoint's horizon is {state['kind']!r}, this run's {self.config.kind!r}."
            )
        self.value, self.step = state["value"], state["step"]
        self._shrinking = state["shrinking"]
