"""tau-bench from a folder of its layout; the folder is hand-made, as no checkout comes with us."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from progrl.agent.seats import DoNothingAgent
from progrl.benchmarks import find, gold, verdict
from progrl.benchmarks.customers import INSTRUCTIONS, KNOWN, REASON
from progrl.benchmarks.play import first_tasks, play
from progrl.benchmarks.tau_bench import _module, parts
from progrl.dialogue.messages import Message, Say, ToolCall
from progrl.dialogue.users import UserReply
from progrl.errors import ConfigurationError, DataError
from progrl.seeds import Seed
from tests.benchmarks.checkout import write


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Its modules are gone afterwards, for the next test has another folder."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("TAU_BENCH", str(write(tmp_path)))
    yield tmp_path
    _module.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "tau_bench"]:
        del sys.modules[name]


@pytest.mark.usefixtures("checkout")
def test_gold_succeeds_and_silence_where_nothing_was_to_be_done() -> None:
    adapter = find("tau_bench_retail").open()
    assert [t.success for t in gold(adapter, None)] == [True, True, True]
    tasks = first_tasks(adapter, None)
    idle = play(adapter, tasks, DoNothingAgent())
    assert [t.success for t in idle] == [False, False, True]
    assert verdict(adapter, tasks, idle).do_nothing == pytest.approx(1 / 3)
    assert "litellm" not in sys.modules


@pytest.mark.usefixtures("checkout")
def test_a_call_that_ends_the_benchmarks_episode_is_judged() -> None:
    adapter = find("tau_bench_retail").open()
    environment, (_, task, _) = adapter.environment(), first_tasks(adapter, None)
    assert [tool.name for tool in environment.reset(task)][:2] == ["get_order", "cancel_order"]
    assert environment.step(ToolCall("get_order", {"order_id": "#W2"})).observation == "delivered"
    assert environment.step(ToolCall("get_order", {"order": "#W2"})).failed
    assert environment.step(ToolCall("get_orders", {})).failed
    assert environment.step(ToolCall("calculate", {"expression": "9**9**9**9"})).failed
    assert not environment.step(Say("it is delivered")).done
    assert environment.step(ToolCall("transfer_to_human_agents", {})).done
    assert environment.outcome().success
    assert environment.step(Say("more")).failed


@pytest.mark.usefixtures("checkout")
def test_a_user_who_leaves_ends_it_and_a_wrong_state_fails() -> None:
    adapter = find("tau_bench_retail").open()
    environment, task = adapter.environment(), first_tasks(adapter, 1)[0]
    environment.reset(task)
    environment.step(Say("i did it"))
    assert environment.hear(UserReply("bye", "leave", leaves=True)).done
    assert not environment.outcome().success


@pytest.mark.usefixtures("checkout")
def test_the_customer_tells_what_its_instruction_says() -> None:
    adapter = find("tau_bench_retail").open()
    task = first_tasks(adapter, 1)[0]
    view = adapter.user_view(task)
    assert task.query == "I want to cancel my order #W1."
    asked = Message("assistant", "what is your zip ?")
    reply = adapter.answer([Message("user", task.query), asked], view, Seed("a").random())
    assert reply.text == "my zip is 12345."


def test_an_instruction_falls_into_its_parts() -> None:
    assert parts("You are Al Bo in 19122. You are shy. You want a lamp. If asked, say no.") == {
        REASON: "You want a lamp.",
        KNOWN: "You are Al Bo in 19122.",
        INSTRUCTIONS: "You are shy. If asked, say no.",
    }


def test_without_a_checkout_the_variable_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("", str(tmp_path)):
        monkeypatch.setenv("TAU_BENCH", folder)
        assert find("tau_bench_airline").status == "missing"
        with pytest.raises(ConfigurationError, match="TAU_BENCH"):
            find("tau_bench_airline").open()


@pytest.mark.usefixtures("checkout")
def test_a_checkout_that_lacks_a_part_is_told_of() -> None:
    with pytest.raises(DataError, match="no whole checkout"):
        find("tau_bench_airline").open()


@pytest.mark.slow
def test_the_command_plays_gold_in_a_checkout(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "progrl.cli", "benchmarks", "gold", "tau_bench_retail", "--json"]
    environment = {**os.environ, "TAU_BENCH": str(write(tmp_path))}
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == {"n": 3, "success": 1.0}
