"""What a run measures with, and what a measure gives back."""

from dataclasses import dataclass, field
from typing import Any

from speed.workload import Workload


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure.

    Attributes:
        work: the workload.
        rounds: turns that ways take, after one that is not counted.
        full: how things grow, too.
        threads: of each way.
    """

    work: Workload = field(default_factory=Workload)
    rounds: int = 3
    full: bool = False
    threads: int = 1

    @property
    def key(self) -> str:
        """The seconds that ratios are of: CPU time, which load disturbs least, with one thread."""
        return "cpu" if self.threads == 1 else "wall"


@dataclass(slots=True)
class Found:
    """What a measure found.

    Attributes:
        figures: the main ones, by name; None where a peer is not installed.
        details: all the rest, by measure.
        notes: what to know to read them.
    """

    figures: dict[str, float | None] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, other: "Found") -> None:
        """Take in another's."""
        self.figures |= other.figures
        self.details |= other.details
        self.notes += other.notes
