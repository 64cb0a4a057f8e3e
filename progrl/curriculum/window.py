"""p_t: the share of successes among the last training episodes."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from progrl.errors import CheckpointError, check_names


class SuccessWindow:
    """The outcomes of the last `size` counted episodes, in the order of (step, task, episode)."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._outcomes: deque[bool] = deque(maxlen=size)
        self.counted = 0

    def add(self, outcomes: Iterable[bool]) -> None:
        """Take in one step's outcomes, in order."""
        for outcome in outcomes:
            self._outcomes.append(bool(outcome))
            self.counted += 1

    @property
    def rate(self) -> float | None:
        """p_t in [0, 1]; None before any episode."""
        return sum(self._outcomes) / len(self._outcomes) if self._outcomes else None

    def __len__(self) -> int:
        return len(self._outcomes)

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed run needs."""
        return {
            "size": self.size,
            "outcomes": [int(o) for o in self._outcomes],
            "counted": self.counted,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state; CheckpointError if it has other names or another size."""
        check_names(state, {"size", "outcomes", "counted"}, "success window")
        if state["size"] != self.size:
            raise CheckpointError(
                f"The checkpoint's success window has size {state['size']}, this run's {self.size}."
            )
        self._outcomes = deque(map(bool, state["outcomes"]), maxlen=self.size)
        self.counted = state["counted"]
