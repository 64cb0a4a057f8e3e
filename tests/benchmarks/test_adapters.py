"""What the adapters add to the packages: words, schemas, bounds."""

from dataclasses import dataclass

import numpy as np
import pytest

from progrl.benchmarks.babyai import told
from progrl.benchmarks.bfcl import _schema, _too_large, _written
from progrl.dialogue.messages import Say, ToolCall
from progrl.seeds import Seed
from tests.benchmarks.packages import opened


@dataclass
class Thing:
    type: str
    color: str = "grey"
    is_open: bool = False
    is_locked: bool = False

    def can_overlap(self) -> bool:
        return self.is_open


class Grid:
    """A grid of the package's form; the agent stands at the middle of the last row."""

    width, height = 5, 4

    def __init__(self, things: dict[tuple[int, int], Thing]) -> None:
        self._things = things

    def get(self, x: int, y: int) -> Thing | None:
        return self._things.get((x, y))


def test_a_grid_in_words() -> None:
    grid = Grid(
        {
            (2, 1): Thing("ball", "red"),
            (1, 3): Thing("wall"),
            (4, 0): Thing("door", "blue", is_locked=True),
            (3, 2): Thing("door", "green", is_open=True),
            (0, 0): Thing("key", "red"),
            (2, 3): Thing("key", "grey"),
        }
    )
    seen = np.ones((5, 4), dtype=bool)
    seen[0, 0] = False
    assert told(grid, seen, Thing("key", "grey")) == (
        "you see open green door 1 ahead 1 right , red ball 2 ahead , locked blue door "
        "3 ahead 2 right . free steps ahead 1 , left 0 , right 2 . you carry grey key"
    )
    assert told(Grid({}), seen, None).startswith("you see nothing . free steps ahead 3 , left 2")


def test_a_schema_of_the_benchmarks_becomes_json_schema() -> None:
    written = {
        "type": "dict",
        "properties": {
            "a": {"type": "float", "description": "A."},
            "b": {
                "type": "array",
                "items": {"type": "dict", "properties": {"c": {"type": "tuple"}}},
            },
            "type": {"type": "string", "enum": ["x"]},
        },
        "required": ["a"],
    }
    assert _schema(written) == {
        "type": "object",
        "properties": {
            "a": {"type": "number", "description": "A."},
            "b": {
                "type": "array",
                "items": {"type": "object", "properties": {"c": {"type": "array"}}, "required": []},
            },
            "type": {"type": "string", "enum": ["x"]},
        },
        "required": ["a"],
    }


@pytest.mark.parametrize(
    ("call", "large"),
    [
        (ToolCall("power", {"base": 2, "exponent": 10}), False),
        (ToolCall("power", {"base": 9, "exponent": 10**9}), True),
        (ToolCall("power", {"base": 2.5, "exponent": 10**9}), False),
        (ToolCall("square_root", {"number": 2, "precision": 10}), False),
        (ToolCall("square_root", {"number": 2, "precision": 10**8}), True),
        (ToolCall("power", {"base": "2"}), False),
    ],
)
def test_numbers_without_end_are_refused(call: ToolCall, large: bool) -> None:
    assert _too_large(call) is large


def test_results_are_shown_as_the_benchmark_does() -> None:
    assert _written({"a": 1}) == '{"a": 1}'
    assert _written("a") == "a"
    assert _written([1]) == "[1]"
    assert _written({"a": {1}}) == "{'a': {1}}"


def test_no_code_gets_into_the_checker() -> None:
    adapter = opened("bfcl_v3_multi_turn")
    task = next(adapter.tasks("test", 0))
    environment = adapter.environment()
    tools = environment.reset(task)
    name = "a=__import__('os').getpid(), b"
    result = environment.step(ToolCall(tools[0].name, {name: 1}))
    assert result.failed
    assert "unknown argument" in result.observation
    assert environment.step(ToolCall("__init__", {})).failed
    assert environment.step(ToolCall("_load_scenario", {})).failed


def test_tools_that_were_withheld_come_with_the_users_line() -> None:
    adapter = opened("bfcl_v3_multi_turn")
    task = next(task for task in adapter.tasks("test", 0) if task.family == "miss_func")
    environment, lines = adapter.environment(), task.goal["lines"]
    tools = {tool.name for tool in environment.reset(task)}
    added: set[str] = set()
    view = adapter.user_view(task)
    for _ in lines[1:]:
        assert not environment.step(Say("done")).done
        result = environment.hear(adapter.answer([], view, Seed("a").random()))
        added |= {tool.name for tool in result.tools or ()} - tools
    assert added
    assert environment.step(Say("done")).done
    assert not environment.outcome().success
