"""From trajectories to what the tool policy learns from: one decision for each tool used."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from progrl.config.orchestration import ContextConfig
from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import Encoder, Vectors
from progrl.errors import DataError
from progrl.orchestration.features import Catalogue, contexts, tool_of
from progrl.orchestration.policy import ToolPolicy

Remember = Callable[[int, Vectors], Vectors]
"""m_t of an episode, given its place among the episodes and the embedding of its query."""


@dataclass(frozen=True, eq=False)
class Decisions:
    """n decisions of q episodes, over the tools of all their domains.

    Attributes:
        catalogue: all tools.
        queries: e_q of each episode, [q, d].
        memories: m_t of each episode, [q, d].
        allowed: whether an episode's domain has the tool, [q, |T|] bool.
        episode: which episode each decision belongs to, [n].
        contexts: c_t of each decision, [n, d].
        chosen: the tool used, a place in the catalogue, [n].
    """

    catalogue: Catalogue
    queries: Tensor
    memories: Tensor
    allowed: Tensor
    episode: Tensor
    contexts: Tensor
    chosen: Tensor

    def __len__(self) -> int:
        return len(self.chosen)

    def features(self, rows: Tensor, keep: Tensor | None = None) -> Tensor:
        """[e_q; c_t; m_t] of some decisions, [n, 3d]; m_t is 0 where `keep`, [n], is 0."""
        episode = self.episode[rows]
        memories = self.memories[episode]
        if keep is not None:
            memories = memories * keep[:, None]
        return torch.cat([self.queries[episode], self.contexts[rows], memories], dim=1)

    def log_probabilities(
        self,
        policy: ToolPolicy,
        rows: Tensor,
        keep: Tensor | None = None,
        known: Tensor | None = None,
    ) -> Tensor:
        """log P of each tool in some decisions, [n, |T|]; a domain lacking a tool gives it -1e9."""
        scores = policy(self.features(rows, keep), self.catalogue, known)
        allowed = self.allowed[self.episode[rows]]
        # Finite, so that 0 * log 0 in a divergence is 0 and not NaN.
        return torch.log_softmax(scores.masked_fill(~allowed, -1e9), dim=1)

    def of_episodes(self, wanted: Tensor) -> Tensor:
        """The rows of the decisions whose episode is wanted, [q] bool."""
        return torch.nonzero(wanted[self.episode]).flatten()


def decide(
    trajectories: Sequence[Trajectory],
    catalogues: Mapping[str, Catalogue],
    context: ContextConfig,
    encoder: Encoder,
    remember: Remember,
) -> Decisions:
    """The decisions of trajectories.

    A turn that is no action, or calls a tool that the domain has not, is none. A turn that failed
    leaves its mark in the context and is nothing to learn from.

    Args:
        catalogues: by domain.

    Raises:
        DataError: a trajectory is of a domain without a catalogue.
    """
    if lacking := sorted({t.domain for t in trajectories} - set(catalogues)):
        raise DataError(
            f"Episodes of {', '.join(lacking)}, whose tools are not known here. Leave them out, or "
            "name the domain in domains.train."
        )
    union = Catalogue.union(catalogues[name] for name in sorted(catalogues))
    places = {card: place for place, card in enumerate(union.cards)}
    episodes: list[int] = []
    rows: list[Vectors] = []
    chosen: list[int] = []
    allowed = np.zeros((len(trajectories), len(union.cards)), np.bool_)
    for number, trajectory in enumerate(trajectories):
        catalogue = catalogues[trajectory.domain]
        at = [places[card] for card in catalogue.cards]
        allowed[number, at] = True
        used = used_tools(trajectory, catalogue)
        before = contexts(context, catalogue.vectors[[place for place, _ in used]])
        kept = [step for step, (_, failed) in enumerate(used) if not failed]
        episodes += [number] * len(kept)
        rows += [before[step] for step in kept]
        chosen += [at[used[step][0]] for step in kept]
    queries = encoder.encode([t.query for t in trajectories])
    memories = np.zeros_like(queries)
    for number, vector in enumerate(queries):
        memories[number] = remember(number, vector)
    return Decisions(
        catalogue=union,
        queries=torch.from_numpy(queries),
        memories=torch.from_numpy(memories),
        allowed=torch.from_numpy(allowed),
        episode=torch.tensor(episodes, dtype=torch.int64),
        contexts=torch.from_numpy(np.array(rows, np.float32).reshape(-1, encoder.dimension)),
        chosen=torch.tensor(chosen, dtype=torch.int64),
    )


def used_tools(trajectory: Trajectory, catalogue: Catalogue) -> list[tuple[int, bool]]:
    """The tools used, by their place in the catalogue, and whether the use failed."""
    used = []
    for turn in trajectory.turns:
        place = catalogue.place(tool_of(turn.action)) if turn.action is not None else None
        if place is not None:
            used.append((place, turn.failed))
    return used
