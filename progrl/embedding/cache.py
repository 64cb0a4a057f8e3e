"""Vectors kept on disk by content, shared by processes."""

import contextlib
import logging
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from progrl.embedding.encoders import Encoder, Vectors
from progrl.errors import DataError
from progrl.files import write_bytes

logger = logging.getLogger(__name__)
_MOST_SHARDS = 64
_PARTS = 8  # of a full cache: of one great shard all vectors would go at once


class CachedEncoder:
    """An encoder that encodes each sentence once.

    The cache is a folder of immutable shards, `<encoder's name>/<digest of its keys>.safetensors`,
    each written whole and named by what it holds: processes may share it without locks. Many small
    shards are merged into few; beyond `capacity` vectors the oldest shards go. A cache that is
    damaged, removed or cannot be written costs time, never a result.

    Args:
        encoder: encodes what is not in the cache.
        folder: of the cache.
        capacity: most vectors on disk.
    """

    def __init__(self, encoder: Encoder, folder: Path, capacity: int = 200_000) -> None:
        self._encoder = encoder
        self._folder = folder / encoder.name
        self._capacity = capacity
        self._known: dict[str, Vectors] | None = None

    @property
    def name(self) -> str:
        """The encoder's."""
        return self._encoder.name

    @property
    def dimension(self) -> int:
        """The encoder's."""
        return self._encoder.dimension

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The vectors of `texts`, [n, d] float32, each of length 1."""
        if self._known is None:
            self._known = self._read()
        keys = [sha256(text.encode()).hexdigest()[:32] for text in texts]
        fresh = {k: t for k, t in zip(keys, texts, strict=True) if k not in self._known}
        if fresh:
            made = dict(zip(fresh, self._encoder.encode(list(fresh.values())), strict=True))
            self._known |= made
            self._write(made)
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return np.stack([self._known[key] for key in keys])

    def _shards(self) -> list[Path]:
        """All shards, the oldest first."""
        found = []
        for path in self._folder.glob("*.safetensors"):
            try:
                found.append((path.stat().st_mtime_ns, path))
            except FileNotFoundError:  # another process has just merged it
                continue
        return [path for _, path in sorted(found)]

    def _read(self) -> dict[str, Vectors]:
        known: dict[str, Vectors] = {}
        shards = self._shards()
        for path in shards:
            known |= self._load(path)
        if len(shards) > _MOST_SHARDS:
            merged = self._write(dict(list(known.items())[-self._capacity :]))
            for path in shards if merged else ():
                if path not in merged:
                    _remove(path)
        return known

    def _load(self, path: Path) -> dict[str, Vectors]:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, "numpy") as file:
                keys = file.metadata()["keys"].split()
                vectors: Any = file.get_tensor("vectors")
            if vectors.shape != (len(keys), self.dimension):
                raise ValueError(f"holds {vectors.shape} for {len(keys)} keys")
            return dict(zip(keys, vectors.astype(np.float32), strict=True))
        except FileNotFoundError:
            return {}
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            logger.warning("%s: damaged (%s); its sentences are encoded again", path, error)
            _remove(path)
            return {}

    def _write(self, made: dict[str, Vectors]) -> set[Path]:
        """Add shards, and drop the oldest beyond the capacity; none if they cannot be written."""
        from safetensors.numpy import save

        size, paths = max(1, self._capacity // _PARTS), set()
        for start in range(0, len(made), size):
            keys = sorted(list(made)[start : start + size])
            content = save({"vectors": np.stack([made[k] for k in keys])}, {"keys": " ".join(keys)})
            name = sha256(" ".join(keys).encode()).hexdigest()[:32]
            try:
                write_bytes(self._folder / f"{name}.safetensors", content)
            except DataError as error:
                logger.warning("the cache of vectors is not kept: %s", error)
                return set()
            paths.add(self._folder / f"{name}.safetensors")
        self._bound()
        return paths

    def _bound(self) -> None:
        room, row = self._capacity, 4 * self.dimension + 33  # bytes of a vector with its key
        for path in reversed(self._shards()):
            try:
                room -= path.stat().st_size // row  # exact: the header is shorter than a row
            except FileNotFoundError:
                continue
            if room < 0:
                _remove(path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # gone already, or a cache that may only be read
        path.unlink()
