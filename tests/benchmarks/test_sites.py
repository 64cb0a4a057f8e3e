"""Our local sites: what they do with forms, how tasks are judged, gold in the real browser."""

import gc
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.benchmarks import gold
from progrl.benchmarks.browser import Seen
from progrl.benchmarks.sites import LocalSites
from progrl.benchmarks.sites.adapter import SitesEnvironment
from progrl.benchmarks.sites.server import Event, Served
from progrl.benchmarks.sites.store import Store
from progrl.benchmarks.sites.tasks import FAMILIES, answers, left, sent
from progrl.dialogue.messages import ToolCall
from progrl.dialogue.tasks import Task
from tests.benchmarks.packages import opened


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served(1)
    yield made
    made.close()
    made.thread.join(5)
    assert not made.thread.is_alive()


def ask(served: Served, path: str, form: dict[str, str] | None = None) -> tuple[int, str]:
    data = None if form is None else urllib.parse.urlencode(form).encode()
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(served.address + path, data, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_seed_makes_one_world() -> None:
    assert Store(3).everything() == Store(3).everything()
    assert Store(3).everything() != Store(4).everything()


def test_buying(served: Served) -> None:
    first = served.store.rows("select * from products order by id")[0]
    assert first["name"] in ask(served, "/shop")[1]
    assert ask(served, "/cart", {"address": "1 Mill Lane"})[0] == 400
    for count in ("0", "-1", "99", "one", ""):
        assert ask(served, "/product/1", {"count": count})[0] == 400
    assert ask(served, "/product/1", {"count": "2"})[0] == 200
    assert ask(served, "/cart", {"address": " "})[0] == 400
    assert (
        f"2 x {first['name']} to 1 Mill Lane" in ask(served, "/cart", {"address": "1 Mill Lane"})[1]
    )
    (order,) = served.store.rows("select * from orders")
    assert (order["product"], order["count"]) == (1, 2)
    assert served.store.rows("select * from cart") == []
    (after,) = served.store.rows("select stock from products where id = 1")
    assert after["stock"] == first["stock"] - 2
    taken = [event.path for event in served.events if event.taken]
    assert taken == ["/product/1", "/cart"]


def test_what_people_write_is_no_markup(served: Served) -> None:
    _, page = ask(served, "/post/1", {"body": "<script>alert('x')</script>"})
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    _, page = ask(served, "/page/1", {"title": '"><b>', "body": "x", "state": "draft"})
    assert '"><b>' not in page
    assert ask(served, "/shop?q=%22%3E%3Cb%3E")[1].count("<b>") == 0


@pytest.mark.parametrize(
    ("path", "form", "status"),
    [
        ("/nowhere", None, 404),
        ("/product/999", None, 404),
        ("/post/1", {"body": ""}, 400),
        ("/page/1", {"title": "", "body": "", "state": "draft"}, 400),
        ("/page/1", {"title": "a", "body": "", "state": "gone"}, 400),
        ("/vote/999", {"a": "b"}, 400),
        ("/forum", {"a": "b"}, 400),
        ("/post/1", {"body": "x" * 200_000}, 413),
    ],
)
def test_what_the_sites_refuse(
    served: Served, path: str, form: dict[str, str] | None, status: int
) -> None:
    assert ask(served, path, form)[0] == status
    assert left(served.store, 1, [])


@pytest.mark.parametrize(
    ("said", "expected", "right"),
    [
        ("12.50", 12.5, True),
        ("12.5 ", 12.5, True),
        ("12.50 crowns", 12.5, False),
        ("12.51", 12.5, False),
        ("Amber  Kettle.", "amber kettle", True),
        ("amber pan", "amber kettle", False),
        ("b, A", ["a", "b"], True),
        ("a", ["a", "b"], False),
        ("a, b, c", ["a", "b"], False),
        ("a, a, b", ["a", "b"], False),
        ("anything", None, True),
    ],
)
def test_answers(said: str, expected: Any, right: bool) -> None:
    assert answers(said, expected) is right


@given(st.text(), st.integers(0, 10**4))
def test_words_are_the_number_only_if_they_say_it(said: str, number: int) -> None:
    if answers(said, float(number)):
        assert float(said) == number


def test_forms_that_are_missing_refused_or_too_many() -> None:
    wanted = [{"path": "/vote/1", "form": {}}]
    vote = Event("/vote/1", {}, taken=True)
    assert sent([vote], wanted)
    assert sent([Event("/vote/9", {}, taken=False), vote], wanted)
    assert not sent([], wanted)
    assert not sent([vote, vote], wanted)
    assert not sent([vote], [])


def test_the_database_must_be_as_wanted_and_no_other() -> None:
    changes = [{"command": "update posts set votes = votes + 1 where id = ?", "values": [1]}]
    store = Store(1)
    assert not left(store, 1, changes)
    store.change("update posts set votes = votes + 1 where id = 1")
    assert left(store, 1, changes)
    store.change("update posts set votes = votes + 1 where id = 2")
    assert not left(store, 1, changes)


def test_tasks_are_of_all_families_and_repeat() -> None:
    sites = LocalSites()
    tasks = list(sites.tasks("test", 0))
    assert len(tasks) == 10 * len(FAMILIES)
    assert len({task.id for task in tasks}) == len(tasks)
    assert tasks == list(sites.tasks("test", 7))
    train = [list(islice(sites.tasks("train", seed), 9)) for seed in (0, 1)]
    assert not {task.id for task in tasks} & {task.id for each in train for task in each}
    assert {task.family for task in train[0]} == set(FAMILIES)


def begun(family: str) -> tuple[SitesEnvironment, Task]:
    adapter = opened("local_sites")
    task = next(task for task in adapter.tasks("test", 0) if task.family == family)
    game = adapter.environment()
    assert isinstance(game, SitesEnvironment)
    game.reset(task)
    return game, task


@pytest.mark.slow
def test_gold_of_every_family_succeeds_and_its_servers_end() -> None:
    played = gold(opened("local_sites"), len(FAMILIES))
    assert [t.family for t in played if not t.success] == []
    assert {t.family for t in played} == set(FAMILIES)


@pytest.mark.slow
def test_the_right_answer_after_a_wrong_deed_is_no_success() -> None:
    game, task = begun("shop_price")
    right = str(task.goal["answer"])
    game.step(ToolCall("look"))
    forum = Seen(game.step(ToolCall("look")).observation).ref("link", "Forum")
    seen = Seen(game.step(ToolCall("click", {"ref": forum})).observation)
    post = next(e.ref for e in seen.elements if e.role == "link" and "ovens" in e.name)
    seen = Seen(game.step(ToolCall("click", {"ref": post})).observation)
    assert not game.step(ToolCall("click", {"ref": seen.ref("button", "Vote for it")})).failed
    assert game.step(ToolCall("answer", {"text": right})).done
    assert not game.outcome().success
    other, _ = begun("shop_price")
    assert other.step(ToolCall("answer", {"text": right})).done
    assert other.outcome().success


@pytest.mark.slow
def test_done_without_the_deed_is_no_success_and_servers_end() -> None:
    game, _ = begun("shop_order")
    thread = game.served.thread
    port = urlsplit(game.served.address).port
    assert port is not None
    assert game.step(ToolCall("answer", {"text": "done"})).done
    assert not game.outcome().success
    assert game.step(ToolCall("look")).failed
    thread.join(5)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.slow
def test_the_server_of_a_forgotten_episode_ends() -> None:
    game, _ = begun("shop_order")
    thread = game.served.thread
    assert thread.is_alive()
    del game
    gc.collect()
    thread.join(5)
    assert not thread.is_alive()
