"""The decoder's layers compiled from C++.

Of small models a decode step is attention over long caches and many small operations, each of which
costs its call. `kernel.cpp` does all layers in one: it reads of each slot what it holds and not
more, needs no masks, sends for values while it scores keys, and of the last layer computes only
what is used. It is compiled for the model's shape and this processor as the engine starts, which
takes a second or two, and computes on one thread.
"""

import ctypes
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from progrl.agent.engines.cache import Cache
from progrl.agent.engines.decoder import Decoder, Ints, Layer
from progrl.agent.native import WIDE, compiled
from progrl.errors import ConfigurationError

_SOURCE = Path(__file__).with_name("kernel.cpp")
_PANEL, _BLOCK, _TILE = 64, 48, 4  # as the kernel has them
_MATRICES = ("qkv", "out", "gate_up", "down")
_POINTER, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


class _Layer(ctypes.Structure):
    """The weights in the order of `Layer`, and where the cache of this layer lies."""

    _fields_ = [(name, _POINTER) for name in (*(f.name for f in fields(Layer)), "keys", "values")]


class _Batch(ctypes.Structure):
    _fields_ = [
        *((name, _INT) for name in ("conversations", "tokens")),
        *((name, _POINTER) for name in ("slots", "starts", "counts")),
        ("capacity", _INT),
        *((name, _POINTER) for name in ("cosine", "sine")),
    ]


class CompiledDecoder(Decoder):
    """Reads and decodes as `Decoder` does, up to the last digits.

    Raises:
        ConfigurationError: there is no compiler, it fails, or the model's widths do not fit.
    """

    def __init__(self, model: PreTrainedModel, dtype: torch.dtype) -> None:
        super().__init__(model, dtype)
        config: Any = model.config
        self._ffn: int = config.intermediate_size
        if dtype != torch.float32:
            raise ConfigurationError("engine.compile: needs engine.dtype=float32.")
        self._qkv_width = (self.heads + 2 * self.kv_heads) * self.head_dim
        shape = {
            "HIDDEN": self.hidden,
            "HEADS": self.heads,
            "KV_HEADS": self.kv_heads,
            "HEAD_DIM": self.head_dim,
            "FFN": self._ffn,
        }
        self._forward: Any = compiled(_SOURCE, "engine.compile", shape).forward
        self._forward.argtypes = [_INT, _POINTER, _POINTER, _FLOAT, _FLOAT, _POINTER, _POINTER]
        self._forward.restype = None

    def take(self, model: PreTrainedModel) -> None:
        """As the decoder's own."""
        super().take(model)
        self._given = (_Layer * len(self.layers))(
            *(_Layer(*(_address(getattr(row, f.name)) for f in fields(row))) for row in self.layers)
        )

    def decode(self, cache: Cache, slots: Ints, ids: Ints) -> Tensor:
        """As the decoder's own."""
        return self.read(cache, slots, np.ones_like(slots), ids)

    def read(self, cache: Cache, slots: Ints, counts: Ints, ids: Ints) -> Tensor:
        """As the decoder's own."""
        slots, counts = np.ascontiguousarray(slots), np.ascontiguousarray(counts)
        starts = cache.lengths[slots]
        longest, tokens = int((starts + counts).max()), len(ids)
        cache.ensure(longest)
        self._ensure_tables(longest)
        x = self.embedding[torch.from_numpy(ids)]
        each = self._qkv_width + self.heads * self.head_dim
        room = x.new_empty(
            tokens * each + _BLOCK * (self.hidden + 3 * self._ffn) + _TILE * (cache.capacity + WIDE)
        )
        for layer, keys, values in zip(self._given, cache.keys, cache.values, strict=True):
            layer.keys, layer.values = keys.data_ptr(), values.data_ptr()
        batch = _Batch(
            *(len(slots), tokens, slots.ctypes.data, starts.ctypes.data, counts.ctypes.data),
            *(cache.capacity, self._cos.data_ptr(), self._sin.data_ptr()),
        )
        self._forward(
            *(len(self._given), self._given, ctypes.byref(batch), self.eps, self.scale),
            *(x.data_ptr(), room.data_ptr()),
        )
        cache.lengths[slots] += counts
        return x[: len(slots)]

    def _layer(self, layer: Any) -> Layer:
        made = super()._layer(layer)
        matrices = {name: _panels(getattr(made, name)) for name in _MATRICES}
        return replace(made, **matrices)


def _panels(matrix: Tensor) -> Tensor:
    """A matrix [width out, width in] as the kernel reads it: panels [width in, up to 64 of out]."""
    starts = range(0, len(matrix), _PANEL)
    return torch.cat([matrix[at : at + _PANEL].t().flatten() for at in starts])


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
