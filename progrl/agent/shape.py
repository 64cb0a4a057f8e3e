"""How large a model is, from numbers alone: no weight is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from progrl.config.agent import AgentConfig, EmbeddedAgent, LoraTuning
from progrl.errors import DataError
from progrl.files import read_json


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder of the Qwen or Llama kind; names as in `make_model`."""

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    tied: bool

    @property
    def linear(self) -> Mapping[str, tuple[int, int]]:
        """Width in and out of a layer's matrices."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "q_proj": (self.hidden, queries),
            "k_proj": (self.hidden, keys),
            "v_proj": (self.hidden, keys),
            "o_proj": (queries, self.hidden),
            "gate_proj": (self.hidden, self.ffn),
            "up_proj": (self.hidden, self.ffn),
            "down_proj": (self.ffn, self.hidden),
        }

    @property
    def weights(self) -> int:
        """All weights; norms on queries and keys are counted, which not every kind has."""
        layer = sum(a * b for a, b in self.linear.values()) + 2 * self.hidden + 2 * self.head_dim
        heads = 1 if self.tied else 2
        return self.layers * layer + heads * self.vocabulary * self.hidden + self.hidden

    def trained(self, config: AgentConfig) -> int:
        """The weights that are trained."""
        if not isinstance(config.tuning, LoraTuning):
            return self.weights
        sizes = [sum(self.linear[name]) for name in config.tuning.targets if name in self.linear]
        return self.layers * config.tuning.rank * sum(sizes)


KNOWN = {
    "smollm": Shape(49152, 576, 30, 9, 3, 64, 1536, True),
    "qwen3-0.6b": Shape(151936, 1024, 28, 16, 8, 128, 3072, True),
    "qwen3-4b": Shape(151936, 2560, 36, 32, 8, 128, 9728, True),
    "qwen3-14b": Shape(151936, 5120, 40, 40, 8, 128, 17408, False),
}
"""Of models whose folder need not be there, by the folder's name in lower case."""


def shape_of(config: AgentConfig, project: Path) -> Shape | None:
    """The agent's shape: of the configuration, its folder's config.json, or known by name.

    Raises:
        DataError: config.json is none of a model of these kinds.
    """
    if isinstance(config, EmbeddedAgent):
        c = config
        sizes = (c.vocabulary, c.hidden, c.layers, c.heads, c.heads, c.head_dim, c.ffn)
        return Shape(*sizes, tied=True)
    file = project / config.folder / "config.json"
    if not file.is_file():
        return KNOWN.get(config.folder.name.lower())
    return _read(file, read_json(file))


def _read(file: Path, given: Any) -> Shape:
    try:
        heads = given["num_attention_heads"]
        return Shape(
            given["vocab_size"],
            given["hidden_size"],
            given["num_hidden_layers"],
            heads,
            given.get("num_key_value_heads") or heads,
            given.get("head_dim") or given["hidden_size"] // heads,
            given["intermediate_size"],
            bool(given.get("tie_word_embeddings", False)),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file}: no model of the Qwen or Llama kind ({error!r}).") from None
