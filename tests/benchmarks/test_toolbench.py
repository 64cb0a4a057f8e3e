"""ToolBench's adapter: queries from a checkout, calls that a server of the same protocol answers.

The server here is ours and tiny: it speaks StableToolBench's protocol on loopback, and knows the
two interfaces of a checkout that has its layout.
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from progrl.agent.seats import DoNothingAgent
from progrl.benchmarks import find, gold, verdict
from progrl.benchmarks.play import first_tasks, play
from progrl.benchmarks.toolbench import GROUPS, LONGEST, QUERIES, Interface, standard
from progrl.dialogue.messages import Say, ToolCall
from progrl.errors import ConfigurationError, DataError, EnvironmentFault

PARCEL = {
    "category_name": "Logistics",
    "tool_name": "Parcel-Track",
    "api_name": "Latest",
    "api_description": "The last\n state of a parcel.",
    "required_parameters": [
        {"name": "parcelId", "type": "STRING", "description": "its number", "default": "CA1"},
        {"name": "id", "type": "NUMBER", "description": "", "default": "7"},
    ],
    "optional_parameters": [
        {"name": "short", "type": "BOOLEAN", "description": "", "default": "true"}
    ],
}
HEALTH = {
    **PARCEL,
    "api_name": "Health",
    "api_description": "",
    "required_parameters": [],
    "optional_parameters": [],
}
QUERY = {
    "api_list": [PARCEL, HEALTH],
    "query": "Where is my parcel CA1?",
    "relevant APIs": [["Parcel-Track", "Latest"], ["Parcel-Track", "Health"]],
    "query_id": 1,
}


class Answers(BaseHTTPRequestHandler):
    """The server's one address."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)  # type: ignore[attr-defined]
        given = json.loads(asked["tool_input"])
        if asked["api_name"] == "broken":
            return self.send_error(500)
        if asked["api_name"] == "latest" and given["parcelid"] != "CA1":
            return self._send({"error": "Message error...", "response": ""})
        return self._send({"error": "", "response": f"{asked['api_name']}: " + "x" * 2000})

    def _send(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


def write(folder: Path) -> None:
    (folder / QUERIES).mkdir(parents=True)
    for number, group in enumerate(GROUPS):
        entry = {**QUERY, "query": f"{QUERY['query']} ({number})"}
        lost = {**entry, "relevant APIs": [["Other", "One"]]}
        (folder / QUERIES / f"{group}.json").write_text(json.dumps([entry, lost]))


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """A checkout and a running server; what this was asked."""
    write(tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.asked = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/virtual"
        monkeypatch.setenv("STABLETOOLBENCH", str(tmp_path))
        monkeypatch.setenv("STABLETOOLBENCH_SERVER", address)
        monkeypatch.setenv("TOOLBENCH_KEY", "some-key")
        yield server.asked  # type: ignore[attr-defined]
        server.shutdown()


def test_gold_succeeds_and_idling_does_not(asked: list[dict[str, Any]]) -> None:
    adapter = find("toolbench").open()
    played = gold(adapter, None)
    assert [t.success for t in played] == [True] * 6
    assert asked[0] == {
        "category": "Logistics",
        "tool_name": "parcel_track",
        "api_name": "latest",
        "tool_input": '{"parcelid": "CA1", "is_id": 7}',
        "strip": "truncate",
        "toolbench_key": "some-key",
    }
    tasks = first_tasks(adapter, 6)
    assert [task.family for task in tasks] == list(GROUPS)
    found = verdict(adapter, tasks, play(adapter, tasks, DoNothingAgent()))
    assert (found.success, found.do_nothing) == (0.0, 0.0)
    assert found.parts == {"answered": 0.0, "relevant": 0.0}


@pytest.mark.usefixtures("asked")
def test_what_counts_is_relevant_calls_without_an_error_and_an_answer() -> None:
    adapter = find("toolbench").open()
    environment, task = adapter.environment(), first_tasks(adapter, 1)[0]
    latest, health, finish = (tool.name for tool in environment.reset(task))
    assert (latest, health, finish) == (
        "latest_for_parcel_track",
        "health_for_parcel_track",
        "Finish",
    )
    answer = ToolCall("Finish", {"return_type": "give_answer", "final_answer": "at home"})
    assert environment.step(ToolCall(latest, {"parcelid": "no", "is_id": 1})).failed
    assert environment.step(ToolCall(latest, {"parcelid": "CA1"})).failed
    assert environment.step(ToolCall("other", {})).failed
    said = environment.step(ToolCall(health, {}))
    assert said.observation.startswith('{"error": "", "response": "health: xxx')
    assert len(said.observation) == LONGEST + 3
    assert environment.step(answer).done
    assert environment.outcome().milestones == ("answered",)
    assert not environment.outcome().success

    environment.reset(task)
    environment.step(ToolCall(health, {}))
    result = environment.step(ToolCall(latest, {"parcelid": "CA1", "is_id": 1, "short": False}))
    assert result.milestones == ("relevant",)
    assert not environment.step(Say("hello")).done
    assert environment.step(ToolCall("Finish", {"return_type": "give_up_and_restart"})).done
    assert environment.outcome().milestones == ("relevant",)
    assert environment.step(answer).failed
    assert not environment.outcome().success


@pytest.mark.usefixtures("asked")
def test_a_server_that_fails_is_a_fault() -> None:
    adapter = find("toolbench").open()
    environment, task = adapter.environment(), first_tasks(adapter, 1)[0]
    broken = {**HEALTH, "api_name": "Broken"}
    setup = {"interfaces": [broken]}
    tool = Interface(broken).spec.name
    environment.reset(type(task)(**{**vars(task), "setup": setup}))
    with pytest.raises(EnvironmentFault, match="STABLETOOLBENCH_SERVER"):
        environment.step(ToolCall(tool, {}))


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("OTT details", "ott_details"),
        ("__3D-View!", "get_3d_view"),
        ("Class", "is_class"),
        ("", ""),
    ],
)
def test_names_are_those_of_the_server(name: str, known: str) -> None:
    assert standard(name) == known


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = find("toolbench")
    assert benchmark.status == "needs server"
    monkeypatch.delenv("STABLETOOLBENCH", raising=False)
    monkeypatch.delenv("STABLETOOLBENCH_SERVER", raising=False)
    with pytest.raises(ConfigurationError, match="STABLETOOLBENCH"):
        benchmark.open()
    monkeypatch.setenv("STABLETOOLBENCH", str(tmp_path))
    (tmp_path / QUERIES).mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="STABLETOOLBENCH_SERVER"):
        benchmark.open()
    monkeypatch.setenv("STABLETOOLBENCH_SERVER", "http://127.0.0.1:9/virtual")
    with pytest.raises(DataError, match="not queries of StableToolBench"):
        benchmark.open()
