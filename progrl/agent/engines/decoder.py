"""The forward pass of Qwen- and Llama-type decoders over a cache of slots.

RMSNorm, rotary positions, grouped queries, SwiGLU, with or without norms on queries and keys,
biases and a tied head. Two passes share one set of layers: `read` takes any number of new tokens of
several conversations, `decode` one token each of many.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from progrl.agent.engines.cache import Cache, slot_bytes
from progrl.errors import ConfigurationError, EngineFault

Ints = NDArray[np.int64]
_KINDS = ("qwen3", "qwen2", "llama", "mistral")
_BLOCK = 32  # slots whose attention runs over one length
_ROUND = 32  # lengths are rounded up to a multiple of this


@dataclass(slots=True)
class Layer:
    """One decoder layer's weights; q, k and v are one matrix, and so are gate and up."""

    norm_in: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    qk_norm: Tensor | None  # [heads + kv_heads, head_dim]
    out: Tensor
    out_bias: Tensor | None
    norm_mid: Tensor
    gate_up: Tensor
    down: Tensor


class Decoder:
    """A copy of a model's weights, arranged for sampling.

    It is a copy, so that a trainer may go on changing the model: what is being sampled stays one
    policy until `take` is called.

    Raises:
        ConfigurationError: the model is of an architecture that this decoder does not know.
    """

    def __init__(self, model: PreTrainedModel, dtype: torch.dtype) -> None:
        config: Any = model.config
        if config.model_type not in _KINDS or getattr(config, "use_sliding_window", False):
            raise ConfigurationError(
                f"engine.kind: local does not know the architecture {config.model_type!r}; it "
                f"samples from {', '.join(_KINDS)} without sliding windows."
            )
        self.dtype = dtype
        self.heads: int = config.num_attention_heads
        self.kv_heads: int = config.num_key_value_heads
        self.head_dim: int = (
            getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        )
        self.hidden: int = config.hidden_size
        self.layers_count: int = config.num_hidden_layers
        self.vocabulary: int = config.vocab_size
        self.window: int = config.max_position_embeddings
        self.eps: float = config.rms_norm_eps
        self.scale = self.head_dim**-0.5
        self._rotary: Any = _parts(model)[0].rotary_emb
        self._cos = self._sin = torch.empty(0, self.head_dim)
        self.take(model)

    @torch.no_grad()
    def take(self, model: PreTrainedModel) -> None:
        """Copy the weights of a live model of the same shape."""
        body, head = _parts(model)
        shape = (len(body.layers), *body.embed_tokens.weight.shape)
        if shape != (self.layers_count, self.vocabulary, self.hidden):
            raise EngineFault(
                f"A model of (layers, vocabulary, width) {shape} cannot take the place of one of "
                f"{(self.layers_count, self.vocabulary, self.hidden)}."
            )
        self.layers = [self._layer(layer) for layer in body.layers]
        self.embedding = self._copy(body.embed_tokens.weight)
        self.norm = self._copy(body.norm.weight)
        tied = head.weight is body.embed_tokens.weight
        self.head = self.embedding if tied else self._copy(head.weight)

    def _copy(self, *parts: Tensor) -> Tensor:
        return torch.cat([part.detach().to("cpu", self.dtype) for part in parts])

    def _layer(self, layer: Any) -> Layer:
        a, m = layer.self_attn, layer.mlp
        projections = (a.q_proj, a.k_proj, a.v_proj)
        biased = a.q_proj.bias is not None
        norms = None
        if hasattr(a, "q_norm"):
            q = a.q_norm.weight.expand(self.heads, -1)
            norms = self._copy(q, a.k_norm.weight.expand(self.kv_heads, -1))
        return Layer(
            norm_in=self._copy(layer.input_layernorm.weight),
            qkv=self._copy(*(p.weight for p in projections)),
            qkv_bias=self._copy(*(p.bias for p in projections)) if biased else None,
            qk_norm=norms,
            out=self._copy(a.o_proj.weight),
            out_bias=self._copy(a.o_proj.bias) if a.o_proj.bias is not None else None,
            norm_mid=self._copy(layer.post_attention_layernorm.weight),
            gate_up=self._copy(m.gate_proj.weight, m.up_proj.weight),
            down=self._copy(m.down_proj.weight),
        )

    def slot_bytes(self, length: int) -> int:
        """Bytes of a cache's slot once a conversation of `length` tokens is held."""
        return slot_bytes(self.layers_count, self.kv_heads, self.head_dim, self.dtype, length)

    def new_cache(self, slots: int) -> Cache:
        """An empty cache that fits this decoder."""
        return Cache(self.layers_count, slots, self.kv_heads, self.head_dim, self.dtype)

    def logits(self, hidden: Tensor) -> Tensor:
        """[rows, vocabulary] in float32 from the rows' last hidden states."""
        normed = F.rms_norm(hidden, (self.hidden,), self.norm, self.eps)
        return F.linear(normed, self.head).float()

    def decode(self, cache: Cache, slots: Ints, ids: Ints) -> Tensor:
        """Append one token to each slot; the hidden states [rows, hidden].

        `slots` ascends; `cache.lengths` grows by one for each.
        """
        positions = cache.lengths[slots]
        cache.ensure(int(positions.max()) + 1)
        plan = _plan(slots, positions, self.kv_heads, self.dtype)
        where, at = torch.from_numpy(slots), torch.from_numpy(positions)
        cos, sin = self._rotation(at)
        x = self.embedding[torch.from_numpy(ids)]
        for number, layer in enumerate(self.layers):
            q, k, v = self._qkv(layer, x, cos, sin)
            cache.keys[number][where, :, at] = k
            cache.values[number][where, :, at] = v
            x = self._rest(layer, x, plan.attend(q, cache, number, self.scale))
        cache.lengths[slots] += 1
        return x

    def read(self, cache: Cache, slots: Ints, counts: Ints, ids: Ints) -> Tensor:
        """Append `counts` tokens to the slots; the states [rows, hidden] of the last ones.

        `ids` holds the rows' tokens end to end. Layers run over the tokens alone; only
        attention is padded.
        """
        starts, widest = cache.lengths[slots], int(counts.max())
        longest = _round(int((starts + counts).max()))
        cache.ensure(longest)
        source = _span(slots)
        row = np.repeat(np.arange(len(slots)), counts)
        ends = np.cumsum(counts)
        offset = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        mask = self._read_mask(starts, counts, widest, longest)
        rows, offsets = torch.from_numpy(row), torch.from_numpy(offset)
        token_slots = torch.from_numpy(slots[row])
        at = torch.from_numpy(starts[row] + offset)
        cos, sin = self._rotation(at)
        x = self.embedding[torch.from_numpy(ids)]
        even = int(counts.min()) == widest  # nothing to pad
        for number, layer in enumerate(self.layers):
            q, k, v = self._qkv(layer, x, cos, sin)
            cache.keys[number][token_slots, :, at] = k
            cache.values[number][token_slots, :, at] = v
            if even:
                padded = q.reshape(len(slots), widest, self.heads, self.head_dim)
            else:
                padded = q.new_zeros(len(slots), widest, self.heads, self.head_dim)
                padded[rows, offsets] = q
            mixed = F.scaled_dot_product_attention(
                padded.transpose(1, 2),
                _taken(cache.keys[number], source, longest),
                _taken(cache.values[number], source, longest),
                attn_mask=mask,
                scale=self.scale,
                enable_gqa=self.heads != self.kv_heads,
            )
            mixed = mixed.transpose(1, 2)
            mixed = mixed if even else mixed[rows, offsets]
            x = self._rest(layer, x, mixed.reshape(len(x), -1))
        cache.lengths[slots] += counts
        return x[torch.from_numpy(ends - 1)]

    def _read_mask(self, starts: Ints, counts: Ints, widest: int, longest: int) -> Tensor:
        """[rows, 1, widest, longest], 0 where a query may look and -inf elsewhere; one row where
        all are the same.

        Padded queries look at the first key, so that no row of the mask is empty.
        """
        if (starts == starts[0]).all() and (counts == counts[0]).all():
            starts, counts = starts[:1], counts[:1]
        last = starts[:, None] + np.minimum(np.arange(widest)[None], counts[:, None] - 1)
        seen = torch.arange(longest)[None, None] <= torch.from_numpy(last)[:, :, None]
        mask = torch.zeros(seen.shape, dtype=self.dtype).masked_fill_(~seen, float("-inf"))
        return mask.unsqueeze(1)

    def _rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """cos and sin [tokens, 1, head_dim / 2] at the positions."""
        self._ensure_tables(int(positions.max()) + 1)
        return self._cos[positions].unsqueeze(1), self._sin[positions].unsqueeze(1)

    def _ensure_tables(self, needed: int) -> None:
        """Make cos and sin, [positions, head_dim / 2], reach as far as `needed`."""
        if needed <= len(self._cos):
            return
        length = max(needed, 2 * len(self._cos), 256)
        device = self._rotary.inv_freq.device  # where a trainer has moved it
        dummy = torch.empty(0, dtype=self.dtype, device=device)
        with torch.no_grad():
            cos, sin = self._rotary(dummy, torch.arange(length, device=device)[None])
        half = self.head_dim // 2
        self._cos, self._sin = (t[0, :, :half].cpu().contiguous() for t in (cos, sin))

    def _qkv(
        self, layer: Layer, x: Tensor, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries [tokens, heads, d], keys and values [tokens, kv_heads, d], rotated."""
        normed = F.rms_norm(x, (self.hidden,), layer.norm_in, self.eps)
        qkv = F.linear(normed, layer.qkv, layer.qkv_bias)
        qkv = qkv.view(len(x), self.heads + 2 * self.kv_heads, self.head_dim)
        both = self.heads + self.kv_heads
        qk, v = qkv[:, :both], qkv[:, both:]
        if layer.qk_norm is not None:
            qk = F.rms_norm(qk, (self.head_dim,), None, self.eps).mul_(layer.qk_norm)
        first, second = qk.chunk(2, dim=-1)
        rotated = torch.cat((first * cos, second * cos), dim=-1)
        half = self.head_dim // 2
        rotated[..., :half].addcmul_(second, sin, value=-1)
        rotated[..., half:].addcmul_(first, sin)
        q, k = rotated[:, : self.heads], rotated[:, self.heads :]
        return q, k, v

    def _rest(self, layer: Layer, x: Tensor, mixed: Tensor) -> Tensor:
        """What follows attention: output projection and feed-forward, both added to `x`."""
        x = x + F.linear(mixed, layer.out, layer.out_bias)
        normed = F.rms_norm(x, (self.hidden,), layer.norm_mid, self.eps)
        gate, up = F.linear(normed, layer.gate_up).chunk(2, dim=-1)
        return x.add_(F.linear(F.silu(gate).mul_(up), layer.down))


def _parts(model: PreTrainedModel) -> tuple[Any, Any]:
    """The decoder without its head, and the head."""
    loose: Any = model
    return loose.base_model, loose.get_output_embeddings()


def _round(length: int) -> int:
    return -(-length // _ROUND) * _ROUND


@dataclass(slots=True)
class _Plan:
    """How one decode step attends: over blocks of neighbouring slots, each over its own length.

    Working on the cache in place costs rows for slots that rest; where few of a block's slots
    decode, its keys are copied out instead.
    """

    rows: list[slice]
    sources: list[slice | Tensor]
    places: list[Tensor | None]
    masks: list[Tensor]

    def attend(self, q: Tensor, cache: Cache, layer: int, scale: float) -> Tensor:
        """[rows, heads * d] from queries [rows, heads, d]."""
        heads, d = q.shape[1:]
        kv_heads = cache.keys.shape[2]
        out = torch.empty(len(q), heads * d, dtype=q.dtype)
        for rows, source, place, mask in zip(
            self.rows, self.sources, self.places, self.masks, strict=True
        ):
            n, length = len(mask) // kv_heads, mask.shape[2]
            keys = _taken(cache.keys[layer], source, length).flatten(0, 1)
            values = _taken(cache.values[layer], source, length).flatten(0, 1)
            if place is None:
                block = q[rows].reshape(n * kv_heads, heads // kv_heads, d)
            else:
                spread = q.new_zeros(n, heads, d)
                spread[place] = q[rows]
                block = spread.view(n * kv_heads, heads // kv_heads, d)
            scores = torch.baddbmm(mask, block, keys.transpose(1, 2), alpha=scale)
            weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
            mixed = torch.bmm(weights, values).view(n, heads * d)
            out[rows] = mixed if place is None else mixed[place]
        return out


def _taken(layer: Tensor, source: slice | Tensor, length: int) -> Tensor:
    """[slots, kv_heads, length, d] of the slots `source`: a view for a slice, else a copy."""
    cut = layer[:, :, :length]
    return cut[source] if isinstance(source, slice) else cut.index_select(0, source)


def _span(slots: Ints) -> slice | Tensor:
    """Slots that stand side by side as a slice, others as they are."""
    if (np.diff(slots) == 1).all():
        return slice(int(slots[0]), int(slots[-1]) + 1)
    return torch.from_numpy(slots)


def _plan(slots: Ints, positions: Ints, kv_heads: int, dtype: torch.dtype) -> _Plan:
    """The blocks of a decode step; `positions` are those of the tokens being added.

    Masks are [slots * kv_heads, 1, length], 0 where a token may look and -inf elsewhere.
    """
    plan = _Plan([], [], [], [])
    edges = np.searchsorted(slots, np.arange(0, int(slots[-1]) + _BLOCK + 1, _BLOCK))
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if begin == end:
            continue
        chosen = slots[begin:end]
        low, high = int(chosen[0]), int(chosen[-1]) + 1
        length = _round(int(positions[begin:end].max()) + 1)
        last = positions[begin:end]
        dense = 2 * (end - begin) > high - low
        resting = dense and end - begin < high - low
        if resting:
            last = np.zeros(high - low, dtype=np.int64)
            last[chosen - low] = positions[begin:end]
        seen = torch.arange(length)[None] <= torch.from_numpy(last)[:, None]
        mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, float("-inf"))
        plan.rows.append(slice(begin, end))
        plan.sources.append(slice(low, high) if dense else torch.from_numpy(chosen))
        plan.places.append(torch.from_numpy(chosen - low) if resting else None)
        plan.masks.append(mask.repeat_interleave(kv_heads, dim=0).unsqueeze(1))
    return plan
