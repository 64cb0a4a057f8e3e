"""The tool policy P(tool | query, context): a small network with a closed or an open head."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import torch
from pydantic import Field
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from progrl.config.base import Section
from progrl.config.orchestration import ClosedHead, ContextConfig, HeadConfig
from progrl.embedding import Encoder
from progrl.errors import CheckpointError, ConfigurationError
from progrl.files import file_digest, new_folder, read_json, write_bytes, write_json
from progrl.orchestration.features import Card, Catalogue
from progrl.seeds import Seed

VERSION: Literal[1] = 1
ABOUT, WEIGHTS = "policy.json", "policy.safetensors"


_Size = Annotated[int, Field(ge=1, le=2**31)]  # above it torch counts bytes beyond its range


class _About(Section):
    version: Literal[1]
    encoder: str
    dimension: _Size
    width: _Size
    context: ContextConfig
    head: HeadConfig
    tools: tuple[Card, ...]
    weights: str


class ToolPolicy(nn.Module):
    """Scores tools from the features [e_q; c_t; m_t].

    Closed head (eq. 12): softmax(W3 ReLU(W2 ReLU(W1 x))), 3d -> width -> width -> |T|.
    Open head (eq. 13): score_i = (W3 ReLU(W2 ReLU(W1 x))) . v_i + b_i, with W3 of d rows, and
    v_i = embed(description of tool i) + what was learned about it, which starts from 0. A tool
    that the policy does not know has v_i = embed(description), b_i = 0.

    Args:
        encoder: name of the encoder whose vectors it reads.
        dimension: d, of these vectors.
        tools: those it learns about; with the closed head it can score no others.
        context: how c_t is made.
        head: closed or open.
        width: of the two hidden layers.
        seed: of the first weights; torch's global generator is left as it was.
    """

    def __init__(
        self,
        *,
        encoder: str,
        dimension: int,
        tools: Sequence[Card],
        context: ContextConfig,
        head: HeadConfig,
        width: int,
        seed: Seed,
    ) -> None:
        super().__init__()
        self.encoder, self.dimension, self.width = encoder, dimension, width
        self.tools, self.context, self.head = tuple(tools), context, head
        self._places = {card: place for place, card in enumerate(self.tools)}
        rows = len(tools) if isinstance(head, ClosedHead) else dimension
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed.value)
            first = nn.Linear(3 * dimension, width, bias=False)
            # Features are parts of length 1, not entries of size 1: torch's own start is too small.
            nn.init.normal_(first.weight, std=math.sqrt(1 / width))
            self.body = nn.Sequential(
                first,
                nn.ReLU(),
                nn.Linear(width, width, bias=False),
                nn.ReLU(),
                nn.Linear(width, rows, bias=False),
            )
        if not isinstance(head, ClosedHead):
            self.learned = nn.Parameter(torch.zeros(len(tools), dimension))
            self.bias = nn.Parameter(torch.zeros(len(tools)))

    def forward(
        self, features: Tensor, catalogue: Catalogue, known: Tensor | None = None
    ) -> Tensor:
        """Scores of the tools of a catalogue, [n, |catalogue|].

        Args:
            features: [n, 3d].
            known: [|catalogue|]; with the open head, a tool with 0 counts as one never seen.

        Raises:
            ConfigurationError: the head is closed and a tool is not among those it learned.
        """
        places = [self._places.get(card, -1) for card in catalogue.cards]
        made: Tensor = self.body(features)
        if isinstance(self.head, ClosedHead):
            if -1 in places:
                unknown = [n for n, p in zip(catalogue.names, places, strict=True) if p < 0]
                raise ConfigurationError(
                    f"The tool policy has a closed head and does not know: {', '.join(unknown)}. "
                    "Fit it with these tools, or with orchestration.head.kind open."
                )
            return made[:, places]
        # The row of zeros at the end is what was learned about an unknown tool, whose place is -1.
        learned = torch.cat([self.learned, self.learned.new_zeros(1, self.dimension)])[places]
        bias = torch.cat([self.bias, self.bias.new_zeros(1)])[places]
        if known is not None:
            learned, bias = learned * known[:, None], bias * known
        return made @ (torch.from_numpy(catalogue.vectors) + learned).T + bias

    def check_encoder(self, encoder: Encoder) -> None:
        """Raise ConfigurationError if it reads the vectors of another encoder."""
        if (encoder.name, encoder.dimension) != (self.encoder, self.dimension):
            raise ConfigurationError(
                f"The tool policy was fitted with the encoder {self.encoder} ({self.dimension}-d), "
                f"the configuration has {encoder.name} ({encoder.dimension}-d). Set embedding as "
                "it was, or fit the policy again."
            )

    def write(self, folder: Path) -> None:
        """Write the policy's two files into a folder that is there."""
        tensors = {name: t.detach().contiguous() for name, t in self.state_dict().items()}
        write_bytes(folder / WEIGHTS, save(tensors))
        about = _About(
            version=VERSION,
            encoder=self.encoder,
            dimension=self.dimension,
            width=self.width,
            context=self.context,
            head=self.head,
            tools=self.tools,
            weights=file_digest(folder / WEIGHTS),
        )
        write_json(folder / ABOUT, about.model_dump(mode="json"))

    def save(self, folder: Path) -> None:
        """Write the policy as a folder, whole or not at all."""
        with new_folder(folder) as temporary:
            self.write(temporary)

    @classmethod
    def load(cls, folder: Path) -> "ToolPolicy":
        """The policy that `save` wrote.

        Raises:
            DataError: a file is missing or is not JSON.
            CheckpointError: it is of another version or damaged, or its parts do not fit.
        """
        value = read_json(folder / ABOUT)
        try:
            about = _About.model_validate(value, strict=False)  # JSON has no tuples
            with torch.device("meta"):  # sizes that are wrong must not be allocated
                policy = cls(
                    encoder=about.encoder,
                    dimension=about.dimension,
                    tools=about.tools,
                    context=about.context,
                    head=about.head,
                    width=about.width,
                    seed=Seed.root(0),
                )
            policy._take(load((folder / WEIGHTS).read_bytes()))
            if file_digest(folder / WEIGHTS) != about.weights:
                raise ValueError(f"{WEIGHTS} is not the file that was written")
        except (ValueError, OSError, SafetensorError) as error:
            raise CheckpointError(
                f"{folder}: no tool policy that can be used ({' '.join(str(error).split())}). "
                "Fit it again."
            ) from None
        return policy.eval()

    def _take(self, tensors: dict[str, Tensor]) -> None:
        """Take up weights; ValueError, naming the first that does not fit."""
        own = self.state_dict()
        if set(own) != set(tensors):
            raise ValueError(f"{WEIGHTS} has {sorted(tensors)}, expected {sorted(own)}")
        for name, tensor in tensors.items():
            if tensor.shape != own[name].shape:
                shapes = f"{list(tensor.shape)}, expected {list(own[name].shape)}"
                raise ValueError(f"{WEIGHTS}: {name} is of shape {shapes}")
        self.load_state_dict(tensors, assign=True)
