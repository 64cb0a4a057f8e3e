"""The champion gate: when a new model takes the old one's place."""

from collections.abc import Sequence
from dataclasses import dataclass

from progrl.evaluation.comparison import difference
from progrl.evaluation.metrics import Result
from progrl.evaluation.statistics import Interval


@dataclass(frozen=True)
class Contender:
    """A model and how it was evaluated.

    Attributes:
        name: what a reader knows it by.
        results: its episodes on the benchmark that decides.
        protocol: a hash of all that must be equal for results to be comparable: the tasks'
            content, the horizon, trials and users.
    """

    name: str
    results: Sequence[Result]
    protocol: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the champion changes, and why.

    Attributes:
        moves: the challenger becomes champion.
        reason: one sentence.
        difference: of success, challenger minus the one it was held against; None if no
            comparison was made.
    """

    moves: bool
    reason: str
    difference: Interval | None = None


def judge(
    challenger: Contender,
    base: Contender,
    champion: Contender | None,
    obstacles: Sequence[str],
    confidence: float,
    resamples: int,
    seed: int,
) -> Verdict:
    """Hold the challenger against the champion, or against `base` where there is none.

    The champion changes only if the challenger's success is better by a task-paired interval that
    excludes 0.

    Args:
        base: the model that the challenger was trained from.
        obstacles: what forbids a change whatever the results: changes that are not committed, a
            run that is incomplete, results that are missing.
        confidence: of the interval.
        resamples: of its bootstrap over tasks.
        seed: of the resampling.
    """
    if obstacles:
        return Verdict(False, f"The champion stays: {'; '.join(obstacles)}.")
    rival = champion or base
    if not _comparable(challenger, rival):
        return Verdict(
            False,
            f"The champion stays: {challenger.name} and {rival.name} were not evaluated on the "
            "same tasks under the same protocol, so they cannot be compared.",
        )
    found = difference(challenger.results, rival.results, confidence, resamples, seed)
    if found is None:
        return Verdict(
            False, "The champion stays: fewer than two tasks have a result of both models."
        )
    figures = (
        f"{found.mean:+.3f} in success ({confidence:.0%} interval {found.low:+.3f} to "
        f"{found.high:+.3f} over {found.n} tasks)"
    )
    if found.low > 0:
        return Verdict(True, f"{challenger.name} is better than {rival.name}: {figures}.", found)
    shown = "is worse than" if found.high < 0 else "is not shown to be better than"
    stays = f"The champion stays: {challenger.name} {shown} {rival.name}: {figures}."
    return Verdict(False, stays, found)


def _comparable(a: Contender, b: Contender) -> bool:
    def episodes(results: Sequence[Result]) -> list[tuple[str, int]]:
        return sorted((result.task, result.trial) for result in results)

    return a.protocol == b.protocol and episodes(a.results) == episodes(b.results)
