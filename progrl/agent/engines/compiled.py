"""The decoder with what lies between a decode step's matrix products compiled from C++.

Of small models a decode step is attention over long caches and many small operations, each of which
costs its call. `kernel.cpp` does them in three functions, reads of each slot what it holds and not
more, and needs no masks. It is compiled for the model's shape and this processor as the engine
starts, which takes about a second, and computes on one thread.
"""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedModel

from progrl.agent.engines.cache import Cache
from progrl.agent.engines.decoder import Decoder, Ints
from progrl.errors import ConfigurationError

_SOURCE = Path(__file__).with_name("kernel.cpp")
_COMPILERS = ("g++", "clang++", "c++")
_WIDE = 16  # numbers that the kernel takes at once
_P, _N, _F = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


class CompiledDecoder(Decoder):
    """Decodes as `Decoder` does, up to the last digits; what it reads is read by the same code.

    Raises:
        ConfigurationError: there is no compiler, it fails, or the model's widths do not fit.
    """

    def __init__(self, model: PreTrainedModel, dtype: torch.dtype) -> None:
        super().__init__(model, dtype)
        ffn = self.layers[0].down.shape[1]
        if dtype != torch.float32:
            raise ConfigurationError("engine.compile: needs engine.dtype=float32.")
        if any(width % _WIDE for width in (self.head_dim, self.hidden, ffn)):
            raise ConfigurationError(
                f"engine.compile: takes widths that are multiples of {_WIDE}; this model's are "
                f"{self.head_dim} (a head), {self.hidden} (hidden) and {ffn} (ffn). Set "
                "engine.compile=false."
            )
        self._kernel = _compiled(self.heads, self.kv_heads, self.head_dim)

    def decode(self, cache: Cache, slots: Ints, ids: Ints) -> Tensor:
        """As the decoder's own."""
        slots = np.ascontiguousarray(slots)
        positions = cache.lengths[slots]
        longest, rows = int(positions.max()) + 1, len(slots)
        cache.ensure(longest)
        self._ensure_tables(longest)
        x = self.embedding[torch.from_numpy(ids)]
        normed, mixed = torch.empty_like(x), x.new_empty(rows, self.heads * self.head_dim)
        gated = x.new_empty(rows, self.layers[0].down.shape[1])
        scores = x.new_empty(self.heads // self.kv_heads * (cache.capacity + _WIDE))
        tables = (self._cos.data_ptr(), self._sin.data_ptr())
        for number, layer in enumerate(self.layers):
            self._norm(x, layer.norm_in, normed)
            qkv = F.linear(normed, layer.qkv, layer.qkv_bias)
            self._kernel.attend(
                *(rows, slots.ctypes.data, positions.ctypes.data, qkv.data_ptr()),
                *(None if layer.qk_norm is None else layer.qk_norm.data_ptr(), self.eps),
                *(self.scale, *tables, cache.keys[number].data_ptr()),
                *(cache.values[number].data_ptr(), cache.capacity),
                *(scores.data_ptr(), mixed.data_ptr()),
            )
            x = x + F.linear(mixed, layer.out, layer.out_bias)
            self._norm(x, layer.norm_mid, normed)
            both = F.linear(normed, layer.gate_up)
            self._kernel.gate(rows, gated.shape[1], both.data_ptr(), gated.data_ptr())
            x = torch.addmm(x, gated, layer.down.t())
        cache.lengths[slots] += 1
        return x

    def _norm(self, x: Tensor, weight: Tensor, out: Tensor) -> None:
        given = (x.data_ptr(), weight.data_ptr(), self.eps, out.data_ptr())
        self._kernel.norm(*x.shape, *given)


def find_compiler() -> str | None:
    """The C++ compiler that `CXX` names or the PATH has, if any."""
    return next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), *_COMPILERS))), None)


def _compiled(heads: int, kv_heads: int, head_dim: int) -> Any:
    """The kernel for a shape, loaded."""
    compiler = find_compiler()
    if compiler is None:
        raise ConfigurationError(
            "engine.compile: needs a C++ compiler, and there is no g++ or clang++ on the PATH. "
            "Install one, or set engine.compile=false."
        )
    shape = {"HEADS": heads, "KV_HEADS": kv_heads, "HEAD_DIM": head_dim}
    flags = ["-O3", "-march=native", "-std=gnu++17", "-shared", "-fPIC"]
    defined = [f"-D{name}={value}" for name, value in shape.items()]
    with TemporaryDirectory(prefix="progrl-kernel-") as folder:
        target = str(Path(folder) / "kernel.so")
        done = subprocess.run(
            [compiler, *flags, *defined, str(_SOURCE), "-o", target], capture_output=True, text=True
        )
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["it said nothing"]
            raise ConfigurationError(
                f"engine.compile: {compiler} could not compile the decode step ({said[0]}). Set "
                "engine.compile=false."
            )
        kernel = ctypes.CDLL(target)
    kernel.attend.argtypes = [_N, _P, _P, _P, _P, _F, _F, _P, _P, _P, _P, _N, _P, _P]
    kernel.norm.argtypes = [_N, _N, _P, _P, _F, _P]
    kernel.gate.argtypes = [_N, _N, _P, _P]
    for function in (kernel.attend, kernel.norm, kernel.gate):
        function.restype = None
    return kernel
