"""Log-probabilities of chosen tokens, without the logits of all the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from progrl.config.agent import AgentConfig, Dtype, EmbeddedAgent
from progrl.training.compiled import CompiledBody, linear

CHUNK = 4096


class TokenBias(NamedTuple):
    """Single entries of the logits to which something is added.

    Attributes:
        rows: [M] of which scored tokens, in order.
        ids: [M] at which ids.
        values: [M] what is added.
    """

    rows: Tensor
    ids: Tensor
    values: Tensor

    @classmethod
    def of(cls, entries: Sequence[tuple[int, int, float]]) -> "TokenBias":
        """From triples of row, id and value, rows never falling."""
        rows, ids, values = zip(*entries, strict=True)
        return cls(torch.tensor(rows), torch.tensor(ids), torch.tensor(values))

    def part(self, start: int, end: int) -> "TokenBias":
        """The entries of the rows [start, end), counted from `start`."""
        inside = (self.rows >= start) & (self.rows < end)
        return TokenBias(self.rows[inside] - start, self.ids[inside], self.values[inside])


class Inputs(NamedTuple):
    """Rows of tokens, and which of them are scored.

    A row is one conversation, or several as a tree: what they have in common stands once in it.

    Attributes:
        ids: [B, T] token ids, padded on the right.
        sources: [N] where each scored token is predicted, as an index into the B * T places.
        targets: [N] ids of the scored tokens.
        bias: added to their logits, as in sampling.
        positions: [B, T] of the tokens in their conversations; None where rows are conversations.
        visible: [B, 1, T, T] what a token may look at; None with `positions`.
    """

    ids: Tensor
    sources: Tensor
    targets: Tensor
    bias: TokenBias | None = None
    positions: Tensor | None = None
    visible: Tensor | None = None

    @classmethod
    def of(cls, ids: Tensor, mask: Tensor, bias: TokenBias | None = None) -> "Inputs":
        """Of conversations `ids` [B, T] the tokens t+1 for which `mask` [B, T-1] holds."""
        places = torch.arange(ids.numel()).view(ids.shape)
        return cls(ids, places[:, :-1][mask], ids[:, 1:][mask], bias)

    def to(self, device: torch.device) -> "Inputs":
        """The same on a device."""
        return Inputs(
            self.ids.to(device),
            self.sources.to(device),
            self.targets.to(device),
            TokenBias(*(t.to(device) for t in self.bias)) if self.bias is not None else None,
            None if self.positions is None else self.positions.to(device),
            None if self.visible is None else self.visible.to(device),
        )


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How a model's layers are computed.

    Attributes:
        dtype: of their matrix products. With "bfloat16" the weights and the head, whose errors
            would enter the log-probabilities undamped, stay as they are.
        kernels: by the kernels of `compiled`, on a CPU.
    """

    dtype: Dtype = "float32"
    kernels: bool = False

    @classmethod
    def of(cls, config: AgentConfig) -> "Arithmetic":
        """As the configuration has it."""
        return cls(config.dtype, isinstance(config, EmbeddedAgent) and config.compile)


TORCH = Arithmetic()


class Scorer(nn.Module):
    """A causal language model that scores tokens; what trains is wrapped in this.

    Raises:
        ConfigurationError: the kernels cannot be compiled.
    """

    def __init__(self, model: Any, arithmetic: Arithmetic = TORCH) -> None:
        super().__init__()
        self.model = model
        self._half = arithmetic.dtype == "bfloat16"
        self._body = CompiledBody(model.config) if arithmetic.kernels else None

    def forward(self, given: Inputs, temperature: float = 1.0) -> Tensor:
        """Score the chosen tokens.

        Conversations are padded on the right, where causal attention keeps padding from mattering;
        so for these no attention mask is built.

        Args:
            temperature: logits are divided by it, as in sampling.

        Returns:
            log-probabilities [N] in nats, on the CPU whatever computes them.
        """
        given = given.to(self.model.device)
        head: Any = self.model.get_output_embeddings()
        targets, bias = given.targets, given.bias
        if self._body is not None and len(targets):
            rows = given.ids, given.sources, given.positions, given.visible
            chosen = self._body(self.model.base_model, *rows)
            head = partial(linear, matrix=head.weight)
        else:
            chosen = self._hidden(given)
        parts = []
        for at in range(0, len(targets), CHUNK):
            end = at + CHUNK
            some = bias.part(at, end) if bias is not None else None
            piece = chosen[at:end], targets[at:end], temperature, some
            if torch.is_grad_enabled() and len(targets) > CHUNK:
                parts.append(checkpoint(_score, head, *piece, use_reentrant=False))
            else:
                parts.append(_score(head, *piece))
        # Of no token: an empty tensor that hangs on every weight, so that it has a gradient, 0.
        return (torch.cat(parts) if parts else head(chosen[:1]).flatten()[:0]).cpu()

    def _hidden(self, given: Inputs) -> Tensor:
        """[N, hidden], the model's last states where tokens are scored."""
        for layer in self.model.base_model.layers:  # which recompute only while they train
            layer.training |= getattr(layer, "gradient_checkpointing", False)
        with torch.autocast(given.ids.device.type, torch.bfloat16, enabled=self._half):
            hidden: Tensor = self.model.base_model(
                input_ids=given.ids,
                position_ids=given.positions,
                attention_mask=given.visible,
                use_cache=False,
            ).last_hidden_state
        return hidden.flatten(0, 1)[given.sources]


def _score(
    head: Callable[[Tensor], Tensor],
    hidden: Tensor,
    targets: Tensor,
    temperature: float,
    bias: TokenBias | None,
) -> Tensor:
    logits = head(hidden).float()
    if bias is not None:
        logits = logits.index_put((bias.rows, bias.ids), bias.values, accumulate=True)
    if temperature != 1.0:
        logits = logits / temperature
    logprobs = torch.log_softmax(logits, dim=-1)
    return logprobs.gather(-1, targets[:, None]).squeeze(-1)
