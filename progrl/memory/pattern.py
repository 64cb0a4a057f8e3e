"""A pattern of long-term memory."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from progrl.dialogue.messages import ToolCall
from progrl.dialogue.trajectories import Trajectory


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is kept of a successful training trajectory, beside its query's embedding (eq. 10).

    Attributes:
        task_id: of its task.
        domain: of its task.
        query: the user's opening words.
        tools: names of the tools called, in order.
        reward: the structured reward with fixed weights.
        step: the training step that made it.
    """

    task_id: str
    domain: str
    query: str
    tools: tuple[str, ...]
    reward: float
    step: int

    @classmethod
    def of(cls, trajectory: Trajectory, reward: float, step: int) -> "Pattern":
        """The pattern of a trajectory; calls that failed are left out."""
        tools = tuple(
            turn.action.name
            for turn in trajectory.turns
            if isinstance(turn.action, ToolCall) and not turn.failed
        )
        return cls(trajectory.task_id, trajectory.domain, trajectory.query, tools, reward, step)

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """Patterns of one task and the same tools are the same."""
        return self.task_id, self.tools

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "tools": list(self.tools)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Pattern":
        """The inverse of `to_json`; raises TypeError or KeyError on another form."""
        return cls(**{**value, "tools": tuple(value["tools"])})
