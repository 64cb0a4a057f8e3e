"""The processes that share a run's work.

All of them run the same program on the same configuration and know the same state; only what costs
time is divided: each plays its block of the episodes and computes its part of the gradients, and
then all have all. The first one leads: it alone writes and tells.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ranks:
    """A process's place among those of a run; alone by default.

    With more than one, `torch.distributed` must have its default group, with gloo for the CPU.
    """

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes and tells."""
        return self.rank == 0

    def block(self, items: Sequence[T]) -> Sequence[T]:
        """This process's part of `items`: neighbours stay together."""
        first, last = (len(items) * r // self.size for r in (self.rank, self.rank + 1))
        return items[first:last]

    def gather(self, mine: bytes) -> list[bytes]:
        """What each process gives, in the order of ranks; all must call it."""
        if self.size == 1:
            return [mine]
        import torch
        import torch.distributed as distributed

        length = torch.tensor([len(mine)])
        lengths = [torch.zeros_like(length) for _ in range(self.size)]
        distributed.all_gather(lengths, length)
        longest = max(int(n) for n in lengths)
        sent = torch.zeros(longest, dtype=torch.uint8)
        if mine:
            sent[: len(mine)] = torch.frombuffer(bytearray(mine), dtype=torch.uint8)
        received = [torch.zeros_like(sent) for _ in range(self.size)]
        distributed.all_gather(received, sent)
        return [t[: int(n)].numpy().tobytes() for t, n in zip(received, lengths, strict=True)]

    def total(self, values: Sequence[float]) -> list[float]:
        """The sums of the processes' values, the same for all; all must call it."""
        if self.size == 1:
            return list(values)
        import torch
        import torch.distributed as distributed

        sums = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(sums)
        return [float(value) for value in sums]


ALONE = Ranks()


def launched() -> Ranks | None:
    """This process's place among those that a launcher has started; None where none has."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    return Ranks(int(os.environ.get("RANK", "0")), size) if size > 1 else None
