"""What agents are told about tools in the stages, by the section `orchestration`.

A model's folder holds the tool policy that belongs to it in `tools/`, and in `tools/memory/` what
that policy recalls, if it does.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from progrl.agent.advice import Advisor
from progrl.config.models import Config
from progrl.config.orchestration import (
    BiasAdvice,
    HintAdvice,
    LearnedAdvice,
    LearnedTools,
    NoAdvice,
    OrchestrationConfig,
    RandomAdvice,
    SilentAdvice,
)
from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import Encoder
from progrl.environments.contracts import Domain
from progrl.errors import ConfigurationError
from progrl.memory import LongTermMemory
from progrl.orchestration import (
    Catalogue,
    FoldedPolicies,
    Orchestrator,
    PolicyAdvisor,
    RandomAdvisor,
    ToolPolicy,
    fit_folds,
)
from progrl.seeds import Seed
from progrl.stages.base import Context
from progrl.stages.parts import encoder_of

TOOLS, MEMORY = "tools", "memory"


class Advisors(NamedTuple):
    """Who advises in training, and who in probes; None where nobody does."""

    training: Advisor | None
    probing: Advisor | None


def catalogues_of(
    context: Context, domains: Mapping[str, Domain], encoder: Encoder
) -> dict[str, Catalogue]:
    """The tools of the training domains."""
    names = context.config.domains.train
    return {name: Catalogue.of(domains[name].tools, encoder) for name in names}


def fit_tools(
    context: Context,
    domains: Mapping[str, Domain],
    dialogues: Sequence[Trajectory],
    seed: Seed,
) -> FoldedPolicies | None:
    """The tool policies that the dialogues teach; None where the configuration has none."""
    config = context.config
    if not isinstance(config.orchestration, LearnedTools):
        return None
    encoder = encoder_of(context)
    catalogues = catalogues_of(context, domains, encoder)
    similar = config.memory.similar_above
    policy = config.orchestration.policy
    heard = isinstance(config.orchestration, LearnedAdvice)
    return fit_folds(policy, catalogues, dialogues, encoder, similar, seed, parts=heard)


def check_fitted(policies: FoldedPolicies, config: LearnedTools, folder: Path) -> None:
    """ConfigurationError where a model's tool policies were fitted with other settings."""
    asked, whole = config.policy, policies.whole
    pairs = {
        "context": (whole.context, asked.context),
        "head": (whole.head, asked.head),
        "width": (whole.width, asked.width),
    }
    if isinstance(config, LearnedAdvice):  # which asks the policies without a part
        pairs["folds"] = (len(policies.parts), asked.folds)
    wrong = [name for name, (fitted, wanted) in pairs.items() if fitted != wanted]
    if wrong:
        raise ConfigurationError(
            f"{folder}: its tool policy was fitted with other orchestration.policy."
            f"{', '.join(wrong)} than this configuration has. Set them as they were, or run "
            "`progrl sft` again with this section orchestration."
        )


def advisors(
    config: OrchestrationConfig,
    policies: FoldedPolicies | None,
    orchestrator: Orchestrator | None,
    seed: Seed,
) -> Advisors:
    """Advisors for a run's training and for its probes.

    Args:
        policies, orchestrator: there where the advice is learned.
    """
    match config:
        case NoAdvice() | SilentAdvice():
            return Advisors(None, None)
        case RandomAdvice(top=top, drop=drop):
            return Advisors(RandomAdvisor(top, drop, seed), RandomAdvisor(top, 0.0, seed))
    assert policies is not None and orchestrator is not None
    drop = config.drop if isinstance(config, HintAdvice) else 0.0
    return Advisors(
        PolicyAdvisor(config, orchestrator, policies.for_training, drop, seed),
        PolicyAdvisor(config, orchestrator, lambda task: policies.whole, 0.0, seed),
    )


def advisor_of(
    context: Context, folder: Path, config: OrchestrationConfig | None = None
) -> Advisor | None:
    """Who advises the model of a folder when it is used: nothing is dropped, all were learned from.

    Args:
        config: instead of the configuration's own.

    Raises:
        ConfigurationError: the advice is learned, and the folder has no tool policy.
    """
    config = config or context.config.orchestration
    seed = Seed("advice")
    if not isinstance(config, LearnedAdvice):
        return advisors(config, None, None, seed).probing
    policy = ToolPolicy.load(tools_of(folder))
    orchestrator = Orchestrator(encoder_of(context), recalled_by(folder / TOOLS))
    return PolicyAdvisor(config, orchestrator, lambda task: policy, 0.0, seed)


def recalled_by(policy: Path) -> LongTermMemory | None:
    """What the tool policy of a folder recalls, to read it alone; None where it has nothing."""
    folder = policy / MEMORY
    return LongTermMemory.load(folder, read_only=True) if folder.exists() else None


def compared(config: Config) -> dict[str, OrchestrationConfig]:
    """Other advice that evaluation holds against the configured, by the names of their kinds."""
    off = NoAdvice(kind="off")
    if not config.evaluation.compare_advice:
        return {}
    match config.orchestration:
        case HintAdvice(top=top):
            return {"off": off, "random": RandomAdvice(kind="random", top=top, drop=0.0)}
        case BiasAdvice() | RandomAdvice():
            return {"off": off}
    return {}


def tools_of(folder: Path) -> Path:
    """The folder of the tool policy in a model's folder; ConfigurationError if there is none."""
    if not (folder / TOOLS).is_dir():
        raise ConfigurationError(
            f"{folder} has no tool policy, which this orchestration needs. Train it with this "
            "section orchestration, from `progrl sft` on, or use it with orchestration.kind=off."
        )
    return folder / TOOLS
