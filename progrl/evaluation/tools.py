"""How an agent uses tools: against the expert, against another agent, and against itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from progrl.dialogue.messages import Message, ToolCall
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import End, Trajectory, Turn, assistant_message
from progrl.dialogue.users import UserReply
from progrl.environments.contracts import Domain, Environment, State
from progrl.errors import DataError
from progrl.evaluation.interaction import Ratio
from progrl.evaluation.statistics import Interval

GUARD = 0.2
"""What the lower bound of success where it trained must exceed for retention to be a ratio."""

Groups = dict[str, list[float]]


def calls(trajectory: Trajectory) -> tuple[str, ...]:
    """The names of the tools called, in order, calls that failed included."""
    return tuple(t.action.name for t in trajectory.turns if isinstance(t.action, ToolCall))


def edit_distance(a: Sequence[str], b: Sequence[str]) -> float:
    """Levenshtein's distance over the longer length, in [0, 1]; 0 for two empty sequences."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1] / max(len(a), len(b), 1)


@dataclass(frozen=True, slots=True)
class Calls:
    """Of one episode: which task and trial, solved or not, and how many tools were called."""

    task: str
    trial: int
    solved: bool
    count: int


def tool_efficiency(
    a: Iterable[Calls], b: Iterable[Calls], expert: Iterable[Calls]
) -> tuple[Groups, Groups]:
    """min(1, expert's calls / calls used), in (0, 1], where both agents solved task and trial.

    Only there: an agent that solves little would else look efficient by solving what is easy.
    Left out is also what needs no tool, for the expert and thus at all.

    Returns:
        For a and b the values of each task's trials, over the same tasks and trials.
    """
    of_a, of_b, best = ({(c.task, c.trial): c for c in rows} for rows in (a, b, expert))
    values: tuple[Groups, Groups] = {}, {}
    for key in sorted(of_a.keys() & of_b.keys() & best.keys()):
        if not (of_a[key].solved and of_b[key].solved and best[key].count):
            continue
        for group, mine in zip(values, (of_a[key], of_b[key]), strict=True):
            group.setdefault(key[0], []).append(min(1.0, best[key].count / max(mine.count, 1)))
    return values


def selection(trajectory: Trajectory, task: Task, domain: Domain) -> Ratio:
    """Selection accuracy: the agent's tool is the expert's, on the agent's own states; in [0, 1].

    The episode is played again in a fresh environment, action by action. The cases are the states
    in which the expert would call a tool; the agent agrees where it calls the same tool, whatever
    its arguments. Speaking there is no agreement.

    Raises:
        DataError: the environment answers otherwise than it did: this is another task or version
            of the domain, or the user called tools of its own, which trajectories do not keep.
    """
    environment, expert = domain.environment(), domain.expert()
    environment.reset(task)
    history = [Message("user", trajectory.query)]
    agreed = cases = 0
    for turn in trajectory.turns:
        wanted = expert.next_action(State(task, environment, history))
        if isinstance(wanted, ToolCall):
            cases += 1
            agreed += isinstance(turn.action, ToolCall) and turn.action.name == wanted.name
        said = _repeat(turn, environment, trajectory)
        spoken = Message("assistant", said) if said else assistant_message(turn.action, turn.text)
        history.append(spoken)
        if turn.source:
            history.append(turn.answer())
    return Ratio(agreed, cases)


def _repeat(turn: Turn, environment: Environment, trajectory: Trajectory) -> str:
    """Do what was done in a turn once more; what a call has said to the user, if it has."""
    last = turn is trajectory.turns[-1]
    if turn.action is None or (last and trajectory.end is End.WINDOW):
        return ""
    result = environment.step(turn.action)
    if turn.source == "user":  # words have an answer, and so has a call that spoke
        for call, _ in turn.user_calls:
            environment.hear(UserReply("", turn.act, calls=(call,)))
        environment.hear(UserReply(turn.observation, turn.act, last and trajectory.end is End.LEFT))
        return result.said
    if isinstance(turn.action, ToolCall) and result.observation != turn.observation:
        raise DataError(
            f"Episode of task {trajectory.task_id}: played again, {turn.action} gives "
            f"{result.observation!r}, not {turn.observation!r}. Evaluate again with this version."
        )
    return ""


@dataclass(frozen=True, slots=True)
class Retention:
    """Success on a held-out domain against that of training.

    Attributes:
        value: a ratio (at least 0, above 1 where the held-out domain is easier), or success in
            [0, 1] itself.
        kind: which of both.
    """

    value: float
    kind: Literal["ratio", "absolute"]


def retention(
    held_out: Interval | None, trained: Sequence[Interval], guard: float = GUARD
) -> Retention | None:
    """Cross-domain retention: held-out success / mean success on the training domains.

    A ratio only where the lower bound of success exceeds `guard` on every training domain: a ratio
    of two failures says nothing. Else the absolute success; None without a held-out figure.
    """
    if held_out is None:
        return None
    if not trained or min(interval.low for interval in trained) <= guard:
        return Retention(held_out.mean, "absolute")
    mean = sum(interval.mean for interval in trained) / len(trained)
    return Retention(held_out.mean / mean, "ratio")


def alike(labels: Sequence[str]) -> NDArray[np.bool_]:
    """Which queries are similar, [n, n]: those of the same label (a family of tasks)."""
    array = np.asarray(labels)
    same: NDArray[np.bool_] = array[:, None] == array[None, :]
    return same


def alike_queries(vectors: NDArray[np.float32], above: float) -> NDArray[np.bool_]:
    """Which queries are similar, [n, n]: cosine above `above`; `vectors` [n, d] of length 1."""
    near: NDArray[np.bool_] = vectors @ vectors.T > above
    return near


def self_similarity(sequences: Sequence[Sequence[str]], similar: NDArray[np.bool_]) -> float | None:
    """Mean of 1 - edit distance over all pairs of similar queries, in [0, 1]; None without a pair.

    Args:
        sequences: [n], tools called.
        similar: [n, n], symmetric.
    """
    pairs = np.argwhere(np.triu(similar, 1))
    if not len(pairs):
        return None
    return float(np.mean([1 - edit_distance(sequences[i], sequences[j]) for i, j in pairs]))


def consistency(
    sequences: Sequence[Sequence[str]],
    expert: Sequence[Sequence[str]],
    similar: NDArray[np.bool_],
) -> float | None:
    """Self-similarity of the agent's tool sequences over that of the expert's on the same queries.

    At least 0; 1 where the agent varies as much as the tasks demand, above 1 where it varies less.
    None where there is no pair of similar queries, or the expert's have nothing in common.
    """
    own, best = self_similarity(sequences, similar), self_similarity(expert, similar)
    return own / best if own is not None and best else None
