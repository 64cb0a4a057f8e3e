"""The champion gate, branch by branch, on cases worked by hand."""

from collections.abc import Sequence

import pytest

from progrl.evaluation.gate import Contender, Verdict, judge
from progrl.evaluation.metrics import Result


def _contender(name: str, solved: Sequence[bool | None], protocol: str = "p") -> Contender:
    rows = [
        Result(
            task=f"task-{number}", family="f", level=1, trial=0, expert_turns=2, goal_change=False,
            tool_failure=False, end="solved", fault="" if success is not None else "lost",
            success=success,
        )
        for number, success in enumerate(solved)
    ]  # fmt: skip
    return Contender(name, rows, protocol)


def _solved(of: int, n: int = 20) -> list[bool]:
    return [number < of for number in range(n)]


def _judge(
    challenger: Contender, champion: Contender | None = None, obstacles: Sequence[str] = ()
) -> Verdict:
    base = _contender("the SFT model", _solved(8))
    return judge(challenger, base, champion, obstacles, 0.95, 2000, 1)


def test_without_a_champion_the_challenger_must_beat_the_base() -> None:
    verdict = _judge(_contender("version 1", _solved(16)))
    assert verdict.moves
    assert verdict.difference is not None
    assert verdict.difference.mean == pytest.approx(0.4)  # (16 - 8) / 20
    assert verdict.difference.n == 20
    assert verdict.reason.startswith("version 1 is better than the SFT model: +0.400")


def test_an_interval_that_holds_0_moves_nothing() -> None:
    verdict = _judge(_contender("version 1", _solved(9)))
    assert not verdict.moves
    assert verdict.difference is not None
    assert verdict.difference.mean == pytest.approx(0.05)
    assert verdict.difference.low <= 0 <= verdict.difference.high
    assert "is not shown to be better than the SFT model" in verdict.reason


def test_an_interval_that_only_touches_0_moves_nothing() -> None:
    """All tasks equal: the interval is [0, 0]."""
    verdict = _judge(_contender("version 1", _solved(8)))
    assert not verdict.moves
    assert verdict.difference is not None
    assert (verdict.difference.low, verdict.difference.high) == (0, 0)


def test_a_worse_challenger_is_told_so() -> None:
    verdict = _judge(_contender("version 1", _solved(0)))
    assert not verdict.moves
    assert "version 1 is worse than the SFT model: -0.400" in verdict.reason


def test_with_a_champion_the_base_is_no_measure() -> None:
    """Better than the base, not better than the champion."""
    verdict = _judge(_contender("version 2", _solved(16)), _contender("version 1", _solved(16)))
    assert not verdict.moves
    assert "version 2 is not shown to be better than version 1" in verdict.reason


def test_a_better_challenger_takes_the_champions_place() -> None:
    verdict = _judge(_contender("version 2", _solved(18)), _contender("version 1", _solved(10)))
    assert verdict.moves
    assert "version 2 is better than version 1: +0.400" in verdict.reason


@pytest.mark.parametrize(
    "champion",
    [
        _contender("version 1", _solved(1, n=19)),
        _contender("version 1", _solved(1), protocol="other"),
    ],
    ids=["other tasks", "other protocol"],
)
def test_what_cannot_be_compared_stays(champion: Contender) -> None:
    verdict = _judge(_contender("version 2", _solved(20)), champion)
    assert not verdict.moves
    assert verdict.difference is None
    assert "not evaluated on the same tasks under the same protocol" in verdict.reason


def test_obstacles_forbid_whatever_the_results_are() -> None:
    obstacles = ["sources are not committed (a.py)", "the run is incomplete"]
    verdict = _judge(_contender("version 1", _solved(20)), obstacles=obstacles)
    assert not verdict.moves
    assert verdict.reason == (
        "The champion stays: sources are not committed (a.py); the run is incomplete."
    )


def test_lost_episodes_are_left_out_of_both() -> None:
    """Task 19 is lost: of 19 pairs the challenger wins 8."""
    challenger = _contender("version 1", [*_solved(16, n=19), None])
    verdict = _judge(challenger)
    assert verdict.moves
    assert verdict.difference is not None
    assert verdict.difference.n == 19
    assert verdict.difference.mean == pytest.approx(8 / 19)


def test_without_two_common_results_there_is_no_verdict() -> None:
    lost: list[bool | None] = [None] * 19
    verdict = _judge(_contender("version 1", [True, *lost]))
    assert not verdict.moves
    assert "fewer than two tasks" in verdict.reason
