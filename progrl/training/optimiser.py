"""AdamW over a model that one or several processes train, with a state that fits into safetensors.

Several processes each hold the whole model and average their gradients (DDP, by accelerate), or
each a part of weights, gradients and optimiser state (FSDP). The second is the launcher's word, as
accelerate's configuration files give it; it decides what is held where, not what is computed.
"""

import copy
import os
from collections.abc import Iterable, Mapping
from typing import Any, cast

import torch
from accelerate import Accelerator
from torch import Tensor
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from progrl.errors import CheckpointError, ConfigurationError
from progrl.ranks import ALONE, Ranks
from progrl.training.scoring import TORCH, Arithmetic, Scorer

_SLOTS = ("exp_avg", "exp_avg_sq", "step")


def sharded() -> bool:
    """Whether the launcher wants weights and optimiser divided among the processes."""
    return os.environ.get("ACCELERATE_USE_FSDP", "").lower() in ("true", "1")


class Optimiser:
    """Trains a model: accumulate with `backward`, then `step`.

    Args:
        model: a causal language model; those of its weights that require a gradient are trained.
        learning_rate: the peak.
        weight_decay: AdamW's.
        max_norm: gradient norm above which gradients are scaled down.
        arithmetic: how the layers are computed.
        ranks: the processes whose gradients are added up; all call `backward` equally often.

    Raises:
        ConfigurationError: the kernels cannot be compiled, or are to compute on a GPU, or with
            weights that are divided.
    """

    def __init__(
        self,
        model: Any,
        learning_rate: float,
        weight_decay: float,
        max_norm: float,
        arithmetic: Arithmetic = TORCH,
        ranks: Ranks = ALONE,
    ) -> None:
        self.ranks, self.model = ranks, model
        self.peak, self.max_norm = learning_rate, max_norm
        cuda = torch.cuda.is_available()
        self._shards = ranks.size > 1 and sharded()
        if arithmetic.kernels and (cuda or self._shards):
            raise ConfigurationError(
                "agent.compile: its kernels compute whole weights on a CPU, and here "
                f"{'is a GPU' if cuda else 'they are divided (FSDP)'}. Set agent.compile=false."
            )
        self.scorer: Any
        if self._shards:
            # `model` stays whole on the CPU, for sampling and saving; a copy of it is trained.
            self._scorer = Scorer(copy.deepcopy(model), arithmetic).to("cuda" if cuda else "cpu")
            self.scorer = _divided(self._scorer, ranks.size)
        else:
            self._scorer = Scorer(model, arithmetic)
            self.scorer = Accelerator(cpu=not cuda).prepare(self._scorer)
        self._adam = torch.optim.AdamW(
            [p for _, p in self._named()], lr=learning_rate, weight_decay=weight_decay, foreach=True
        )
        self._adam.zero_grad()

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a micro-batch's share of the loss.

        What backward does with several processes' gradients is to average them.
        """
        (loss * self.ranks.size).backward()  # type: ignore[no-untyped-call]

    def step(self, share: float) -> float:
        """Update with learning rate `share * peak`; the gradient norm before clipping."""
        for group in self._adam.param_groups:
            group["lr"] = self.peak * share
        trained = [p for _, p in self._named()]
        norm = _whole(torch.nn.utils.clip_grad_norm_(trained, self.max_norm))
        self._adam.step()
        self._adam.zero_grad()
        self._publish()
        return float(norm)

    def _named(self) -> Iterable[tuple[str, Tensor]]:
        """What is trained; where it is divided, this process's parts of it."""
        if self._shards:
            cast(FSDPModule, self._scorer).reshard()
        return [(n, p) for n, p in self._scorer.model.named_parameters() if p.requires_grad]

    @torch.no_grad()
    def _publish(self) -> None:
        """Let `model` have the weights as they now are, where a divided copy is trained."""
        if self._shards:
            own = dict(self.model.named_parameters())
            for name, parameter in self._named():
                own[name].copy_(_whole(parameter))

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Model and optimiser state as two groups for a checkpoint.

        Whole, in however many processes it is held; where it is divided, all must call this.
        """
        state, trained = {}, list(self._named())
        for name, parameter in trained:
            for slot, value in self._adam.state.get(parameter, {}).items():
                state[f"{slot}/{name}"] = _whole(value)
        return {"model": {n: _whole(p) for n, p in trained}, "optimiser": state}

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
                parameter.copy_(_like(saved, parameter))
                slots = {s: groups["optimiser"].get(f"{s}/{name}") for s in _SLOTS}
                if all(value is not None for value in slots.values()):
                    self._adam.state[parameter] = {
                        s: value.clone() if s == "step" else _like(value.clone(), parameter)
                        for s, value in slots.items()
                        if value is not None
                    }
        self._publish()


def _divided(scorer: Scorer, processes: int) -> Any:
    """The scorer with its weights divided among the processes, layer by layer."""
    from torch.distributed.device_mesh import init_device_mesh

    loose: Any = fully_shard
    mesh = init_device_mesh("cuda" if torch.cuda.is_available() else "cpu", (processes,))
    for layer in scorer.model.base_model.layers:
        loose(layer, mesh=mesh)
    return loose(scorer, mesh=mesh)


def _whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def _like(tensor: Tensor, parameter: Tensor) -> Tensor:
    """`tensor` on the device of `parameter`, and divided as it is."""
    if isinstance(parameter, DTensor):
        tensor = tensor.to(parameter.device)
        return distribute_tensor(tensor, parameter.device_mesh, parameter.placements)
    return tensor.to(parameter.device)
