"""MiniWoB++: the expert solves its pages, mistakes do not, episodes repeat."""

from itertools import islice

import pytest

from progrl.benchmarks.browser import Seen
from progrl.benchmarks.miniwob import SOLVERS, solution
from progrl.dialogue.messages import Say, ToolCall
from tests.benchmarks.packages import opened


def test_what_the_expert_reads() -> None:
    seen = Seen(
        "- generic [ref=e1]:\n"
        '  - checkbox "a b" [checked] [ref=e2]\n'
        "  - 'link \"Tab #1\" [ref=e3] [cursor=pointer]':\n"
        "  - textbox [active] [ref=e4]: text\n"
        '  - option "no ref"\n'
    )
    assert seen.elements == [
        ("generic", "", "e1"),
        ("checkbox", "a b", "e2"),
        ("link", "Tab #1", "e3"),
        ("textbox", "", "e4"),
    ]


def test_plans() -> None:
    fields = '- textbox [ref=e1]\n- textbox [ref=e2]\n- button "Submit" [ref=e3]'
    twice = solution("enter-password", f'Enter the password "x" into both text fields\n{fields}')
    assert [call.arguments.get("text") for call in twice] == ["x", "x", None]
    (focus,) = solution("focus-text-2", f"Focus into the 2nd input textbox.\n{fields}")
    assert focus == ToolCall("click", {"ref": "e2"})
    (none,) = solution("click-checkboxes", f"Select nothing and click Submit.\n{fields}")
    assert none == ToolCall("click", {"ref": "e3"})


@pytest.mark.slow
def test_a_wrong_button_loses_and_nothing_comes_after() -> None:
    adapter = opened("miniwob")
    task = next(task for task in adapter.tasks("test", 0) if task.family == "click-test-2")
    game = adapter.environment()
    game.reset(task)
    right = solution(task.family, task.query)[0].arguments["ref"]
    wrong = next(ref for ref in Seen(task.query).refs("button") if ref != right)
    assert not game.step(Say("hello")).done
    assert game.step(ToolCall("click", {"ref": "e999"})).failed
    result = game.step(ToolCall("click", {"ref": wrong}))
    assert result.done
    assert not game.outcome().success
    assert game.step(ToolCall("click", {"ref": right})).failed
    assert not game.outcome().success


@pytest.mark.slow
def test_openings_repeat_and_splits_share_no_seed() -> None:
    adapter = opened("miniwob")
    pages = len(SOLVERS)
    first = list(islice(adapter.tasks("test", 0), pages))
    assert [task.family for task in first] == list(SOLVERS)
    assert list(islice(adapter.tasks("test", 1), pages)) == first
    seeds = {
        (task.setup["page"], task.setup["seed"])
        for split in ("test", "validation", "train")
        for task in islice(adapter.tasks(split, 0), pages)
    }
    assert len(seeds) == 3 * pages
