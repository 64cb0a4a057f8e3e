"""The tool policy within GRPO: it learns from the same episodes, and goes into the checkpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from progrl.config.credit import NormalisationConfig
from progrl.memory import LongTermMemory
from progrl.orchestration import Improver, Orchestrator
from progrl.rewards import group_advantages
from progrl.training.update import Group

NAMES = ("decisions", "loss", "kl", "weight", "weight_share_most", "agreement")
_KEPT = "tools."


@dataclass(frozen=True)
class ToolLearning:
    """What GRPO does with the tool policy whose advice its agent gets.

    Attributes:
        orchestrator: asks the policy for the agent.
        improver: holds the policies, and improves them in place.
    """

    orchestrator: Orchestrator
    improver: Improver

    def attach(self, memory: LongTermMemory) -> None:
        """From now on m_t is made from this memory."""
        self.orchestrator.memory = memory

    def learn(self, groups: Sequence[Group], config: NormalisationConfig) -> dict[str, Any]:
        """Learn from a step's episodes; its figures for the step's row, None where there are none.

        Groups without signal say nothing of what went well, and are left out.
        """
        trajectories, advantages = [], []
        for group in groups:
            scored = group_advantages(group.scores, config)
            if scored is not None:
                trajectories += [t for t in group.trajectories if t.valid]
                advantages += scored.tolist()
        figures = self.improver.update(trajectories, advantages, self.orchestrator.memory)
        return {f"tools_{name}": figures.get(name) for name in NAMES}

    def kept(self) -> dict[str, Tensor]:
        """The whole policy's weights, to be kept beside the model's of the best probe."""
        whole = self.improver.policies.whole
        return {f"{_KEPT}{name}": t.detach().contiguous() for name, t in whole.state_dict().items()}

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up the whole policy's weights from among what was kept."""
        own = {n.removeprefix(_KEPT): t for n, t in tensors.items() if n.startswith(_KEPT)}
        self.improver.policies.whole.load_state_dict(own)
