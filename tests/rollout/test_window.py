"""An episode ends where the agent's window is full; nothing else of it depends on the window."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from progrl.agent.seats import ModelAgent
from progrl.config import load_config
from progrl.dialogue.trajectories import End, Trajectory, Turn
from progrl.evaluation.metrics import measure
from progrl.rewards import structured_reward
from tests.rollout.desk import OpenedEngine, specs, tasks, trained, world

HORIZON, WHOLE, NARROW = 12, 1024, 288
REWARD = load_config(profile="tiny").reward


@cache
def played(window: int) -> list[Trajectory]:
    model, codec = trained()
    engine = OpenedEngine(model, slots=32, window=window)
    engine.opened = []
    found: list[Trajectory] = world().play(
        specs(tasks(24), horizon=HORIZON), ModelAgent(engine, codec, 1.0, 24)
    )
    return found


def both() -> list[tuple[Trajectory, Trajectory]]:
    """Each episode in the narrow window and in the whole one."""
    return list(zip(played(NARROW), played(WHOLE), strict=True))


def said(turns: Sequence[Turn]) -> list[Turn]:
    """The turns but for their log-probabilities, whose last digits depend on who else is read."""
    return [replace(turn, logprobs=()) for turn in turns]


def test_some_windows_are_full_and_others_not() -> None:
    ends = [narrow.end for narrow, _ in both()]
    assert 2 <= ends.count(End.WINDOW) <= len(ends) - 2
    assert all(whole.end is not End.WINDOW for _, whole in both())


def test_what_has_room_is_as_in_any_window() -> None:
    for narrow, whole in both():
        if narrow.end is not End.WINDOW:
            assert replace(narrow, turns=[]) == replace(whole, turns=[])
            assert said(narrow.turns) == said(whole.turns)


def test_a_full_window_ends_the_episode_at_once() -> None:
    for narrow, whole in both():
        if narrow.end is not End.WINDOW:
            continue
        *before, last = narrow.turns
        assert said(before) == said(whole.turns[: len(before)])
        other = whole.turns[len(before)]
        assert (last.action, last.failed, last.source, last.observation) == (None, True, "", "")
        assert last.context == other.context
        assert last.sampled == other.sampled[: len(last.sampled)]
        ids, _ = narrow.tokens()
        assert len(ids) == NARROW or (len(ids) > NARROW and not last.sampled)
        assert len(ids) - len(last.context) - len(last.sampled) <= NARROW


def test_it_is_evidence_and_no_success() -> None:
    some = {task.id: task for task in tasks(24)}
    for narrow, _ in both():
        if narrow.end is not End.WINDOW:
            continue
        assert narrow.valid and not narrow.success and not narrow.fault
        parts = structured_reward(narrow, REWARD)
        assert (parts.task, parts.efficiency) == (0.0, 0.0)
        assert parts.progress == pytest.approx(sum(turn.gain for turn in narrow.turns))
        result = measure(narrow, some[narrow.task_id], 0, REWARD)
        assert (result.end, result.success, result.turns) == ("window", False, len(narrow.turns))
