"""Models on disk and in memory: make, save, load, with the codec that belongs to each.

A folder that progrl writes holds config.json, model.safetensors, the codec's files and
manifest.json with the SHA-256 of each, so that a cut or changed file is found out before use.
"""

from pathlib import Path
from typing import Any, cast

import torch
from transformers import (
    AutoModelForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.utils import logging as transformers_logging

from progrl.agent.copying import start_copying
from progrl.agent.lora import add_lora
from progrl.config.agent import AgentConfig, EmbeddedAgent, LoraTuning
from progrl.dialogue.codec import Codec
from progrl.dialogue.compact import CODEC_FILE, CompactCodec
from progrl.errors import CheckpointError, DataError
from progrl.files import file_digest, new_folder, read_json, write_json

# Its bars for reading and writing a file would be drawn over progrl's own.
_quiet: Any = transformers_logging
_quiet.disable_progress_bar()

MANIFEST = "manifest.json"


def make_model(
    *,
    vocabulary: int,
    hidden: int = 96,
    layers: int = 3,
    heads: int = 3,
    kv_heads: int | None = None,
    head_dim: int = 32,
    ffn: int = 256,
    window: int = 1024,
    tied: bool = True,
    copying: bool = False,
    seed: int,
) -> PreTrainedModel:
    """A new Qwen3-architecture model in float32, the same for the same arguments.

    Args:
        vocabulary: tokens.
        hidden: width of the residual stream.
        layers: decoder layers.
        heads: attention heads.
        kv_heads: heads of keys and values, a divisor of `heads`; as many as `heads` by default.
        head_dim: width of a head, even.
        ffn: width of the gated feed-forward layer.
        window: most tokens of a conversation.
        tied: input and output embeddings are one matrix.
        copying: start with a circuit that copies (`copying.start_copying`).
        seed: of the initial weights; the global generator is left as it was.
    """
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads or heads,
        head_dim=head_dim,
        intermediate_size=ffn,
        max_position_embeddings=window,
        tie_word_embeddings=tied,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=None,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = Qwen3ForCausalLM(config)
        if copying:
            start_copying(model, torch.Generator().manual_seed(seed))
    return cast(PreTrainedModel, model.eval())


def prepare_training(model: PreTrainedModel, config: AgentConfig, seed: int) -> None:
    """Let `model` be trained as the configuration says: which weights, recomputed, compiled.

    Args:
        seed: of new weights.

    Raises:
        ConfigurationError: it has no such weights.
    """
    loose: Any = model
    if isinstance(config.tuning, LoraTuning):
        add_lora(model, config.tuning, seed)
    if config.checkpointing:
        loose.activation_checkpointing_enable({"use_reentrant": False})
    if config.compile and not isinstance(config, EmbeddedAgent):  # which has kernels of its own
        loose.base_model.compile(dynamic=True)


def load_trained(folder: Path, config: AgentConfig) -> tuple[PreTrainedModel, Codec]:
    """Model and codec of a folder, to be trained: frozen weights in the products' precision.

    Raises:
        CheckpointError: a part is missing or damaged.
    """
    frozen = isinstance(config.tuning, LoraTuning)
    return load_agent_folder(folder, config.dtype if frozen else "float32")


def save_model(folder: Path, model: PreTrainedModel, codec: Codec) -> None:
    """Write model and codec to `folder`, whole or not at all.

    Raises:
        DataError: it could not be written; what stood there before is unchanged.
    """
    with new_folder(folder) as fresh:
        model.save_pretrained(fresh)
        codec.save(fresh)
        files = sorted(path.name for path in fresh.iterdir() if path.is_file())
        for name in files:
            (fresh / name).chmod(0o644)  # safetensors writes for the owner alone
        write_json(fresh / MANIFEST, {name: file_digest(fresh / name) for name in files})


def check_folder(folder: Path) -> None:
    """Raise CheckpointError unless the folder holds a model whose files are as they were written.

    Folders without manifest.json (made by others) are checked for presence only.
    """
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such model folder. Run the stage that writes it.")
    if not (folder / "config.json").is_file() and not (folder / MANIFEST).is_file():
        raise CheckpointError(f"{folder}: no config.json, so no model folder.")
    if not (folder / MANIFEST).is_file():
        return
    manifest = _json(folder / MANIFEST)
    unlisted = {p.name for p in folder.glob("*.safetensors")} - set(manifest)
    if unlisted or not manifest:
        raise CheckpointError(
            f"{folder / MANIFEST}: does not list {', '.join(sorted(unlisted)) or 'anything'}, so "
            "it is not the one that was written. Write the model again."
        )
    for name, digest in manifest.items():
        if not (folder / name).is_file():
            raise CheckpointError(f"{folder}: {name} is missing. Write the model again.")
        if file_digest(folder / name) != digest:
            raise CheckpointError(
                f"{folder / name}: damaged or changed since it was written (its SHA-256 is not "
                f"the one in {MANIFEST}). Write the model again."
            )


def load_model(folder: Path, dtype: str = "float32") -> PreTrainedModel:
    """The model of a folder, in evaluation mode.

    Raises:
        CheckpointError: a part is missing or damaged, or weights and config.json disagree.
    """
    check_folder(folder)
    auto: Any = AutoModelForCausalLM
    try:
        model, info = auto.from_pretrained(
            folder, local_files_only=True, dtype=dtype, output_loading_info=True
        )
    except Exception as error:  # transformers lets errors of many libraries through
        raise CheckpointError(f"{folder}: the model cannot be loaded ({error}).") from None
    wrong = {kind: sorted(map(str, names)) for kind, names in info.items() if names}
    if wrong:
        raise CheckpointError(f"{folder}: weights do not fit config.json ({wrong}).")
    return cast(PreTrainedModel, model.eval())


def load_codec(folder: Path) -> Codec:
    """The codec of a model folder: progrl's compact one, or by chat template for other models.

    Raises:
        CheckpointError: its files are missing or damaged.
    """
    check_folder(folder)
    if (folder / CODEC_FILE).is_file() and _json(folder / CODEC_FILE).get("kind") == "compact":
        return CompactCodec.load(folder)
    from progrl.dialogue.chat import ChatCodec

    return ChatCodec.load(folder)


def load_agent_folder(folder: Path, dtype: str = "float32") -> tuple[PreTrainedModel, Codec]:
    """Model and codec of a folder: one that `save_model` wrote, or any local chat model.

    Raises:
        CheckpointError: a part is missing or damaged.
    """
    return load_model(folder, dtype), load_codec(folder)


def _json(path: Path) -> dict[str, Any]:
    try:
        value = read_json(path)
    except DataError as error:
        raise CheckpointError(str(error)) from None
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: damaged (not a JSON object).")
    return value
