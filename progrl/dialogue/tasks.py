"""A task: one problem of a domain, immutable, with a stable id."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from progrl.errors import DataError
from progrl.files import digest, read_jsonl, write_jsonl

Split = Literal["train", "validation", "test"]
_SHARE_OF_256: dict[Split, range] = {
    "train": range(0, 192),
    "validation": range(192, 224),
    "test": range(224, 256),
}


@dataclass(frozen=True, slots=True)
class Milestone:
    """A checkable fact about the state or the dialogue; the weights of a task sum to 1."""

    name: str
    weight: float


@dataclass(frozen=True)
class Task:
    """One problem of a domain.

    Attributes:
        id: stable, `<domain>-<first 16 digits of content_hash>`.
        family: the kind of problem, a name of the domain's.
        level: complexity, 1 to 5.
        query: the user's opening words.
        goal: what the user wants; hidden from the agent. JSON, of the domain's own form.
        setup: from what the environment builds its first state. JSON, of the domain's own form.
        schedule: goal changes and tool failures that will happen. JSON, of the domain's own form.
        milestones: with weights that sum to 1.
        expert_turns: agent turns that the domain's expert takes, its closing message included.
        seed: of all that is random in the task's environment.
    """

    id: str
    domain: str
    family: str
    level: int
    query: str
    goal: Mapping[str, Any]
    setup: Mapping[str, Any]
    schedule: Mapping[str, Any]
    milestones: tuple[Milestone, ...]
    expert_turns: int
    seed: int

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of what the task is about: equal for tasks that differ in name or seed alone."""
        return content_hash(self.domain, self.query, self.goal, self.setup, self.schedule)

    def to_json(self) -> dict[str, Any]:
        """As written to disk."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Task":
        """The inverse of `to_json`; raises TypeError or KeyError on another form."""
        milestones = tuple(Milestone(**m) for m in value["milestones"])
        task = cls(**{**value, "milestones": milestones})
        for name in ("level", "expert_turns", "seed"):
            if not isinstance(getattr(task, name), int):
                raise TypeError(f"{name} is no whole number")
        if task.level not in range(1, 6):
            raise TypeError(f"level {task.level} is none of 1 to 5")
        return task


def content_hash(
    domain: str,
    query: str,
    goal: Mapping[str, Any],
    setup: Mapping[str, Any],
    schedule: Mapping[str, Any],
) -> str:
    """SHA-256 over the parts of a task that make it another problem."""
    return digest([domain, query, dict(goal), dict(setup), dict(schedule)])


def split_of(hash_: str) -> Split:
    """The split that a content hash falls into: 75% train, 12.5% validation, 12.5% test.

    Deciding by content keeps the splits apart whatever seeds produced them.
    """
    bucket = int(hash_[:2], 16)
    return next(name for name, buckets in _SHARE_OF_256.items() if bucket in buckets)


def write_tasks(path: Path, tasks: Iterable[Task]) -> None:
    """JSON Lines, a task a line."""
    write_jsonl(path, (task.to_json() for task in tasks))


def read_tasks(path: Path) -> list[Task]:
    """The tasks of a file.

    Raises:
        DataError: a line is not a task, or its id does not fit its content (file and line named).
    """
    tasks = []
    for number, value in read_jsonl(path):
        try:
            task = Task.from_json(value)
        except (TypeError, KeyError) as error:
            raise DataError(f"{path}, line {number}: not a task ({error}).") from None
        if not task.id.endswith(task.content_hash[:16]):
            raise DataError(
                f"{path}, line {number}: task {task.id} was changed after it was made "
                "(its content does not give its id). Run `progrl generate` again."
            )
        tasks.append(task)
    return tasks


def check_disjoint(**splits: Iterable[Task]) -> None:
    """Raise DataError if two splits share a task, by id or by content."""
    seen: dict[str, str] = {}
    for name, tasks in splits.items():
        keys = {key for task in tasks for key in (task.id, task.content_hash)}
        for key in sorted(keys):
            if key in seen:
                raise DataError(
                    f"Splits {seen[key]!r} and {name!r} share task {key}: what is trained on may "
                    "not be evaluated on. Run `progrl generate` again with another seed."
                )
        seen.update(dict.fromkeys(keys, name))
