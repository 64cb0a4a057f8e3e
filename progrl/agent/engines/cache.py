"""Keys and values of many conversations in preallocated slots."""

import numpy as np
import torch
from numpy.typing import NDArray

_FIRST = 128  # tokens a slot holds before it first grows
_BLOCK = 16  # a compiled decoder keeps the keys of so many tokens together


class Cache:
    """Keys and values [layers, slots, kv_heads, capacity, head_dim], and each slot's length.

    The capacity doubles when a conversation needs more. What lies beyond a slot's length is masked
    by those who read, and is always finite: zeros, or what an earlier conversation left.
    """

    def __init__(
        self, layers: int, slots: int, kv_heads: int, head_dim: int, dtype: torch.dtype
    ) -> None:
        shape = (layers, slots, kv_heads, _FIRST, head_dim)
        self.keys = torch.zeros(shape, dtype=dtype)
        self.values = torch.zeros(shape, dtype=dtype)
        self.lengths: NDArray[np.int64] = np.zeros(slots, dtype=np.int64)

    @property
    def capacity(self) -> int:
        """Tokens that a slot can hold now."""
        return self.keys.shape[3]

    def ensure(self, length: int) -> None:
        """Make every slot hold at least `length` tokens."""
        if length <= self.capacity:
            return
        capacity = _capacity(length)
        # Born in inference mode, they could not be written outside of it.
        with torch.inference_mode(False):
            self.keys = _grown(self.keys, capacity)
            self.values = _grown(self.values, capacity)

    def copy(self, source: int, target: int) -> None:
        """Let slot `target` hold what `source` holds."""
        whole = -(-int(self.lengths[source]) // _BLOCK) * _BLOCK
        for tensor in (self.keys, self.values):
            tensor[:, target, :, :whole] = tensor[:, source, :, :whole]
        self.lengths[target] = self.lengths[source]


def slot_bytes(layers: int, kv_heads: int, head_dim: int, dtype: torch.dtype, length: int) -> int:
    """Bytes that each slot takes once a conversation of `length` tokens is held in one of them."""
    return 2 * layers * kv_heads * _capacity(length) * head_dim * dtype.itemsize


def _capacity(length: int) -> int:
    capacity = _FIRST
    while capacity < length:
        capacity *= 2
    return capacity


def _grown(tensor: torch.Tensor, capacity: int) -> torch.Tensor:
    shape = list(tensor.shape)
    old, shape[3] = shape[3], capacity
    grown = torch.zeros(shape, dtype=tensor.dtype)
    grown[:, :, :, :old] = tensor
    return grown
