"""What the tool policy advises: the next tool as a conversation goes, or a whole plan at once."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from random import Random
from typing import Any, NamedTuple

import numpy as np
import torch

from progrl.config.orchestration import PlanConfig
from progrl.dialogue.codec import STOP
from progrl.dialogue.messages import Action, ToolSpec
from progrl.embedding import Encoder, Vectors
from progrl.errors import ConfigurationError
from progrl.memory import LongTermMemory
from progrl.orchestration.features import Catalogue, contexts, tool_of
from progrl.orchestration.policy import ToolPolicy


class Choice(NamedTuple):
    """A tool and P(tool | q, c)."""

    tool: str
    probability: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Algorithm 1's result; three lists of one length.

    Attributes:
        sequence: names of the tools, `talk` and `stop` among them, in order.
        confidence: of each step, in (0, 1].
        fallback: for each step the tool to try if the chosen one fails.
    """

    sequence: tuple[str, ...]
    confidence: tuple[float, ...]
    fallback: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {name: list(values) for name, values in asdict(self).items()}


class Course:
    """One conversation as the tool policy sees it; a shallow copy is a course of its own.

    Made by `Orchestrator.open`; told of each action by `took`.

    Attributes:
        catalogue: the tools to choose among.
    """

    def __init__(
        self, policy: ToolPolicy, catalogue: Catalogue, query: Vectors, memory: Vectors
    ) -> None:
        self._policy, self.catalogue = policy, catalogue
        self._query, self._memory = query, memory
        self._used = np.zeros((0, policy.dimension), np.float32)

    def ranked(self) -> list[Choice]:
        """All tools with their probabilities, which sum to 1, the most probable first."""
        context = contexts(self._policy.context, self._used)[-1]
        features = torch.from_numpy(np.concatenate([self._query, context, self._memory])[None])
        with torch.inference_mode():
            scores = self._policy(features, self.catalogue)[0].double()
            shares = torch.softmax(scores, dim=0).tolist()
        choices = map(Choice, self.catalogue.names, shares)
        return sorted(choices, key=lambda choice: -choice.probability)

    def took(self, action: Action) -> None:
        """The agent has acted; what is no tool of the catalogue leaves no mark."""
        self.use(tool_of(action))

    def use(self, tool: str) -> None:
        """Take a tool's embedding into the context (eq. 18)."""
        place = self.catalogue.place(tool)
        if place is not None:
            self._used = np.concatenate([self._used, self.catalogue.vectors[place][None]])

    def offer(self, catalogue: Catalogue) -> None:
        """From now on choose among other tools; what was used stays in the context."""
        self.catalogue = catalogue


class Orchestrator:
    """Advises on tools, by any policy that was fitted with its encoder.

    Args:
        encoder: of queries and of tools' descriptions.
        memory: for m_t; without one m_t is 0.

    Raises:
        ConfigurationError: the memory holds vectors of another width.
    """

    def __init__(self, encoder: Encoder, memory: LongTermMemory | None = None) -> None:
        if memory is not None and memory.dimension != encoder.dimension:
            raise ConfigurationError(
                f"The long-term memory holds {memory.dimension}-d vectors, the encoder "
                f"{encoder.name} makes {encoder.dimension}-d ones. Set embedding as it was when "
                "the memory was filled."
            )
        self._encoder, self.memory = encoder, memory

    def prepare(self, queries: Sequence[str]) -> None:
        """Encode queries that will be asked about together, which is faster than one by one."""
        self._encoder.encode(queries)

    def open(self, policy: ToolPolicy, query: str, tools: Sequence[ToolSpec]) -> Course:
        """Begin a conversation.

        Args:
            policy: whose advice; for a training task one that has not seen it.
            query: the user's opening words.
            tools: the domain's.

        Raises:
            ConfigurationError: the policy reads another encoder, or tools share a name.
        """
        policy.check_encoder(self._encoder)
        vector = self._encoder.encode([query])[0]
        recalled = np.zeros_like(vector) if self.memory is None else self.memory.context(vector)
        return Course(policy, Catalogue.of(tools, self._encoder), vector, recalled)

    def plan(
        self,
        config: PlanConfig,
        policy: ToolPolicy,
        query: str,
        tools: Sequence[ToolSpec],
        horizon: int,
        random: Random,
    ) -> Plan:
        """The plan for a query: it ends with `stop`, or after `horizon` steps (algorithm 1).

        Args:
            random: decides nothing where the choice is argmax.
        """
        course = self.open(policy, query, tools)
        steps: list[tuple[str, float, str]] = []
        while len(steps) < horizon and not (steps and steps[-1][0] == STOP):
            ranked = course.ranked()
            best = ranked[0]
            chosen = best if config.choice == "argmax" else _draw(ranked, random)
            confident = chosen if config.confidence == "chosen" else best
            other = next(choice for choice in ranked if choice.tool != chosen.tool)
            steps.append((chosen.tool, confident.probability, other.tool))
            course.use(chosen.tool)
        sequence, confidence, fallback = zip(*steps, strict=True) if steps else ((), (), ())
        return Plan(sequence, confidence, fallback)


def _draw(choices: Sequence[Choice], random: Random) -> Choice:
    """A tool by its probability (eq. 16)."""
    mark = random.random()
    sums = accumulate(choice.probability for choice in choices)
    # Probabilities may sum to a hair less than 1.
    return next((c for c, total in zip(choices, sums, strict=True) if mark < total), choices[-1])
