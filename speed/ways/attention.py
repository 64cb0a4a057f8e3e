"""Attention alone, over caches of the workload's lengths: the part of a turn that must grow."""

import time

import numpy as np
import torch
import torch.nn.functional as F

from progrl.agent.engines.compiled import CompiledDecoder
from progrl.agent.model import make_model
from speed.workload import Workload

NARROW = 16
"""Of a model that does little but attend: the least that the kernels take."""


class KernelAttention:
    """By the kernels: a decoder with the workload's heads, and next to nothing between them."""

    def __init__(self, work: Workload) -> None:
        shape, self.work = work.shape, work
        model = make_model(
            vocabulary=NARROW,
            hidden=NARROW,
            layers=shape.layers,
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            ffn=NARROW,
            window=work.window,
            seed=1,
        )
        self._decoder = CompiledDecoder(model, torch.float32)
        self._cache = self._decoder.new_cache(work.conversations)
        self._cache.ensure(work.length)
        self._cache.keys.normal_()
        self._cache.values.normal_()

    @torch.inference_mode()
    def seconds(self, turn: int) -> float:
        """Of attention in a turn (from 0), of CPU time: a read, then one token after another."""
        work, slots = self.work, np.arange(self.work.conversations)
        counts = np.full_like(slots, work.read)
        self._cache.lengths[:] = turn * (work.read + work.sampled)
        ids = np.zeros(counts.sum(), dtype=np.int64)
        start = time.process_time()
        self._decoder.read(self._cache, slots, counts, ids)
        for _ in range(work.sampled):
            self._decoder.decode(self._cache, slots, ids[: len(slots)])
        return time.process_time() - start


class Attention:
    """By torch: keys and values of all conversations at their last length, whatever they hold."""

    def __init__(self, work: Workload) -> None:
        shape, self.work = work.shape, work
        size = (shape.layers, work.conversations, shape.kv_heads, work.length, shape.head_dim)
        # Random: sums over zeros would be as fast, but denormal numbers would not.
        self.keys, self.values = torch.randn(size), torch.randn(size)
        queries = (work.conversations, shape.heads, work.read, shape.head_dim)
        self.queries = torch.randn(queries)

    @torch.inference_mode()
    def seconds(self, turn: int) -> float:
        """Of attention in a turn (from 0), of CPU time: a read, then one token after another."""
        work, begin = self.work, turn * (self.work.read + self.work.sampled)
        start = time.process_time()
        self._read(begin, begin + work.read)
        for length in range(begin + work.read, begin + work.read + work.sampled):
            self._decode(length)
        return time.process_time() - start

    def _read(self, begin: int, end: int) -> None:
        grouped = self.work.shape.heads != self.work.shape.kv_heads
        seen = torch.ones(end - begin, end, dtype=torch.bool).tril(begin)
        for keys, values in zip(self.keys, self.values, strict=True):
            F.scaled_dot_product_attention(
                self.queries, keys[:, :, :end], values[:, :, :end], seen, enable_gqa=grouped
            )

    def _decode(self, length: int) -> None:
        shape, rows = self.work.shape, self.work.conversations * self.work.shape.kv_heads
        query = self.queries[:, :, 0].reshape(rows, shape.heads // shape.kv_heads, shape.head_dim)
        for keys, values in zip(self.keys, self.values, strict=True):
            near = keys.flatten(0, 1)[:, :length]
            scores = torch.bmm(query, near.transpose(1, 2))
            torch.bmm(torch.softmax(scores, dim=-1), values.flatten(0, 1)[:, :length])
