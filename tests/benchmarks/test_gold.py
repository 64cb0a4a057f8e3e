"""Gold trajectories succeed, idle agents do not, and all is the same again."""

import json
import os
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from progrl.agent.model import make_model, save_model
from progrl.agent.seats import DoNothingAgent, RandomAgent
from progrl.benchmarks import gold, verdict
from progrl.benchmarks.play import first_tasks, play
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from tests.benchmarks.packages import opened
from tests.benchmarks.test_documents import QUESTIONS, corpus
from tests.cli.conftest import Run, run, same_environment
from tests.users.llm_server import Server, serving

__all__ = ["run", "same_environment"]

LIMIT = {
    "bfcl_v3_multi_turn": 200,
    "babyai": 24,
    "textcraft": 419,
    "document_search": 84,
    "tau2_telecom": 24,
    "scienceworld_short": 8,
    "miniwob": 53,
    "local_sites": 9,
}
RUNS = {
    "bfcl_v3_multi_turn": 12,
    "babyai": 12,
    "textcraft": 12,
    "document_search": 12,
    "tau2_telecom": 6,
    "scienceworld_short": 3,
    "miniwob": 2,
    "local_sites": 2,
}
"""Episodes that agents who know nothing play, as many as take seconds."""
STABLE = (
    "bfcl_v3_multi_turn",
    "babyai",
    "textcraft",
    "document_search",
    "tau2_retail",
    "local_sites",
)
TASKS = """
import json
from progrl.benchmarks import find
from itertools import islice
tasks = islice(find("{}").open().tasks("test", 0), 24)
print(json.dumps([[task.id, task.query, task.expert_turns] for task in tasks]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMIT)
def test_gold_succeeds(name: str) -> None:
    played = gold(opened(name), LIMIT[name])
    assert len(played) == LIMIT[name]
    assert [t.task_id for t in played if not t.success] == []
    assert [t.fault for t in played if t.fault] == []


@pytest.mark.slow
def test_splits_of_babyai_share_no_seed() -> None:
    adapter = opened("babyai")
    places = [("test", 0), ("validation", 0), ("validation", 899), ("train", 0), ("train", 1)]
    found = [
        {(task.setup["level"], task.setup["seed"]) for task in islice(adapter.tasks(*place), 12)}
        for place in places
    ]
    assert len(set.union(*found)) == 12 * len(places)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_agents_that_know_nothing_get_nothing(name: str) -> None:
    adapter = opened(name)
    tasks = first_tasks(adapter, RUNS[name])
    idle = play(adapter, tasks, DoNothingAgent())
    assert sum(t.success for t in idle) == 0
    played = play(adapter, tasks, RandomAgent())
    found = verdict(adapter, tasks, played)
    assert found.n == RUNS[name]
    assert found.faults == 0, found.fault
    assert found.do_nothing == 0
    assert found.success <= 0.2
    again = play(adapter, tasks, RandomAgent())
    assert [t.history() for t in again] == [t.history() for t in played]


@pytest.mark.slow
@pytest.mark.parametrize("name", STABLE)
def test_tasks_do_not_depend_on_the_hash_of_strings(name: str) -> None:
    opened(name)
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", TASKS.format(name)],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()[-1]
        )
        for seed in ("1", "2")
    ]
    assert found[0] == found[1]
    assert len({task[0] for task in found[0]}) == 24


@pytest.mark.slow
def test_the_command_prints_the_share(run: Run) -> None:
    opened("textcraft")
    done = run("benchmarks", "gold", "textcraft", "--limit", "7", "--json")
    assert json.loads(done.stdout) == {"n": 7, "success": 1.0}


@pytest.mark.slow
def test_a_checkpoint_is_measured(run: Run, tmp_path: Path) -> None:
    adapter = opened("document_search")
    tasks = list(islice(adapter.tasks("test", 0), 3))
    codec = CompactCodec(train_tokenizer([task.query for task in tasks], adapter.tools, 500))
    model = make_model(
        vocabulary=codec.size, hidden=16, layers=1, heads=2, head_dim=8, ffn=32, seed=1
    )
    save_model(tmp_path / "model", model, codec)
    args = ("--agent", str(tmp_path / "model"), "--limit", "3", "--json")
    done = run("evaluate", "--benchmark", "document_search", *args)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["n"] == 3
    assert found["licence"]
    assert found["do_nothing"] == 0
    assert 0 <= found["low"] <= found["success"] <= found["high"] <= 1


def test_an_endpoint_is_measured(
    run: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(root / "params.yaml", tmp_path)
    folder = tmp_path / "corpus"
    folder.mkdir()
    corpus(folder)
    monkeypatch.setenv("A_KEY", "some-key")

    def reply(body: dict[str, Any]) -> str:
        messages = body["messages"]
        assert "search_words(query: string)" in messages[0]["content"]
        assert messages[1]["content"] == QUESTIONS[0]["question"]
        if len(messages) == 2:
            return "<think>where?</think><tool_call>{}</tool_call>".format(
                '{"name": "read_document", "arguments": {"id": "a"}}'
            )
        if len(messages) == 4:
            assert "fine of 40 crowns" in messages[3]["content"]
            return "<tool_call>no call</tool_call>"
        assert "error: the call is no JSON" in messages[5]["content"]
        return '<tool_call>{"name": "answer", "arguments": {"text": "40"}}</tool_call>'

    monkeypatch.setattr("progrl.benchmarks.contracts.Benchmark.missing", ())
    server = Server(reply, "some-key")
    with serving(server):
        args = ("evaluate", "--benchmark", "document_search", "--corpus", str(folder))
        own = ("--params", str(tmp_path / "params.yaml"), "--json")
        at = ("--agent", server.base_url, "--model", "m")
        done = run(*args, *own, *at, "--key-variable", "A_KEY")
        assert done.exit_code == 0, done.stderr
        found = json.loads(done.stdout)
        assert (found["agent"], found["n"], found["success"]) == ("m", 1, 1.0)
        assert found["turns"] == 3
        assert len(server.asked) == 3
        assert "--model" in run(*args, *own, "--agent", server.base_url).stderr
        refused = run(*args, *own, *at[:3], "other")  # without its key
    assert refused.exit_code == 2
    assert json.loads(refused.stdout)["faults"] == 1
    assert "1 of 1 episodes were lost to faults" in refused.stderr
