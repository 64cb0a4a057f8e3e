"""How the agent is trained: warm start, GRPO, rewards, curriculum, memory."""

from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator

from progrl.config.base import Count, Fraction, Natural, NonNegative, Positive, Rate, Section
from progrl.config.credit import CreditConfig, NormalisationConfig, ScoreConfig

_ROUNDING = 1e-9


class WarmupFlatDown(Section):
    """Rises linearly, stays, falls linearly to `final` of the peak."""

    kind: Literal["trapezoid"]
    warmup: Fraction
    """Share of the steps in which the rate rises."""
    flat: Fraction
    """Share of the steps at the peak."""
    final: Fraction
    """Rate at the end, as a share of the peak."""

    @model_validator(mode="after")
    def _within(self) -> Self:
        if self.warmup + self.flat > 1 + _ROUNDING:
            raise ValueError("flat: with warmup more than 1, so the rate would never fall")
        return self


class Cosine(Section):
    """Rises linearly, then follows half a cosine down to `final` of the peak."""

    kind: Literal["cosine"]
    warmup: Fraction
    """Share of the steps in which the rate rises."""
    final: Fraction
    """Rate at the end, as a share of the peak."""


class Constant(Section):
    """Rises linearly, then stays."""

    kind: Literal["constant"]
    warmup: Fraction
    """Share of the steps in which the rate rises."""


class Linear(Section):
    """Rises linearly, then falls linearly to `final` of the peak."""

    kind: Literal["linear"]
    warmup: Fraction
    """Share of the steps in which the rate rises."""
    final: Fraction
    """Rate at the end, as a share of the peak."""


Schedule = Annotated[WarmupFlatDown | Cosine | Constant | Linear, Field(discriminator="kind")]


class CopyWarmup(Section):
    """Before SFT, teach attention to copy: random sequences repeated, loss on the repeats."""

    kind: Literal["copy"]
    steps: Count
    """Optimiser steps."""
    batch: Count
    """Sequences a step."""


class NoWarmup(Section):
    """SFT starts from the model as it is."""

    kind: Literal["none"]


class SftConfig(Section):
    """Supervised warm start on the best-ranked dialogues."""

    dialogues: Count
    """How many of the generated dialogues are trained on, best-ranked first, as many of each
    training domain."""
    steps: Count
    """Optimiser steps."""
    batch: Count
    """Dialogues a step."""
    learning_rate: Rate
    """Peak rate of AdamW."""
    schedule: Schedule
    """Learning rate over the steps."""
    weight_decay: NonNegative
    """AdamW's."""
    max_grad_norm: Positive
    """Gradient norm above which gradients are scaled down."""
    tokens_per_microbatch: Count
    """Most padded tokens in one forward pass."""
    warmup: Annotated[CopyWarmup | NoWarmup, Field(discriminator="kind")]
    """What comes before."""
    checkpoint_every: Count
    """Steps between checkpoints."""


class GrpoConfig(Section):
    """Group relative policy optimisation (eq. 5-6)."""

    start: Literal["sft", "untrained"]
    """The model that training begins with: the warm start's, or the one before it."""
    steps: Count
    """Training steps."""
    tasks: Count
    """Tasks a step, each with one group."""
    group: Annotated[int, Field(ge=2)]
    """Episodes of a task (G), all with the same user seed."""
    learning_rate: Rate
    """Peak rate of AdamW."""
    schedule: Schedule
    """Learning rate over the steps."""
    weight_decay: NonNegative
    """AdamW's."""
    max_grad_norm: Positive
    """Gradient norm above which gradients are scaled down."""
    minibatches: Count
    """Optimiser updates a step, each over a share of the groups."""
    async_level: Annotated[int, Field(ge=0, le=1)]
    """Updates by which the weights that play may lag. With 1 a step's episodes are played during
    the update before, unless a probe or a checkpoint lies between; `lag` in the metrics says."""
    clip_low: Fraction
    """eps_low: the ratio is clipped below 1 - eps_low."""
    clip_high: Positive
    """eps_high: the ratio is clipped above 1 + eps_high."""
    kl: NonNegative
    """Weight of the KL penalty against the model that GRPO started from; 0 for none."""
    aggregation: Literal["token_mean", "sequence_mean", "dr_grpo"]
    """How token losses become one: mean over tokens; mean over episodes of means; sum over a
    constant."""
    score: ScoreConfig
    """What an episode's rewards amount to, S."""
    normalisation: NormalisationConfig
    """How a group's scores become advantages, z."""
    credit: CreditConfig
    """How an episode's advantage is shared among its tokens."""
    dynamic_sampling: bool
    """Replace groups without signal by groups of further tasks, once a step."""
    temperature: Annotated[float, Field(ge=0.01, le=100)]
    """Of sampling and of the trainer's logits."""
    tokens_per_microbatch: Count
    """Most padded tokens in one forward pass."""
    max_fault_share: Fraction
    """Share of episodes lost to faults above which training stops with their cause."""
    checkpoint_every: Count
    """Steps between checkpoints."""
    probe_every: Count
    """Steps between probes: success on the first `probe_tasks` validation tasks, greedy;
    training domains in turn."""
    probe_tasks: Count
    """Validation tasks of a probe."""
    probe_horizon: Annotated[int, Field(ge=2, le=30)]
    """Most agent turns in a probe."""
    keep: Literal["best", "last"]
    """Which weights are the result: those of the best probe, or the last."""


class RewardConfig(Section):
    """r_total = w1 r_task + w2 r_progress + w3 r_efficiency (eq. 3-4). These fixed weights rank
    dialogues, choose what memory keeps, and judge in evaluation, whatever `weights` is."""

    task: NonNegative
    """w1."""
    progress: NonNegative
    """w2."""
    efficiency: NonNegative
    """w3."""
    reference: Annotated["Budget | Optimal", Field(discriminator="kind")]
    """T_opt of the efficiency."""
    weights: "RewardWeights"
    """What GRPO's episodes are scored with."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.task + self.progress + self.efficiency:
            raise ValueError("task, progress, efficiency: one must be above 0, or all reward is 0")
        return self


class Budget(Section):
    """T_opt = factor * the expert's turns, so that the expert itself earns something."""

    kind: Literal["budget"]
    factor: Annotated[float, Field(gt=1)]
    """How many times the expert's turns are free of loss."""


class Optimal(Section):
    """T_opt = the expert's turns, to PMT's letter: 0 for all that are not faster."""

    kind: Literal["optimal"]


class FixedWeights(Section):
    """w1, w2 and w3, in all domains and throughout."""

    kind: Literal["fixed"]


class LearnedWeights(Section):
    """Weights of task, progress, efficiency and r_domain, what the environment declares; they sum
    to 1 (eq. 14-15). w = floor * task + (1 - floor) * softmax(network), by domain, level and recent
    outcomes; fitted to predict success from unfinished episodes."""

    kind: Literal["learned"]
    floor: Annotated[float, Field(ge=0, lt=1)]
    """Least share of the task's own reward, f."""
    hidden: Count
    """Width of the network's hidden layer."""
    evidence: Positive
    """Log-odds of success that a component must be worth, for one standard deviation of it, to
    earn all that is shared out."""
    price: NonNegative
    """Nats by which a component must lower the loss for a whole share; keeps what predicts nothing
    from having weight."""
    learning_rate: Rate
    """Of the fit."""
    passes: Count
    """Passes over the window after each training step."""
    window: Count
    """Latest episodes that are fitted."""
    min_episodes: Count
    """Episodes before the first fit; until then all four components weigh alike above the floor."""

    @model_validator(mode="after")
    def _reached(self) -> Self:
        if self.min_episodes > self.window:
            raise ValueError("min_episodes: more than window, so there would never be a fit")
        return self


RewardWeights = Annotated[FixedWeights | LearnedWeights, Field(discriminator="kind")]


class AdaptiveHorizon(Section):
    """h' = clip(h + delta * s(p), 2, cap) (eq. 7), s by PMT's thresholds."""

    kind: Literal["adaptive"]
    start: Annotated[float, Field(ge=2, le=20)]
    """First horizon, in agent turns."""
    delta: Positive
    """delta_h, in turns."""
    cap: Annotated[int, Field(ge=2, le=20)]
    """Most turns."""
    min_episodes: Natural
    """Counted training episodes before the first update."""


class BidirectionalHorizon(AdaptiveHorizon):
    """As adaptive, and shrinks by delta/2 while p < `low`, until p is above `low + hysteresis`."""

    kind: Literal["bidirectional"]  # type: ignore[assignment]
    low: Fraction
    """Success below which the horizon shrinks."""
    hysteresis: Fraction
    """How far above `low` success must rise before it may grow again."""


class FixedHorizon(Section):
    """The same horizon throughout."""

    kind: Literal["fixed"]
    turns: Annotated[int, Field(ge=2, le=20)]
    """Agent turns."""


class LinearHorizon(Section):
    """From `start` to `cap` at a constant rate over `steps` training steps."""

    kind: Literal["linear"]
    start: Annotated[float, Field(ge=2, le=20)]
    """First horizon."""
    cap: Annotated[int, Field(ge=2, le=20)]
    """Last horizon."""
    steps: Count
    """Training steps until the cap."""


class ScalingInterHorizon(Section):
    """AgentGym-RL's: a staircase, the next of `stages` every `every` training steps."""

    kind: Literal["scaling_inter"]
    stages: Annotated[
        tuple[Annotated[int, Field(ge=2, le=20)], ...], Field(min_length=1), Strict(False)
    ]
    """Horizons, in order."""
    every: Count
    """Training steps a stage."""


HorizonConfig = Annotated[
    AdaptiveHorizon | BidirectionalHorizon | FixedHorizon | LinearHorizon | ScalingInterHorizon,
    Field(discriminator="kind"),
]


class CurriculumConfig(Section):
    """Which tasks a step trains on, and what counts as success so far."""

    window: Count
    """Training episodes over which p_t is taken; never fewer than a step has."""
    reachable: Fraction
    """Least share of tasks whose expert needs no more turns than the horizon; p_t counts these."""
    difficulty: Annotated["AdaptiveDifficulty | UniformDifficulty", Field(discriminator="kind")]
    """How complexity levels are drawn."""


class AdaptiveDifficulty(Section):
    """g(p): the mean level drawn rises with p (eq. 9)."""

    kind: Literal["adaptive"]
    sharpness: Positive
    """How closely levels gather around the mean; larger is closer."""


class UniformDifficulty(Section):
    """Every level is equally likely."""

    kind: Literal["uniform"]


class MemoryConfig(Section):
    """M_long and M_short (eq. 10-11)."""

    capacity: Count
    """Most patterns in M_long."""
    store_above: NonNegative
    """theta_store: fixed-weight reward above which a success is stored."""
    similar_above: Fraction
    """theta_sim: cosine above which a pattern enters m_t."""
    short: Count
    """W_short: records (h, p, t) in M_short."""


RewardConfig.model_rebuild()
CurriculumConfig.model_rebuild()
