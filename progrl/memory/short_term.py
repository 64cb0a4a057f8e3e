"""M_short: the last steps' horizon and success (eq. 11)."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from progrl.errors import CheckpointError, check_names


class Record(NamedTuple):
    """One training step.

    Attributes:
        horizon: h_t, in turns.
        success: p_t, in [0, 1].
        step: t.
    """

    horizon: float
    success: float
    step: int


class ShortTermMemory:
    """The last `size` records (W_short), the oldest first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._records: deque[Record] = deque(maxlen=size)

    def add(self, horizon: float, success: float, step: int) -> None:
        """Append a record; the oldest goes if there are more than `size`."""
        self._records.append(Record(horizon, success, step))

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed run needs, as JSON values."""
        return {"size": self.size, "records": [list(record) for record in self._records]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up a state; CheckpointError if it has other names or another size."""
        check_names(state, {"size", "records"}, "short-term memory")
        if state["size"] != self.size:
            raise CheckpointError(
                f"The checkpoint's short-term memory holds {state['size']} records, this run's "
                f"{self.size}. Set memory.short as it was, or remove the run's folder."
            )
        self._records = deque((Record(*r) for r in state["records"]), maxlen=self.size)
