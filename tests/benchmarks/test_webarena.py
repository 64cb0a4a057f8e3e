"""WebArena's tasks and graders, and its adapter on a page of ours where a site of it would be.

No site of WebArena runs here: the page below stands at the address of its forum, and takes the one
form that a task asks for.
"""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from progrl.benchmarks import find, gold
from progrl.benchmarks.browser import Seen
from progrl.benchmarks.webarena import NOWHERE, VARIABLES, WebArena, graded, rendered
from progrl.cli.app import app
from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.tasks import Task
from progrl.errors import ConfigurationError
from tests.benchmarks.packages import opened

BIOGRAPHY = 399
"""The task to change a biography in the forum: an answer, and one form in the log."""
PLACE = "/user/MarvelsGrantMan136/edit_biography"
PAGE = f"""<title>Profile</title><a href="/other">Other</a>
<form method="post" action="{PLACE}">
<input aria-label="Biography" name="user_biography[biography]"><button>Save</button></form>"""
DONE = {"task_type": "MUTATE", "status": "SUCCESS", "retrieved_data": []}


class Forum(BaseHTTPRequestHandler):
    """One page; whoever has no cookie of a login sees none of it."""

    def do_GET(self) -> None:
        known = "session=ours" in self.headers.get("Cookie", "")
        self._send(200, PAGE if known else "<h1>Log in first</h1>")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._send(302, "")

    def _send(self, status: int, page: str) -> None:
        body = page.encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/user/MarvelsGrantMan136")
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def forum(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The address of the page, named in the environment as WebArena's forum, with a login."""
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Forum) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setenv("WA_REDDIT", address)
        cookie = {"name": "session", "value": "ours", "domain": "127.0.0.1", "path": "/"}
        state = tmp_path / "state.json"
        state.write_text(json.dumps({"cookies": [{**cookie, "expires": -1}], "origins": []}))
        monkeypatch.setenv("WA_STATE", str(state))
        yield address
        server.shutdown()


def biography(adapter: WebArena) -> Task:
    return next(task for task in adapter.tasks("test", 0) if task.setup["number"] == BIOGRAPHY)


@pytest.mark.slow
def test_all_references_but_one_score_one() -> None:
    opened_gold()
    played = gold(find("webarena").open_gold(), None)
    assert len(played) == 324
    # The package's expectation of task 319 lacks a key that its own comparison then wants.
    assert sum(t.success for t in played) == 323
    assert [t.fault for t in played if t.fault] == []


def opened_gold() -> None:
    if find("webarena").missing:
        pytest.skip(find("webarena").install)


@pytest.mark.slow
def test_a_wrong_answer_and_no_answer_score_nothing() -> None:
    opened_gold()
    adapter = find("webarena").open_gold()
    for task in list(adapter.tasks("test", 0))[:6]:
        environment = adapter.environment()
        environment.reset(task)
        assert not environment.step(Say("done", closing=True)).done
        assert environment.step(ToolCall("answer", {"task_type": "RETRIEVE"})).failed
        right = task.goal["gold"][0]["arguments"]
        wrong = {**right, "retrieved_data": ["nothing of the kind"]}
        assert environment.step(ToolCall("answer", wrong)).done
        assert not environment.outcome().success
        assert environment.step(ToolCall("answer", right)).failed
        assert not environment.outcome().success


@pytest.mark.slow
def test_a_form_in_the_log_decides() -> None:
    opened_gold()
    head = {"url": f"{NOWHERE['reddit']}{PLACE}", "method": "POST", "headers": []}
    kind = "application/x-www-form-urlencoded"
    posted = {"mimeType": kind, "text": "user_biography%5Bbiography%5D=I+am+a+robot"}
    response = {"status": 302, "headers": [], "redirectURL": "/", "content": {}}
    sent = {"request": {**head, "postData": posted}, "response": response}
    seen = {"request": {**head, "method": "GET"}, "response": {**response, "status": 200}}
    other = {"mimeType": kind, "text": "user_biography%5Bbiography%5D=I+am+none"}
    wrong = {**sent, "request": {**head, "postData": other}}
    assert graded(NOWHERE, BIOGRAPHY, DONE, [seen, sent]) == 1.0
    assert graded(NOWHERE, BIOGRAPHY, DONE, [seen]) == 0.0
    assert graded(NOWHERE, BIOGRAPHY, DONE, [seen, wrong]) == 0.0
    assert graded(NOWHERE, BIOGRAPHY, {**DONE, "task_type": "RETRIEVE"}, [seen, sent]) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(("text", "solved"), [("I am a robot", True), ("I am none", False)])
def test_an_episode_in_pages(forum: str, text: str, solved: bool) -> None:
    adapter = opened("webarena")
    assert isinstance(adapter, WebArena)
    tasks = list(adapter.tasks("test", 0))
    assert len(tasks) == 106  # of the 812, those in the forum alone
    task = biography(adapter)
    assert task.query.endswith(f"The pages: {forum}")
    environment = adapter.environment()
    environment.reset(task)
    assert 'link "Other"' in environment.step(ToolCall("look")).observation
    assert environment.step(ToolCall("goto", {"address": "http://127.0.0.1:9/"})).failed
    seen = Seen(environment.step(ToolCall("goto", {"address": f"{forum}/again"})).observation)
    fill = {"ref": seen.ref("textbox", "Biography"), "text": text}
    assert not environment.step(ToolCall("fill", fill)).failed
    environment.step(ToolCall("click", {"ref": seen.ref("button", "Save")}))
    assert environment.step(ToolCall("answer", DONE)).done
    assert environment.outcome().success is solved
    assert environment.step(ToolCall("look")).failed


@pytest.mark.slow
@pytest.mark.usefixtures("forum")
def test_words_alone_change_nothing() -> None:
    adapter = opened("webarena")
    assert isinstance(adapter, WebArena)
    environment = adapter.environment()
    environment.reset(biography(adapter))
    assert environment.step(ToolCall("answer", DONE)).done
    assert not environment.outcome().success


def test_a_place_is_put_for_the_name_of_a_site() -> None:
    places = {"shopping_admin": "http://a.invalid/admin", "map": "http://b.invalid"}
    assert rendered("__SHOPPING_ADMIN__/x", places) == "http://a.invalid/admin/x"
    assert rendered("__MAP__", places) == "http://b.invalid"


@pytest.mark.parametrize("value", ["", "nowhere"])
def test_without_sites_the_variables_are_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("WA_SHOPPING", value)
    with pytest.raises(ConfigurationError, match="WA_SHOPPING"):
        WebArena()


@pytest.mark.slow
def test_the_command_says_what_it_has_tested() -> None:
    opened_gold()
    done = CliRunner().invoke(app, ["benchmarks", "gold", "webarena", "--limit", "5", "--json"])
    found = json.loads(done.stdout)
    assert (found["n"], found["success"]) == (5, 1.0)
    assert "No page of WebArena was opened" in found["tests"]
