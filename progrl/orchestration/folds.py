"""Policies fitted without a part of the training tasks, so that hints there are no oracle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from progrl.config.orchestration import ToolPolicyConfig
from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import Encoder
from progrl.errors import CheckpointError
from progrl.files import new_folder, read_json, write_json
from progrl.orchestration.features import Catalogue
from progrl.orchestration.gold import fit, fold_of
from progrl.orchestration.policy import ToolPolicy
from progrl.seeds import Seed

VERSION = 1
FOLDS = "folds.json"


@dataclass(frozen=True, eq=False)
class FoldedPolicies:
    """One policy fitted on all training tasks, and for each fold of them one fitted without it.

    Attributes:
        whole: for tasks that were not trained on.
        parts: `parts[k]` has seen no task of fold k; none where nobody gets hints in training.
    """

    whole: ToolPolicy
    parts: tuple[ToolPolicy, ...]

    @property
    def all(self) -> tuple[ToolPolicy, ...]:
        """The parts, then the whole."""
        return (*self.parts, self.whole)

    def for_training(self, task_id: str) -> ToolPolicy:
        """The policy that gives hints on a training task: one that has not seen it."""
        return self.parts[fold_of(task_id, len(self.parts))]

    def saw(self, number: int, task_id: str) -> bool:
        """Whether `all[number]` learns from a task."""
        return number == len(self.parts) or number != fold_of(task_id, len(self.parts))

    def save(self, folder: Path) -> None:
        """Write a folder, whole or not at all; it is also the folder of the policy `whole`."""
        with new_folder(folder) as temporary:
            self.whole.write(temporary)
            for number, part in enumerate(self.parts):
                part.save(temporary / _name(number))
            write_json(temporary / FOLDS, {"version": VERSION, "folds": len(self.parts)})

    @classmethod
    def load(cls, folder: Path) -> "FoldedPolicies":
        """The policies that `save` wrote.

        Raises:
            DataError: a file is missing or is not JSON.
            CheckpointError: one is damaged or of another version, or they do not fit together.
        """
        about = read_json(folder / FOLDS)
        count = about.get("folds") if isinstance(about, dict) else None
        if type(count) is not int or count < 0 or about.get("version") != VERSION:
            raise CheckpointError(
                f"{folder / FOLDS}: no folds of version {VERSION}. Fit the tool policy again."
            )
        parts = tuple(ToolPolicy.load(folder / _name(number)) for number in range(count))
        whole = ToolPolicy.load(folder)
        if any(_kind(part) != _kind(whole) for part in parts):
            raise CheckpointError(
                f"{folder}: its policies differ in encoder, tools, head, context or width, so they "
                "are not of one fit. Fit the tool policy again."
            )
        return cls(whole, parts)


def fit_folds(
    config: ToolPolicyConfig,
    catalogues: Mapping[str, Catalogue],
    dialogues: Sequence[Trajectory],
    encoder: Encoder,
    similar_above: float,
    seed: Seed,
    *,
    parts: bool = True,
) -> FoldedPolicies:
    """Fit the whole and, for each of `config.folds`, a policy on the other folds' dialogues alone.

    Nothing of a fold's dialogues, their queries included, reaches the policy fitted without them.
    Arguments and errors are those of `fit`, and:

    Args:
        parts: False fits the whole alone.
    """

    def fitted(name: str, some: Sequence[Trajectory]) -> ToolPolicy:
        return fit(config, catalogues, some, encoder, similar_above, seed.child("policy", name))

    folds = [fold_of(dialogue.task_id, config.folds) for dialogue in dialogues]
    without = tuple(
        fitted(_name(number), [d for d, f in zip(dialogues, folds, strict=True) if f != number])
        for number in range(config.folds if parts else 0)
    )
    return FoldedPolicies(fitted("whole", dialogues), without)


def _name(number: int) -> str:
    return f"without-{number}"


def _kind(policy: ToolPolicy) -> tuple[object, ...]:
    return (
        (policy.encoder, policy.dimension, policy.tools),
        (policy.head, policy.context, policy.width),
    )
