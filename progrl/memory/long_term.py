"""M_long: successful training trajectories, found again by likeness of their queries (eq. 10)."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from progrl.embedding import Vectors, nearest
from progrl.errors import CheckpointError, DataError, check_names
from progrl.files import new_folder, read_json, read_jsonl, write_bytes, write_json, write_jsonl
from progrl.memory.pattern import Pattern

if TYPE_CHECKING:
    from torch import Tensor

VERSION = 1
_NAMES = {"dimension", "store_above", "similar_above", "added", "patterns", "retrieved", "serials"}
_FORM_ERROR = (KeyError, OverflowError, TypeError, ValueError)


class LongTermMemory:
    """A bounded store of patterns with the unit vectors of their queries.

    Args:
        dimension: d, of the vectors.
        capacity: most patterns; beyond it the least retrieved goes, of these the oldest.
        store_above: theta_store; only patterns with a reward above it are stored.
        similar_above: theta_sim; only patterns more similar than it count in `context`.
        read_only: nothing is stored and retrievals are not counted, as in evaluation.
    """

    def __init__(
        self,
        dimension: int,
        capacity: int = 10_000,
        store_above: float = 1.0,
        similar_above: float = 0.5,
        read_only: bool = False,
    ) -> None:
        self.dimension, self.capacity = dimension, capacity
        self.store_above, self.similar_above = store_above, similar_above
        self.read_only = read_only
        self._patterns: list[Pattern] = []
        self._places: dict[tuple[str, tuple[str, ...]], int] = {}
        self._room = np.zeros((0, dimension), np.float32)
        self._retrieved = np.zeros(0, np.int64)
        self._serials = np.zeros(0, np.int64)
        self._added = 0

    def __len__(self) -> int:
        return len(self._patterns)

    @property
    def patterns(self) -> list[Pattern]:
        """All patterns, in the order in which they were stored."""
        return [self._patterns[place] for place in self._order()]

    @property
    def vectors(self) -> Vectors:
        """Their queries' vectors, [n, d], in the same order."""
        return self._matrix[self._order()]

    def store(self, pattern: Pattern, vector: Vectors) -> bool:
        """Keep a pattern if its reward is above theta_store; whether it was kept (eq. 10).

        A task solved again with the same tools takes the place of its earlier pattern, as the
        newest, and keeps the count of its retrievals.

        Args:
            pattern: of a successful trajectory of the training split.
            vector: [d], of length 1, the embedding of its query.

        Raises:
            ValueError: the vector has another width, or the memory is read-only.
        """
        if self.read_only:
            raise ValueError("this memory is read-only")
        if vector.shape != (self.dimension,):
            raise ValueError(f"a vector of shape {vector.shape} in a memory of ({self.dimension},)")
        if pattern.reward <= self.store_above:
            return False
        place = self._places.get(pattern.key)
        if place is None:
            place = self._free()
            self._retrieved[place] = 0
            self._places[pattern.key] = place
        self._patterns[place : place + 1] = [pattern]  # appends where the place is the next new one
        self._room[place] = vector
        self._serials[place] = self._added
        self._added += 1
        return True

    def search(self, vector: Vectors, k: int) -> list[tuple[Pattern, float]]:
        """The `k` patterns whose queries are most similar, with their cosines, the nearest first.

        Args:
            vector: [d], of length 1.
        """
        places, similar = nearest(vector, self._matrix, k)
        self._count(places)
        return [(self._patterns[p], float(s)) for p, s in zip(places, similar, strict=True)]

    def context(self, vector: Vectors) -> Vectors:
        """m_t, [d]: the mean of the patterns with sim > theta_sim, weighted by sim.

        Zero if there are none.

        Args:
            vector: [d], of length 1, the embedding of the present query.
        """
        similar = self._matrix @ vector
        places = np.flatnonzero(similar > self.similar_above)
        if not len(places):
            return np.zeros(self.dimension, np.float32)
        self._count(places)
        weights = similar[places]
        mean: Vectors = (weights @ self._matrix[places]) / weights.sum()
        return mean.astype(np.float32)

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed run needs beside `tensors`, as JSON values.

        Patterns stand as they lie here, not by age: sums over them go on to the last bit alike.
        """
        return self._state(list(range(len(self))))

    def _state(self, order: list[int]) -> dict[str, Any]:
        return {
            "dimension": self.dimension,
            "store_above": self.store_above,
            "similar_above": self.similar_above,
            "added": self._added,
            "patterns": [self._patterns[place].to_json() for place in order],
            "retrieved": self._retrieved[order].tolist(),
            "serials": self._serials[order].tolist(),
        }

    def tensors(self) -> dict[str, "Tensor"]:
        """The vectors that belong to `state_dict`, as torch tensors."""
        import torch

        return {"vectors": torch.from_numpy(self._matrix.copy())}

    def load_state_dict(self, state: Mapping[str, Any], tensors: Mapping[str, "Tensor"]) -> None:
        """Take up a state.

        Raises:
            CheckpointError: it has other names, is of a memory with other settings, or does not
                fit the tensors.
        """
        check_names(state, _NAMES, "long-term memory")
        check_names(tensors, {"vectors"}, "long-term memory's tensors")
        for name in ("dimension", "store_above", "similar_above"):
            if state[name] != getattr(self, name):
                raise CheckpointError(
                    f"The checkpoint's long-term memory has {name} {state[name]}, this run's "
                    f"{getattr(self, name)}. Set it as it was, or remove the run's folder."
                )
        self._fill(state, tensors["vectors"].numpy())

    def save(self, folder: Path) -> None:
        """Write the memory as a folder, whole or not at all."""
        from safetensors.numpy import save

        state = self._state(self._order())
        patterns = state.pop("patterns")
        with new_folder(folder) as temporary:
            write_jsonl(temporary / "patterns.jsonl", patterns)
            write_bytes(temporary / "vectors.safetensors", save({"vectors": self.vectors}))
            write_json(
                temporary / "memory.json", {"version": VERSION, "capacity": self.capacity, **state}
            )

    @classmethod
    def load(cls, folder: Path, read_only: bool = False) -> "LongTermMemory":
        """The memory that `save` wrote.

        Raises:
            DataError: a file is missing, damaged, of another version, or does not fit the others.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        about = read_json(folder / "memory.json")
        if not isinstance(about, dict) or about.pop("version", None) != VERSION:
            raise DataError(
                f"{folder / 'memory.json'}: not a long-term memory of version {VERSION}. Run "
                "`progrl grpo` again."
            )
        rows = [row for _, row in read_jsonl(folder / "patterns.jsonl")]
        try:
            vectors = load_file(folder / "vectors.safetensors")["vectors"]
            memory = cls(
                about["dimension"],
                about.pop("capacity"),
                float(about["store_above"]),
                float(about["similar_above"]),
            )
            check_names({**about, "patterns": rows}, _NAMES, "long-term memory")
            memory._fill({**about, "patterns": rows}, vectors)
        except (OSError, SafetensorError, *_FORM_ERROR, CheckpointError) as error:
            raise DataError(
                f"{folder}: the long-term memory is damaged ({error}). Run `progrl grpo` again."
            ) from None
        memory.read_only = read_only
        return memory

    @property
    def _matrix(self) -> Vectors:
        return self._room[: len(self)]

    def _order(self) -> list[int]:
        """Places by age, the oldest first."""
        return [int(place) for place in np.argsort(self._serials[: len(self)])]

    def _count(self, places: Any) -> None:
        if not self.read_only:
            self._retrieved[places] += 1

    def _free(self) -> int:
        """A place for one more pattern: the next new one, or the least retrieved one's, emptied."""
        if len(self) == self.capacity:
            least = np.flatnonzero(self._retrieved == self._retrieved.min())
            place = int(least[np.argmin(self._serials[least])])
            del self._places[self._patterns[place].key]
            return place
        if len(self) == len(self._room):  # doubled, so that storing costs no copy each time
            more = min(max(2 * len(self), 64), self.capacity) - len(self)
            self._room = np.concatenate([self._room, np.zeros((more, self.dimension), np.float32)])
            self._retrieved = np.concatenate([self._retrieved, np.zeros(more, np.int64)])
            self._serials = np.concatenate([self._serials, np.zeros(more, np.int64)])
        return len(self)

    def _fill(self, state: Mapping[str, Any], vectors: Vectors) -> None:
        """Take up a state and its vectors; what does not fit leaves the memory as it was."""
        try:
            patterns = [Pattern.from_json(pattern) for pattern in state["patterns"]]
            places = {pattern.key: place for place, pattern in enumerate(patterns)}
            retrieved = np.array(state["retrieved"], np.int64)
            serials = np.array(state["serials"], np.int64)
            added = int(state["added"])
        except _FORM_ERROR as error:
            raise CheckpointError(
                f"The long-term memory holds what is no pattern or count ({error!r}). Remove the "
                "run's folder to start again."
            ) from None
        count = len(patterns)
        fits = (
            vectors.shape == (count, self.dimension)
            and retrieved.shape == serials.shape == (count,)
            and len(places) == len(np.unique(serials)) == count <= self.capacity
            and added > serials.max(initial=-1)
        )
        if not fits:
            raise CheckpointError(
                f"The long-term memory's parts do not fit: {count} patterns, vectors of shape "
                f"{vectors.shape}, capacity {self.capacity}. Remove the run's folder to start "
                "again."
            )
        self._patterns, self._places, self._added = patterns, places, added
        self._room = np.array(vectors, np.float32)
        self._retrieved, self._serials = retrieved, serials
