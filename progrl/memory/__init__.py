"""What an agent's training remembers: long-term patterns and short-term records (eq. 10-11)."""

from progrl.memory.long_term import LongTermMemory
from progrl.memory.pattern import Pattern
from progrl.memory.short_term import Record, ShortTermMemory

__all__ = ["LongTermMemory", "Pattern", "Record", "ShortTermMemory"]
