"""Checkpoints of a run in progress: whole or not there, safetensors and JSON only."""

import logging
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from progrl.errors import CheckpointError, DataError
from progrl.files import digest, file_digest, new_folder, read_json, write_json

logger = logging.getLogger(__name__)
_NAME = re.compile(r"step-(\d{8})")


@dataclass(frozen=True)
class Checkpoint:
    """The state after `step` steps: named groups of tensors, and JSON values."""

    step: int
    tensors: Mapping[str, Mapping[str, Tensor]]
    state: Mapping[str, Any]


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write `folder/step-<step>` and then remove older ones."""
    target = folder / f"step-{checkpoint.step:08d}"
    with new_folder(target) as temporary:
        files = {}
        for group, tensors in checkpoint.tensors.items():
            path = temporary / f"{group}.safetensors"
            files[path.name] = write_tensors(path, tensors)
        state = dict(checkpoint.state)
        write_json(
            temporary / "state.json",
            {"step": checkpoint.step, "files": files, "state": state, "digest": digest(state)},
        )
    for old in _steps(folder)[:-1]:
        shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """The newest checkpoint in `folder`; None if there is none.

    Raises:
        CheckpointError: it is damaged: a file is missing, cut short, or not the one written.
    """
    steps = _steps(folder)
    if not steps:
        return None
    path = steps[-1]
    try:
        record = read_json(path / "state.json")
        if digest(record["state"]) != record["digest"]:
            raise CheckpointError("state.json was changed")
        tensors = {}
        for name, expected in record["files"].items():
            tensors[name.removesuffix(".safetensors")] = read_tensors(path / name, expected)
    except (CheckpointError, DataError, OSError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"Checkpoint {path} cannot be used: {error}. Remove this folder to start the stage "
            "again; nothing else depends on it."
        ) from None
    logger.info("resuming after step %d", record["step"])
    return Checkpoint(record["step"], tensors, record["state"])


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    """Write tensors to a file; its digest, which `read_tensors` asks for."""
    save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path)
    return file_digest(path)


def read_tensors(path: Path, expected: str) -> dict[str, Tensor]:
    """The tensors of a file, if its digest is the one of when it was written.

    Raises:
        CheckpointError: it is another file, damaged, cut short, or not there.
    """
    try:
        if file_digest(path) != expected:
            raise CheckpointError(f"{path.name} is damaged or cut short")
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"{path.name} cannot be read ({error})") from None


def _steps(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if _NAME.fullmatch(p.name))
