"""Training two thin matrices beside each of a model's large ones (LoRA, Hu et al. 2021), by peft.

The model stays what it was, with some of its linear layers replaced. `folded` gives it back as a
plain model with what was learned added to its weights, for a while or for good.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from progrl.config.agent import LoraTuning
from progrl.errors import ConfigurationError
from progrl.extras import install_line

_NAME = "default"


def add_lora(model: Any, config: LoraTuning, seed: int) -> None:
    """Freeze `model` and add what is trained instead: in float32, and at first without effect.

    Args:
        seed: of the new weights; the global generator is left as it was.

    Raises:
        ConfigurationError: the model has no layers of those names, or peft is not installed.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise ConfigurationError(
            f"agent.tuning.kind: lora needs the package peft: {install_line('lora')}"
        ) from None
    linear = {n.rpartition(".")[2] for n, m in model.named_modules() if _is_linear(m)}
    if missing := sorted(set(config.targets) - linear):
        raise ConfigurationError(
            f"agent.tuning.targets: the model has no linear layer {', '.join(missing)}; it has "
            f"{', '.join(sorted(linear))}."
        )
    given = LoraConfig(
        r=config.rank, lora_alpha=config.alpha, target_modules=list(config.targets), lora_dropout=0
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        inject_adapter_in_model(given, model, adapter_name=_NAME)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in name)
        if parameter.requires_grad:
            parameter.data = parameter.data.float()


@contextmanager
def folded(model: Any) -> Iterator[Any]:
    """`model` as a plain one while the block runs; afterwards it is to the last bit as before."""
    layers = _layers(model)
    kept = [layer.base_layer.weight.data for _, _, layer in layers]
    fold(model)
    try:
        yield model
    finally:
        for (parent, name, layer), weight in zip(layers, kept, strict=True):
            layer.base_layer.weight.data = weight
            setattr(parent, name, layer)


@torch.no_grad()
def fold(model: Any) -> None:
    """Make `model` a plain one: what was learned becomes part of its weights."""
    for parent, name, layer in _layers(model):
        weight = layer.base_layer.weight
        # Added in float32 and rounded once, where the weights are held in half precision.
        layer.base_layer.weight.data = (weight.float() + layer.get_delta_weight(_NAME)).to(
            weight.dtype
        )
        setattr(parent, name, layer.base_layer)


def _layers(model: Any) -> list[tuple[Any, str, Any]]:
    """Parent, name and module of each layer with thin matrices."""
    return [
        (parent, name, module)
        for parent in model.modules()
        for name, module in parent.named_children()
        if hasattr(module, "base_layer") and hasattr(module, "lora_A")
    ]


def _is_linear(module: Any) -> bool:
    return isinstance(module, torch.nn.Linear)
