"""The whole configuration, section by section, in the order of the pipeline."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, Strict, model_validator

from progrl.config.agent import AgentConfig, EncoderConfig, EngineConfig
from progrl.config.base import Count, Fraction, Level, Names, Natural, Section, Threads
from progrl.config.orchestration import OrchestrationConfig
from progrl.config.training import (
    CurriculumConfig,
    GrpoConfig,
    HorizonConfig,
    MemoryConfig,
    RewardConfig,
    SftConfig,
)
from progrl.config.users import UserConfig

AGENTS = ("do_nothing", "expert", "untrained", "sft", "grpo")
"""The agents of every evaluation, from the least to the trained; do_nothing stands beside every
result."""
AgentName = Literal["do_nothing", "random", "expert", "untrained", "sft", "grpo"]


class DomainsConfig(Section):
    """Where tasks come from."""

    train: Names
    """Domains of training and of evaluation."""
    held_out: Names
    """Domains of evaluation alone."""
    options: Mapping[str, Mapping[str, Any]]
    """Options by domain, checked by the domain itself."""

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if not self.train:
            raise ValueError("train: name at least one domain")
        for key, names in (("train", self.train), ("held_out", self.held_out)):
            if twice := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"{key}: {', '.join(twice)} is named more than once")
        if both := sorted(set(self.train) & set(self.held_out)):
            raise ValueError(f"{', '.join(both)} cannot be in both train and held_out")
        if idle := sorted(set(self.options) - set(self.train) - set(self.held_out)):
            raise ValueError(
                f"options for {', '.join(idle)} have no effect: no such domain is used"
            )
        return self


class GenerateConfig(Section):
    """Tasks, user wordings and expert dialogues."""

    train_tasks: Count
    """Tasks to train on, a training domain."""
    validation_tasks: Count
    """Tasks for probes and choices, a training domain."""
    test_tasks: Count
    """Tasks for the results, a domain; held-out domains too."""
    dialogues: Count
    """Dialogues between expert and simulated user over the training tasks, a training domain."""
    horizon: Annotated[int, Field(ge=2, le=30)]
    """Most agent turns of a dialogue."""
    max_level: Level
    """Highest complexity level of the dialogues; tasks have all levels."""
    responses: Count
    """Wordings in a domain's reply memory."""
    pool: Count
    """Wordings from which these are drawn, farthest first."""

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.pool < self.responses:
            raise ValueError("pool: at least as many as responses")
        return self


class GateConfig(Section):
    """When the challenger becomes champion."""

    benchmark: str
    """Benchmark whose paired difference in success decides."""
    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    """Of the interval that must exclude 0."""


class EvaluationConfig(Section):
    """The protocol of evaluation."""

    horizon: Annotated[int, Field(ge=2, le=30)]
    """Most agent turns."""
    trials: Count
    """Trials of a task; trial j uses user seed j."""
    family: Literal["a", "b", "all"]
    """Family of user profiles."""
    agents: Annotated[tuple[AgentName, ...], Strict(False)]
    """Who is measured, in the order of the tables: the five of the default at least, `random` too
    where it is named."""
    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    """Of all intervals."""
    bootstrap: Annotated[int, Field(ge=100)]
    """Resamples of intervals over tasks."""
    max_fault_share: Fraction
    """Share of episodes lost to faults above which evaluation fails."""
    examples: Natural
    """Dialogues an agent and benchmark whose trajectories are kept."""
    compare_advice: bool
    """Whether the trained agent is also played without advice on tools, and with bad advice."""
    gate: GateConfig
    """When the challenger becomes champion."""

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if len(set(self.agents)) < len(self.agents):
            raise ValueError("agents: one is named more than once")
        if missing := [name for name in AGENTS if name not in self.agents]:
            raise ValueError(f"agents: {', '.join(missing)} cannot be left out")
        return self


class MlflowTracking(Section):
    """MLflow: MLFLOW_TRACKING_URI where it is set, else a SQLite store in `.state/`."""

    kind: Literal["mlflow"]
    experiment: str
    """Name of the experiment."""
    model: str
    """Name in the model registry."""


class NoTracking(Section):
    """Nothing is recorded beyond the files."""

    kind: Literal["none"]


class Config(Section):
    """Everything that decides what a run computes."""

    seed: Natural
    """Root of the seed tree."""
    domains: DomainsConfig
    """Where tasks come from."""
    embedding: EncoderConfig
    """The sentence encoder of reply memory and long-term memory."""
    generate: GenerateConfig
    """Stage `generate`."""
    user: UserConfig
    """Who plays the user in training and `progrl rollout`; warm start and evaluation have rules."""
    agent: AgentConfig
    """The model."""
    engine: EngineConfig
    """What samples from it."""
    sft: SftConfig
    """Stage `sft`."""
    reward: RewardConfig
    """The structured reward: its fixed weights, and those that training scores with."""
    grpo: GrpoConfig
    """Stage `grpo`."""
    horizon: HorizonConfig
    """The episode horizon over training."""
    curriculum: CurriculumConfig
    """Which tasks a step trains on."""
    memory: MemoryConfig
    """Long-term and short-term memory."""
    orchestration: OrchestrationConfig
    """What the agent is told about tools."""
    evaluation: EvaluationConfig
    """Stages `evaluate` and `register`."""
    threads: Threads
    """Torch threads, of each process; part of the configuration since sums depend on it in their
    last digits. `auto` measures which number is fastest for the model's shape as a stage begins,
    and stays with it where the stage is resumed: on another machine results may then differ in
    these digits."""
    processes: Annotated[int, Field(ge=1, le=1024)]
    """Processes among which warm start, GRPO and evaluation divide their work, each with `threads`.
    Part of the configuration for the same reason."""
    tracking: Annotated[MlflowTracking | NoTracking, Field(discriminator="kind")]
    """Where runs are recorded; changes no result."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.grpo.probe_tasks > self.generate.validation_tasks * len(self.domains.train):
            raise ValueError("grpo.probe_tasks: more than there are validation tasks")
        if self.sft.dialogues > self.generate.dialogues * len(self.domains.train):
            raise ValueError("sft.dialogues: more than generate.dialogues")
        if self.grpo.minibatches > self.grpo.tasks:
            raise ValueError("grpo.minibatches: more than grpo.tasks, so some would be empty")
        if self.grpo.async_level and self.engine.sleep:
            raise ValueError(
                "grpo.async_level: 1 samples during updates, when engine.sleep lets the server's "
                "memory go; set engine.sleep=false"
            )
        if self.sft.warmup.kind == "copy" and self.agent.kind == "huggingface":
            raise ValueError("sft.warmup.kind: copy is for a new model; use none with huggingface")
        advice = self.orchestration
        if advice.kind == "bias" and self.agent.kind == "huggingface":
            raise ValueError("orchestration.kind: bias needs names of one token; use hint here")
        if (
            advice.kind in ("hint", "bias")
            and advice.policy.head.kind == "closed"
            and self.domains.held_out
        ):
            raise ValueError(
                "orchestration.policy.head.kind: closed cannot score the tools of domains.held_out"
            )
        if self.evaluation.gate.benchmark not in (*self.domains.train, *self.domains.held_out):
            raise ValueError("evaluation.gate.benchmark: not one of the domains")
        if self.grpo.probe_every > self.grpo.steps:
            raise ValueError("grpo.probe_every: more than grpo.steps, so only the last has a probe")
        return self
