"""AdamW over an accelerate-prepared model, with a state that fits into safetensors."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from progrl.config.agent import Dtype
from progrl.errors import CheckpointError
from progrl.ranks import ALONE, Ranks
from progrl.training.scoring import Scorer

_SLOTS = ("exp_avg", "exp_avg_sq", "step")


class Optimiser:
    """Trains a model: accumulate with `backward`, then `step`.

    Args:
        model: a causal language model.
        learning_rate: the peak.
        weight_decay: AdamW's.
        max_norm: gradient norm above which gradients are scaled down.
        dtype: of the layers' matrix products (`Scorer`).
        ranks: the processes whose gradients are added up; all call `backward` equally often.
    """

    def __init__(
        self,
        model: Any,
        learning_rate: float,
        weight_decay: float,
        max_norm: float,
        dtype: Dtype = "float32",
        ranks: Ranks = ALONE,
    ) -> None:
        self.accelerator = Accelerator(cpu=not torch.cuda.is_available())
        self.ranks = ranks
        self.peak, self.max_norm = learning_rate, max_norm
        self._scorer = Scorer(model, dtype)
        self._adam = torch.optim.AdamW(
            self._scorer.parameters(), lr=learning_rate, weight_decay=weight_decay, foreach=True
        )
        self.scorer, self._prepared = self.accelerator.prepare(self._scorer, self._adam)
        self._prepared.zero_grad()

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a micro-batch's share of the loss.

        What backward does with several processes' gradients is to average them.
        """
        self.accelerator.backward(loss * self.ranks.size)

    def step(self, share: float) -> float:
        """Update with learning rate `share * peak`; the gradient norm before clipping."""
        for group in self._adam.param_groups:
            group["lr"] = self.peak * share
        norm = self.accelerator.clip_grad_norm_(self.scorer.parameters(), self.max_norm)
        self._prepared.step()
        self._prepared.zero_grad()
        return float(norm)

    def _named(self) -> Iterable[tuple[str, Tensor]]:
        return self._scorer.model.named_parameters()  # type: ignore[no-any-return]

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Model and optimiser state as two groups for a checkpoint."""
        state = {}
        for name, parameter in self._named():
            for slot, value in self._adam.state.get(parameter, {}).items():
                state[f"{slot}/{name}"] = value
        return {"model": dict(self._named()), "optimiser": state}

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Take up a checkpoint; CheckpointError if it is another model's."""
        with torch.no_grad():
            for name, parameter in self._named():
                saved = groups["model"].get(name)
                if saved is None or saved.shape != parameter.shape:
                    raise CheckpointError(
                        f"The checkpoint is another model's: {name} is missing or of another "
                        "shape. Remove the run's folder to start again."
                    )
                parameter.copy_(saved)
                slots = {s: groups["optimiser"].get(f"{s}/{name}") for s in _SLOTS}
                if all(value is not None for value in slots.values()):
                    self._adam.state[parameter] = {
                        s: value.clone() for s, value in slots.items() if value is not None
                    }
