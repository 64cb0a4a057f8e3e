"""LoRA: only thin matrices learn, and what is saved is the model with them folded in."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from progrl.agent.lora import add_lora, fold, folded
from progrl.agent.model import load_model, make_model, save_model
from progrl.config.agent import LoraTuning
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.errors import ConfigurationError

TARGETS = ("q_proj", "v_proj", "down_proj")
IDS = torch.arange(10, 40)[None]


def held(dtype: torch.dtype) -> Any:
    """A model whose weights are of a type, as when it is loaded: positions stay in float32."""
    model = make_model(vocabulary=300, layers=2, window=64, seed=1)
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    return model


def tuned(dtype: torch.dtype = torch.float32, move: bool = True) -> tuple[Any, Any]:
    """A plain model, and the same with adapters whose weights have moved."""
    plain, model = (held(dtype) for _ in range(2))
    add_lora(model, LoraTuning(kind="lora", rank=4, alpha=8, targets=TARGETS), 5)
    if move:
        generator = torch.Generator().manual_seed(3)
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.data = torch.randn(weight.shape, generator=generator) * 0.1
    return plain, model


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=IDS).logits  # type: ignore[no-any-return]


def test_new_matrices_change_nothing_and_are_all_that_is_trained() -> None:
    plain, model = tuned(move=False)
    assert torch.equal(logits(plain), logits(model))
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    assert len(trained) == 2 * len(TARGETS) * 2
    assert all("lora_" in name for name in trained)
    again = tuned(move=False)[1].state_dict()
    assert all(torch.equal(again[name], value) for name, value in model.state_dict().items())


def test_folded_it_is_a_plain_model_and_afterwards_as_before() -> None:
    plain, model = tuned()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    apart = logits(model)
    assert (apart - logits(plain)).abs().max() > 0.01
    with folded(model) as whole:
        assert set(whole.state_dict()) == set(plain.state_dict())
        torch.testing.assert_close(logits(whole), apart, atol=1e-4, rtol=1e-4)
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_saved_is_weight_plus_product(dtype: torch.dtype, tmp_path: Path) -> None:
    plain, model = tuned(dtype)
    parts = {name: value.clone() for name, value in model.state_dict().items()}
    fold(model)
    save_model(tmp_path / "m", model, CompactCodec(train_tokenizer(["hello"], (), 300)))
    saved = load_file(tmp_path / "m" / "model.safetensors")
    given = plain.state_dict()
    for name, value in saved.items():
        layer = name.removesuffix(".weight")
        if f"{layer}.lora_A.default.weight" not in parts:
            assert torch.equal(value, given[name])
            continue
        a, b = (parts[f"{layer}.lora_{which}.default.weight"] for which in "AB")
        expected = (given[name].float() + 8.0 / 4 * (b @ a)).to(dtype)
        torch.testing.assert_close(value, expected)
        assert not torch.equal(value, given[name])
    name = str(dtype).removeprefix("torch.")
    assert torch.equal(logits(load_model(tmp_path / "m", name)), logits(model))


def test_names_that_are_none_are_told() -> None:
    model = make_model(vocabulary=300, layers=1, window=64, seed=1)
    with pytest.raises(ConfigurationError, match=r"no linear layer query; it has down_proj"):
        add_lora(model, LoraTuning(kind="lora", rank=4, alpha=8, targets=("query",)), 1)
