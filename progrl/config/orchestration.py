"""What the agent is told about tools, and the policy that says it (PMT, eq. 12-13, 16-18)."""

from typing import Annotated, Literal

from pydantic import Field

from progrl.config.base import Count, Fraction, NonNegative, Positive, Section


class DecayContext(Section):
    """c' = alpha c + (1 - alpha) embed(tool), from 0 (eq. 18)."""

    kind: Literal["decay"]
    alpha: Fraction
    """How much of the context a step keeps."""


class MeanContext(Section):
    """The mean embedding of the last k tools, 0 before the first: PMT's inline formula."""

    kind: Literal["mean_k"]
    k: Count
    """How many tools back it looks."""


ContextConfig = Annotated[DecayContext | MeanContext, Field(discriminator="kind")]


class ClosedHead(Section):
    """One row of weights a tool (eq. 12): for a set of tools that is fixed."""

    kind: Literal["closed"]


class OpenHead(Section):
    """Tools are scored by vectors started from their descriptions' embeddings (eq. 13), so that a
    tool never seen has a score."""

    kind: Literal["open"]
    describe: Fraction
    """Share of the tools that an update knows by their descriptions alone, so that tools never seen
    are scored on the same scale."""


HeadConfig = Annotated[ClosedHead | OpenHead, Field(discriminator="kind")]


class GoldConfig(Section):
    """Learning from the experts' dialogues, by cross-entropy."""

    steps: Count
    """Updates."""
    batch: Count
    """Decisions an update."""
    learning_rate: Positive
    """AdamW's, falling linearly to 0."""
    weight_decay: NonNegative
    """AdamW's; with the open head it draws tools back to their descriptions."""
    forget: Fraction
    """Share of the decisions that are learned with m_t = 0, as while the memory is empty."""


class ImprovementConfig(Section):
    """Learning from the agent's own episodes, by weighted regression."""

    beta: Positive
    """Temperature of the weights exp(A / beta)."""
    most_weight: Annotated[float, Field(ge=1)]
    """w_max: no weight is larger."""
    kl: NonNegative
    """Weight of the divergence from the policy learned from gold."""
    passes: Count
    """Updates a training step, each over all of its decisions."""
    learning_rate: Positive
    """AdamW's."""


class PlanConfig(Section):
    """How a plan is drawn from the policy (algorithm 1)."""

    choice: Literal["argmax", "sampled"]
    """The most probable tool of each step, or one drawn by its probability (eq. 16)."""
    confidence: Literal["chosen", "highest"]
    """Probability of the chosen tool, or the highest of all (eq. 17): for a drawn tool that is not
    the tool's own."""


class ToolPolicyConfig(Section):
    """The tool policy: which tool to use next, or to talk, or to stop."""

    context: ContextConfig
    """c_t: what the tools used so far leave behind."""
    head: HeadConfig
    """How tools are scored."""
    width: Count
    """Of the two hidden layers; PMT's is 256."""
    folds: Annotated[int, Field(ge=2)]
    """Parts of the training tasks; what is recalled for one part, and the hints on it, come from
    the others."""
    gold: GoldConfig
    """Learning from the experts' dialogues."""
    improvement: ImprovementConfig
    """Learning from the agent's own episodes."""


class NoAdvice(Section):
    """The agent is told nothing about tools."""

    kind: Literal["off"]


class SilentAdvice(Section):
    """A policy is learned as for hints, and the agent is told nothing of it: for `progrl plan`."""

    kind: Literal["silent"]
    policy: ToolPolicyConfig
    """The tool policy."""


class HintAdvice(Section):
    """Before each message the agent reads which tools a learned policy thinks come next."""

    kind: Literal["hint"]
    top: Count
    """How many tools, with their confidences."""
    drop: Fraction
    """Share of the messages without a hint in SFT and GRPO, so that the agent does not come to
    lean on it; never in probes and evaluation."""
    policy: ToolPolicyConfig
    """The tool policy."""


class BiasAdvice(Section):
    """A learned policy's probabilities are added to the logits of the tokens that name tools, in
    sampling and in the trainer alike; the warm start knows nothing of it."""

    kind: Literal["bias"]
    strength: Positive
    """What a tool of probability 1 is given, in nats."""
    policy: ToolPolicyConfig
    """The tool policy."""


class RandomAdvice(Section):
    """Hints on tools drawn uniformly, with made-up confidences: PMT's ablation, which shows what
    harm bad advice does."""

    kind: Literal["random"]
    top: Count
    """How many tools, with their confidences."""
    drop: Fraction
    """Share of the messages without a hint in SFT and GRPO; never in probes and evaluation."""


LearnedAdvice = HintAdvice | BiasAdvice
LearnedTools = SilentAdvice | LearnedAdvice
"""A tool policy is learned, whether its advice is heard or not."""
OrchestrationConfig = Annotated[
    NoAdvice | SilentAdvice | HintAdvice | BiasAdvice | RandomAdvice, Field(discriminator="kind")
]
