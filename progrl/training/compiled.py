"""A small model's layers for training on a CPU, with what lies between the products from C++.

Forward and backward of norms, rotations, attention and the gate are in `kernel.cpp`, compiled for
the width of a head and this processor; the products are oneDNN's, which on some processors uses
wider instructions than what torch takes for float32 otherwise. The last layer is computed only
where a token is scored. All is float32, and on one thread but for the products.
"""

import ctypes
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from progrl.agent.native import compiled

_SOURCE = Path(__file__).with_name("kernel.cpp")
_SIDE = 32  # to whose multiple the kernel rounds the tokens of a row
_P, _N, _F = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
_ARGUMENTS = {
    "norm": [_N, _N, _P, _P, _F, _P, _P],
    "norm_back": [_N, _N, *[_P] * 6],
    "turn": [_N, _N, _P, _P, _F, *[_P] * 4],
    "turn_back": [_N, _N, *[_P] * 8],
    "gate": [_N, *[_P] * 3],
    "gate_back": [_N, *[_P] * 5],
    "attention": [_P, _F, *[_P] * 6],
    "attention_back": [_P, _F, *[_P] * 10],
}


class CompiledBody:
    """Computes what the body of a Qwen3-architecture model does, up to the last digits.

    It reads the model's own weights and hangs its results on them.

    Args:
        config: the model's.

    Raises:
        ConfigurationError: there is no compiler, it fails, or a width is no multiple of 16.
    """

    def __init__(self, config: Any) -> None:
        shape = {
            "HEAD_DIM": config.head_dim,
            "HIDDEN": config.hidden_size,
            "FFN": config.intermediate_size,
        }
        self._library = compiled(_SOURCE, "agent.compile", shape)
        for name, arguments in _ARGUMENTS.items():
            function = getattr(self._library, name)
            function.argtypes, function.restype = arguments, None

    def __call__(
        self,
        body: Any,
        ids: Tensor,
        sources: Tensor,
        positions: Tensor | None,
        visible: Tensor | None,
    ) -> Tensor:
        """[N, hidden], the last states at `sources` [N], N above 0; all as in `scoring.Inputs`."""
        length, kernels, eps = ids.shape[1], self._library, body.norm.variance_epsilon
        everywhere = torch.arange(ids.numel())
        x = body.embed_tokens(ids)
        angles = _angles(body, x, everywhere % length if positions is None else positions)
        x = x.flatten(0, 1)
        places, each = torch.unique(sources, return_inverse=True)
        heads = body.config.num_attention_heads
        rows = _Rows(ids.shape, heads, everywhere, visible)
        asking = angles
        for layer in body.layers:
            a, m = layer.self_attn, layer.mlp
            normed = _norm(x, layer.input_layernorm.weight, eps, kernels)
            k = _turn(linear(normed, a.k_proj.weight), a.k_norm.weight, eps, angles, kernels)
            v = linear(normed, a.v_proj.weight)
            if layer is body.layers[-1]:
                rows = _Rows(ids.shape, heads, places, visible)
                asking, x, normed = (
                    (angles[0][places], angles[1][places]),
                    x[places],
                    normed[places],
                )
            q = _turn(linear(normed, a.q_proj.weight), a.q_norm.weight, eps, asking, kernels)
            x = x + linear(_attend(q, k, v, rows, kernels), a.o_proj.weight)
            normed = _norm(x, layer.post_attention_layernorm.weight, eps, kernels)
            gate, up = linear(normed, m.gate_proj.weight), linear(normed, m.up_proj.weight)
            x = x + linear(_gate(gate, up, kernels), m.down_proj.weight)
        states: Tensor = _norm(x, body.norm.weight, eps, kernels)[each]
        return states


def linear(x: Tensor, matrix: Tensor) -> Tensor:
    """x [rows, in] times a matrix [out, in]."""
    product: Tensor = _multiply(x, matrix)
    return product


@torch.no_grad()
def _angles(body: Any, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin [tokens, head_dim / 2]."""
    half = body.config.head_dim // 2
    cosine, sine = body.rotary_emb(x, positions.view(1, -1))
    return cosine[0, :, :half].contiguous(), sine[0, :, :half].contiguous()


class _Rows:
    """Tokens [batch, length], which of them ask, and what they see.

    Args:
        places: [Q] of the queries among all tokens, ascending.
        visible: [batch, 1, length, length] of booleans; None where a token sees all before it.
    """

    class Struct(ctypes.Structure):
        """As the kernel takes them."""

        _fields_ = [
            *((name, _N) for name in ("batch", "length", "heads")),
            *((name, _P) for name in ("ends", "lengths", "visible")),
        ]

    def __init__(
        self, shape: torch.Size, heads: int, places: Tensor, visible: Tensor | None
    ) -> None:
        batch, self.length = shape
        self.heads = heads
        ends = torch.searchsorted(places, torch.arange(1, batch + 1) * self.length)
        seen = None if visible is None else visible.contiguous()
        self._held = ends, places % self.length + 1, seen
        self._struct = self.Struct(batch, self.length, heads, *map(_address, self._held))
        self.address = ctypes.addressof(self._struct)


def _address(given: Any) -> Any:
    return given.data_ptr() if isinstance(given, Tensor) else given


def _call(function: Any, *given: Any) -> None:
    """Call a kernel; of tensors, which lie in one piece, it gets the address."""
    assert all(t.is_contiguous() for t in given if isinstance(t, Tensor))
    function(*map(_address, given))


def _product(x: Tensor, matrix: Tensor) -> Tensor:
    if not _ONEDNN:
        return F.linear(x, matrix)
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, matrix, None, "none", [], "")
    return product


_backends: Any = torch.backends
_ONEDNN: bool = _backends.mkldnn.is_available()


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor) -> Tensor:
        ctx.save_for_backward(x, matrix)
        return _product(x, matrix)

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, Tensor]:
        x, matrix = ctx.saved_tensors
        return _product(given, matrix.t()), _product(given.t(), x.t())


class _Norm(torch.autograd.Function):
    """x [rows, width] over its root mean square, times a weight [width]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float, kernels: Any) -> Tensor:
        out, by = torch.empty_like(x), x.new_empty(len(x))
        _call(kernels.norm, *x.shape, x, weight, eps, out, by)
        ctx.save_for_backward(x, weight, by)
        ctx.kernels = kernels
        return out

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, by = ctx.saved_tensors
        back, change = torch.empty_like(x), torch.zeros_like(weight)
        _call(ctx.kernels.norm_back, *x.shape, x, weight, by, given.contiguous(), back, change)
        return back, change, None, None


class _Turn(torch.autograd.Function):
    """Heads x [rows, heads * d], each normed and turned by its row's angles [rows, d / 2]."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, eps: float, angles: tuple[Tensor, Tensor], kernels: Any
    ) -> Tensor:
        out, by = torch.empty_like(x), x.new_empty(len(x), x.shape[1] // len(weight))
        _call(kernels.turn, *by.shape, x, weight, eps, *angles, out, by)
        ctx.save_for_backward(x, weight, by, *angles)
        ctx.kernels = kernels
        return out

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, *rest = ctx.saved_tensors
        back, change = torch.empty_like(x), torch.zeros_like(weight)
        held = (x, weight, *rest, given.contiguous())
        _call(ctx.kernels.turn_back, *rest[0].shape, *held, back, change)
        return back, change, None, None, None


class _Gate(torch.autograd.Function):
    """silu(gate) * up."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor, kernels: Any) -> Tensor:
        out = torch.empty_like(up)
        _call(kernels.gate, up.numel(), gate, up, out)
        ctx.save_for_backward(gate, up)
        ctx.kernels = kernels
        return out

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        gate, up = ctx.saved_tensors
        backs = torch.empty_like(gate), torch.empty_like(up)
        _call(ctx.kernels.gate_back, up.numel(), gate, up, given.contiguous(), *backs)
        return *backs, None


class _Attention(torch.autograd.Function):
    """Of queries [Q, heads * d], keys and values [tokens, heads * d]; as the queries."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, rows: _Rows, kernels: Any) -> Tensor:
        d = q.shape[1] // rows.heads
        out, logs = torch.empty_like(q), q.new_empty(len(q), rows.heads)
        room = q.new_empty((4 * d + 4) * (rows.length + _SIDE))
        _call(kernels.attention, rows.address, d**-0.5, q, k, v, out, logs, room)
        ctx.save_for_backward(q, k, v, out, logs)
        ctx.rest = rows, kernels
        return out

    @staticmethod
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        rows, kernels = ctx.rest
        d = saved[0].shape[1] // rows.heads
        backs = [torch.empty_like(t) for t in saved[:3]]
        room = given.new_empty((6 * d + 8) * (rows.length + _SIDE))
        held = (*saved, given.contiguous(), *backs)
        _call(kernels.attention_back, rows.address, d**-0.5, *held, room)
        return *backs, None, None


# As untyped as torch has them.
_multiply: Any = _Linear.apply
_norm: Any = _Norm.apply
_turn: Any = _Turn.apply
_gate: Any = _Gate.apply
_attend: Any = _Attention.apply
