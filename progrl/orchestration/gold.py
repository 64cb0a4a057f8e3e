"""Learning which tool comes next from the experts' dialogues, by cross-entropy."""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from progrl.config.orchestration import GoldConfig, OpenHead, ToolPolicyConfig
from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import Encoder, Vectors
from progrl.errors import DataError
from progrl.memory import LongTermMemory, Pattern
from progrl.orchestration.decisions import Decisions, Remember, decide
from progrl.orchestration.features import Catalogue
from progrl.orchestration.policy import ToolPolicy
from progrl.seeds import Seed


def fold_of(task_id: str, folds: int) -> int:
    """The part of the training tasks that a task belongs to, from 0, decided by its id alone."""
    return int.from_bytes(sha256(task_id.encode()).digest()[:8], "big") % folds


def fit(
    config: ToolPolicyConfig,
    catalogues: Mapping[str, Catalogue],
    dialogues: Sequence[Trajectory],
    encoder: Encoder,
    similar_above: float,
    seed: Seed,
) -> ToolPolicy:
    """A policy that has learned the dialogues' sequences of tools; the same for the same arguments.

    m_t is made from the dialogues themselves: for those of one fold, from the other folds, so that
    no task finds itself in memory.

    Args:
        catalogues: the tools of each domain.
        similar_above: theta_sim.

    Raises:
        DataError: the dialogues use no tool, or are of a domain without a catalogue.
    """
    remember = _memory(dialogues, encoder, similar_above, config.folds)
    decisions = decide(dialogues, catalogues, config.context, encoder, remember)
    if not len(decisions):
        raise DataError(
            f"No tool is used in {len(dialogues)} dialogues, so there is nothing to learn from. "
            "Write more dialogues: raise generate.dialogues and run `progrl generate`."
        )
    policy = ToolPolicy(
        encoder=encoder.name,
        dimension=encoder.dimension,
        tools=decisions.catalogue.cards,
        context=config.context,
        head=config.head,
        width=config.width,
        seed=seed.child("weights"),
    )
    _learn(policy, decisions, config.gold, seed.child("order"))
    return policy.eval()


def _memory(
    dialogues: Sequence[Trajectory], encoder: Encoder, similar_above: float, folds: int
) -> Remember:
    """m_t of each dialogue: from the successes among those of other folds."""
    vectors = encoder.encode([dialogue.query for dialogue in dialogues])
    own = [fold_of(dialogue.task_id, folds) for dialogue in dialogues]
    memories = []
    for fold in range(folds):
        memory = LongTermMemory(encoder.dimension, max(1, len(dialogues)), 0.0, similar_above)
        for dialogue, vector, place in zip(dialogues, vectors, own, strict=True):
            if place != fold and dialogue.success:
                memory.store(Pattern.of(dialogue, reward=1.0, step=0), vector)
        memories.append(memory)
    return lambda number, vector: memories[own[number]].context(vector)


def _learn(policy: ToolPolicy, decisions: Decisions, config: GoldConfig, seed: Seed) -> None:
    """Cross-entropy over shuffled batches; the rate falls linearly to 0."""
    order = torch.Generator().manual_seed(seed.value)
    adam = torch.optim.AdamW(
        policy.parameters(), config.learning_rate, weight_decay=config.weight_decay, foreach=True
    )
    falling = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: 1 - step / config.steps)
    unknown = policy.head.describe if isinstance(policy.head, OpenHead) else 0.0
    batches = _batches(len(decisions), config.batch, order)
    policy.train()
    for rows in islice(batches, config.steps):
        keep = (torch.rand(len(rows), generator=order) >= config.forget).float()
        known = (torch.rand(len(policy.tools), generator=order) >= unknown).float()
        log_p = decisions.log_probabilities(policy, rows, keep, known)
        adam.zero_grad()
        nll_loss(log_p, decisions.chosen[rows]).backward()  # type: ignore[no-untyped-call]
        adam.step()
        falling.step()


def _batches(count: int, size: int, order: torch.Generator) -> Iterator[Tensor]:
    """Rows in batches, shuffled anew at each pass, without end."""
    while True:
        rows = torch.randperm(count, generator=order)
        for start in range(0, count, size):
            yield rows[start : start + size]


def accuracy(
    policy: ToolPolicy,
    catalogues: Mapping[str, Catalogue],
    dialogues: Sequence[Trajectory],
    encoder: Encoder,
    memory: LongTermMemory | None = None,
) -> float:
    """Share of the dialogues' decisions whose tool is the policy's most probable one.

    Args:
        memory: for m_t; without one m_t is 0.
    """

    def remember(number: int, vector: Vectors) -> Vectors:
        return memory.context(vector) if memory is not None else np.zeros_like(vector)

    decisions = decide(dialogues, catalogues, policy.context, encoder, remember)
    with torch.inference_mode():
        log_p = decisions.log_probabilities(policy, torch.arange(len(decisions)))
    return float((log_p.argmax(dim=1) == decisions.chosen).float().mean())
