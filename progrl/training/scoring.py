"""Log-probabilities of chosen tokens, without the logits of all the others."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from progrl.config.agent import Dtype

CHUNK = 4096


class Scorer(nn.Module):
    """A causal language model that scores tokens; what trains is wrapped in this.

    With dtype "bfloat16" the layers' matrix products are in bfloat16; the weights and the head,
    whose errors would enter the log-probabilities undamped, are as they are.
    """

    def __init__(self, model: Any, dtype: Dtype = "float32") -> None:
        super().__init__()
        self.model = model
        self._half = dtype == "bfloat16"

    def forward(self, ids: Tensor, mask: Tensor, temperature: float = 1.0) -> Tensor:
        """Score the tokens that `mask` selects.

        Sequences are padded on the right, where causal attention keeps padding from mattering;
        so no attention mask is built.

        Args:
            ids: [B, T] token ids.
            mask: [B, T-1] whether token t+1 is to be scored.
            temperature: logits are divided by it, as in sampling.

        Returns:
            log-probabilities [N] in nats, N the number of selected tokens, row by row.
        """
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=self._half):
            hidden = self.model.base_model(input_ids=ids, use_cache=False).last_hidden_state
        chosen, targets = hidden[:, :-1][mask], ids[:, 1:][mask]
        head = self.model.get_output_embeddings()
        parts = []
        for at in range(0, len(targets), CHUNK):
            piece = chosen[at : at + CHUNK], targets[at : at + CHUNK]
            if torch.is_grad_enabled() and len(targets) > CHUNK:
                parts.append(checkpoint(_score, head, *piece, temperature, use_reentrant=False))
            else:
                parts.append(_score(head, *piece, temperature))
        return torch.cat(parts) if parts else hidden.new_zeros(0)


def _score(head: nn.Module, hidden: Tensor, targets: Tensor, temperature: float) -> Tensor:
    logprobs = torch.log_softmax(head(hidden).float() / temperature, dim=-1)
    return logprobs.gather(-1, targets[:, None]).squeeze(-1)
