"""ScienceWorld: one JVM that ends with us, the same world every time, splits of the package."""

import os
import signal
import subprocess
import sys
from itertools import islice

import psutil
import pytest

from progrl.benchmarks.base import action_of
from progrl.benchmarks.contracts import Adapter
from progrl.benchmarks.scienceworld import SHORT, SHORT_FAMILIES, ScienceWorld, jvm
from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.tasks import Task
from progrl.errors import EnvironmentFault
from tests.benchmarks.packages import opened

pytestmark = pytest.mark.slow
STARTS = """
import sys
from progrl.benchmarks.scienceworld import jvm
print(jvm().process.pid, flush=True)
sys.stdin.read()
"""


def act(command: str) -> ToolCall:
    return ToolCall("act", {"command": command})


def told(adapter: Adapter, tasks: list[Task], in_turn: bool) -> list[list[tuple[str, float]]]:
    """What gold commands lead to, the tasks one after the other or step by step in turn."""
    games = [adapter.environment() for _ in tasks]
    for game, task in zip(games, tasks, strict=True):
        game.reset(task)
    heard: list[list[tuple[str, float]]] = [[] for _ in tasks]
    moves = [(i, n) for i, task in enumerate(tasks) for n in range(task.expert_turns)]
    for i, n in sorted(moves, key=lambda move: move[::-1]) if in_turn else moves:
        result = games[i].step(action_of(tasks[i].goal["gold"][n]))
        heard[i].append((result.observation, result.reward))
    assert all(game.outcome().success for game in games)
    return heard


def test_worlds_side_by_side_are_as_when_alone() -> None:
    adapter = opened("scienceworld")
    restless = {"grow-fruit", "use-thermometer", "melt", "test-conductivity"}
    tasks = [task for task in islice(adapter.tasks("test", 0), 30) if task.family in restless]
    assert {task.family for task in tasks} == restless
    alone = told(adapter, tasks, in_turn=False)
    assert told(adapter, tasks, in_turn=True) == alone
    assert [sum(reward for _, reward in each) for each in alone] == pytest.approx([1.0] * 4)
    first = jvm().process.pid
    jvm().close()
    assert told(adapter, tasks, in_turn=False) == alone
    assert jvm().process.pid != first


def test_short_tasks_are_short_and_split_as_in_the_package() -> None:
    adapter = opened("scienceworld_short")
    found = {
        split: list(islice(adapter.tasks(split, 0), 16))
        for split in ("test", "validation", "train")
    }
    for tasks in found.values():
        assert {task.family for task in tasks} == set(SHORT_FAMILIES)
        assert max(task.expert_turns for task in tasks) <= SHORT
    assert len({task.id for tasks in found.values() for task in tasks}) == 48
    assert [task.id for task in found["test"]] == [
        task.id for task in islice(adapter.tasks("test", 5), 16)
    ]
    again, other = (list(islice(adapter.tasks("train", seed), 16)) for seed in (0, 1))
    assert again == found["train"]
    assert other != again


def test_the_thirty_tasks() -> None:
    opened("scienceworld")
    assert len(ScienceWorld().families()) == 30


def test_what_is_no_command_and_what_ends_the_task() -> None:
    adapter = opened("scienceworld_short")
    task = next(task for task in adapter.tasks("test", 0) if task.family == "find-animal")
    game = adapter.environment()
    game.reset(task)
    assert game.step(act("fly to the moon")).failed
    assert game.step(act("Reset  task")).failed
    assert game.step(ToolCall("fly", {})).failed
    assert not game.step(act("look around")).failed
    assert not game.step(Say("hello")).done
    result = game.step(act("focus on agent"))
    assert (result.done, result.reward) == (True, pytest.approx(-1.0))
    assert not game.outcome().success
    assert game.outcome().domain == 0
    assert game.step(act("look around")).failed


def test_a_dead_jvm_is_a_fault_and_the_next_episode_has_a_new_one() -> None:
    adapter = opened("scienceworld_short")
    task = next(adapter.tasks("test", 0))
    game = adapter.environment()
    game.reset(task)
    jvm().process.kill()
    with pytest.raises(EnvironmentFault, match="Java, asked to look around, failed"):
        game.step(act("look around"))
    game.reset(task)
    assert not game.step(act("look around")).failed


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, None])
def test_the_jvm_ends_with_us(number: signal.Signals | None) -> None:
    opened("scienceworld")
    with subprocess.Popen(
        [sys.executable, "-c", STARTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        java = psutil.Process(int(parent.stdout.readline()))
        assert java.is_running()
        if number is None:
            parent.communicate("")
        else:
            os.kill(parent.pid, number)
        java.wait(timeout=20)
    assert not java.is_running()
