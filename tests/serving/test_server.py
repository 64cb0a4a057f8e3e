"""The server as whatever speaks HTTP finds it."""

import json
import re
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from progrl.dialogue.trajectories import End, read_trajectories
from progrl.serving import Limits, saved
from tests.serving.house import DOMAINS, Client, dealer, serving

SMALL = Limits(message=200, body=4000, poll=0.2)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(tmp_path_factory.mktemp("played"), SMALL) as client:
        yield client


def answer(state: dict[str, Any]) -> str:
    """What a person reads in the brief and would say."""
    said = state["entries"][-1]["text"]
    told = [f"{label} {value}" for label, value in state["brief"]["facts"]]
    return "yes" if "confirm ?" in said else " and ".join(told)


def test_a_person_is_the_user_and_the_agent_solves_it(house: Client) -> None:
    game = house.begin()
    state = house.turn(game)
    assert state["role"] == "user" and "tools" not in state and "policy" not in state
    assert state["entries"][0]["kind"] == "user"
    assert {"call", "result"} <= {entry["kind"] for entry in state["entries"]}
    while state["status"] != "over":
        assert state["result"] is None
        assert all(entry["notes"] == [] for entry in state["entries"])
        state = house.say(game, text=answer(state))
    result = state["result"]
    assert result["success"] and result["policy_kept"]
    assert result["reward"] > 1
    assert all(reached for _, _, reached in result["milestones"])
    assert sum(weight for _, weight, _ in result["milestones"]) == pytest.approx(1)
    assert any(entry["notes"] for entry in state["entries"])


def test_a_person_is_the_agent(house: Client) -> None:
    game = house.begin(level=1, role="agent")
    state = house.turn(game)
    assert state["policy"] == DOMAINS["retail"].policy and "brief" not in state
    assert [tool["name"] for tool in state["tools"]] == [t.name for t in DOMAINS["retail"].tools]
    state = house.say(game, call="find_user", arguments={"email": 'it\'s "x" @y.z'})
    assert state["entries"][-2]["arguments"] == [["email", 'it\'s "x" @y.z']]
    assert state["entries"][-1]["text"] == "error: no such user"
    state = house.say(game, call="fly", arguments={})
    assert (
        state["entries"][-2]["kind"] == "broken" and "unknown tool" in state["entries"][-1]["text"]
    )
    state = house.say(game, text="what is your name and zip ?")
    assert state["entries"][-1]["kind"] == "user"
    state = house.say(game, text="bye", close=True)
    assert (state["status"], state["turn"]) == ("over", 4)
    assert state["result"]["ending"] == "After 4 turns the agent closed the conversation."


def test_words_that_are_said_by_a_call_are_shown_as_words(house: Client) -> None:
    game = house.begin("telepathy", 1)
    state = house.turn(game)
    assert [entry["kind"] for entry in state["entries"]] == ["user", "say"]
    assert state["entries"][1]["text"].endswith("?")
    assert len(state["brief"]["facts"]) > 20
    while state["status"] != "over":
        state = house.say(game, text="no")
    assert all(e["text"] for e in state["entries"] if e["kind"] == "result")
    tried = house.begin("function", 1, "agent")
    choice = {"choice": "action", "content": "1 2 3 4"}
    state = house.say(tried, call="interact_with_env", arguments=choice)
    assert [entry["kind"] for entry in state["entries"]] == ["user", "call", "result"]
    assert not state["entries"][-1]["failed"]


def test_a_user_may_leave(house: Client) -> None:
    game = house.begin()
    state = house.say(game, leave=True)
    assert state["result"]["ending"].endswith("the user left.")
    assert not state["result"]["success"]


def test_the_brief_lacks_what_the_agent_is_to_find_out(house: Client) -> None:
    retail = DOMAINS["retail"]
    tasks = {task.id: task for task in islice(retail.tasks("validation", 1), 500)}
    hidden = 0
    for _ in range(12):
        game = house.begin(level=1)
        state = house.turn(game)
        if state["status"] != "over":
            state = house.say(game, leave=True)
        view = retail.user_view(tasks[state["result"]["task"]])
        told = state["brief"]["wishes"]
        assert [wish.text for wish in view.wishes] == [text.partition(" (")[0] for text in told]
        known = {fact.value for fact in view.facts}
        for wish in view.wishes:
            for value in set(wish.mentions) - known if wish.kind == "know" else ():
                assert value not in re.findall(r"[\w-]+", json.dumps(state["brief"]))
                hidden += 1
    assert hidden


def test_a_change_of_goal_is_told_when_it_is_due(tmp_path: Path) -> None:
    retail = DOMAINS["retail"]
    level = next(
        task.level
        for task in retail.tasks("validation", 1)
        if (change := retail.user_view(task).change) and change.at_reply == 1
    )
    with serving(tmp_path) as client:
        for _ in range(60):
            game = client.begin(level=level)
            state = client.turn(game)
            if state["status"] != "over" and state["change"]:
                break
            client.post(f"/api/games/{game}/end")
        after = state["brief"]
        state = client.say(game, text=state["change"], leave=False)
        assert (state.get("change"), state["brief"]) == ("", after)


def test_a_reload_finds_the_same_game_and_a_second_answer_is_refused(house: Client) -> None:
    game = house.begin()
    before = house.turn(game)
    assert house.turn(game) == before
    said = {"asked": before["asked"], "text": "hello"}
    assert house.post(f"/api/games/{game}/say", said)[0] == 200
    status, told = house.post(f"/api/games/{game}/say", said)
    assert (status, told["error"]) == (409, "It is not your turn, or this was answered already.")
    assert sum(e["text"] == "hello" for e in house.turn(game)["entries"]) == 1


def test_two_games_at_once_do_not_mix(house: Client) -> None:
    one, two = house.begin(), house.begin()
    assert one != two and len(one) == len(two) == 32
    first, second = house.turn(one), house.turn(two)
    assert first["entries"][0] != second["entries"][0]
    house.say(one, text="only here")
    assert house.turn(two) == second
    assert "only here" in json.dumps(house.turn(one))


def test_news_is_told_as_it_comes_and_not_waited_for_forever(house: Client) -> None:
    game = house.begin()
    state = house.turn(game)
    start = time.monotonic()
    assert house.get(f"/api/games/{game}?seen={state['version']}")[1] == state
    assert 0.15 < time.monotonic() - start < 5
    news: list[Any] = []
    path = f"/api/games/{game}?seen={state['version']}"
    asker = Thread(target=lambda: news.append(house.get(path)[1]))
    asker.start()
    house.say(game, text="hm")
    asker.join(10)
    assert news[0]["version"] > state["version"]


def over(house: Client) -> str:
    game = house.begin()
    house.say(game, leave=True)
    return game


def test_nothing_is_saved_unless_asked_for(house: Client) -> None:
    before = saved(house.folder)
    game = over(house)
    status, state = house.post(f"/api/games/{game}/rate", {"stars": 2, "words": "so so"})
    assert (status, state["rating"], state["saved"]) == (200, 2, "")
    assert saved(house.folder) == before


def test_a_saved_game_is_a_trajectory_and_is_deleted_for_good(house: Client) -> None:
    game = over(house)
    rating = {"stars": 4, "words": " fine \u2028 ok ", "save": True}
    _, state = house.post(f"/api/games/{game}/rate", rating)
    name = state["saved"]
    (trajectory,) = read_trajectories(house.folder / f"{name}.jsonl")
    assert trajectory.end is End.LEFT and trajectory.turns[-1].act == "leave"
    tags = {key: trajectory.tags[key] for key in ("agent", "person", "rating", "words")}
    assert tags == {"agent": "expert", "person": "user", "rating": 4, "words": "fine \u2028 ok"}
    assert house.post(f"/api/games/{game}/rate", rating)[0] == 409
    assert house.post(f"/api/saved/{name}/delete")[0] == 200
    assert list(house.folder.glob(f"{name}*")) == []
    assert house.turn(game)["saved"] == ""
    assert house.post(f"/api/saved/{name}/delete")[0] == 404


def test_a_folder_that_cannot_be_written_is_told_of_and_rating_can_be_repeated(
    tmp_path: Path,
) -> None:
    blocked = tmp_path / "played"
    blocked.write_text("a file")
    with serving(blocked) as client:
        game = over(client)
        status, told = client.post(f"/api/games/{game}/rate", {"stars": 5, "save": True})
        assert status == 400 and "could not be written" in told["error"]
        assert client.turn(game)["rating"] is None
        assert client.post(f"/api/games/{game}/rate", {"stars": 5})[0] == 200


def test_names_of_saved_games_lead_nowhere_else(house: Client) -> None:
    (house.folder / "other.jsonl").write_text("{}")
    for name in ("other", "..%2Fother", "%2e%2e", "a" * 32):
        assert house.post(f"/api/saved/{name}/delete")[0] == 404
    assert (house.folder / "other.jsonl").exists()


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "JSON"),
        (b"[1]", 400, "object"),
        (b'{"asked": 1, "text": "\\ud800"}', 400, "Invalid JSON"),
        (b'{"asked": "1", "text": "x"}', 400, "asked"),
        (b'{"asked": 1, "text": "x", "more": 1}', 400, "more"),
        (b'{"asked": 1, "text": "  "}', 400, "Say something"),
        (b'{"asked": 1, "text": "%s"}' % (b"x" * 201), 400, "text: Value error, longer than 200"),
        (b'{"asked": 1, "call": "x"}', 400, "calls no tools"),
        (b'{"asked": 1, "arguments": {"a": "%s"}}' % (b"x" * 201), 400, "longer than 200"),
        (b'{"asked": 1, "text": "%s"}' % (b"x" * 5000), 413, "larger than 4000 bytes"),
        (b'{"asked": 99, "text": "x"}', 409, "not your turn"),
    ],
)
def test_messages_that_cannot_be(body: bytes, status: int, message: str, house: Client) -> None:
    game = house.begin()
    before = house.turn(game)
    got, _, told = house.raw("POST", f"/api/games/{game}/say", body)
    assert (got, message in json.loads(told)["error"]) == (status, True), told
    assert house.turn(game) == before


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"environment": "moon"}, "no environment 'moon'"),
        ({"agent": "models/../../etc"}, "there is no 'models/../../etc' here"),
        ({"level": 6}, "level"),
        ({"level": True}, "level"),
        ({"role": "judge"}, "role"),
    ],
)
def test_games_that_cannot_be(asked: dict[str, Any], message: str, house: Client) -> None:
    plain = {"environment": "retail", "level": 0, "role": "user", "agent": "expert"}
    status, told = house.post("/api/games", {**plain, **asked})
    assert status == 400 and message in told["error"]


@pytest.mark.parametrize("rating", [{"stars": 0}, {"stars": 6}, {"stars": 2.5}, {"words": "x"}])
def test_ratings_that_cannot_be(rating: dict[str, Any], house: Client) -> None:
    game = over(house)
    assert house.post(f"/api/games/{game}/rate", rating)[0] == 400
    assert house.turn(game)["rating"] is None


def test_a_game_is_rated_when_it_is_over(house: Client) -> None:
    game = house.begin()
    assert house.post(f"/api/games/{game}/rate", {"stars": 3})[0] == 409


def test_a_game_given_up_is_gone(house: Client) -> None:
    game = house.begin()
    assert house.post(f"/api/games/{game}/end")[0] == 200
    status, told = house.get(f"/api/games/{game}")
    assert (status, told["error"]) == (404, "This game is not here any more: start another.")
    assert house.get("/api/games/guessed")[0] == house.get("/nothing")[0] == 404


def test_no_more_games_than_allowed_and_one_that_is_over_makes_room(tmp_path: Path) -> None:
    with serving(tmp_path, Limits(games=2)) as client:
        first, second = client.begin(), client.begin()
        asked = {"environment": "retail", "role": "agent"}
        status, told = client.post("/api/games", asked)
        assert (status, told["error"]) == (503, "2 games are in progress: try again later.")
        client.say(first, leave=True)
        third = client.begin()
        assert [client.get(f"/api/games/{game}")[0] for game in (first, second, third)] == [
            404, 200, 200,
        ]  # fmt: skip


def test_an_abandoned_game_is_forgotten(tmp_path: Path) -> None:
    with serving(tmp_path, Limits(idle=0.3)) as client:
        game = client.begin()
        time.sleep(0.4)
        assert client.get(f"/api/games/{game}")[0] == 404


def test_the_server_ends_at_once_though_somebody_waits_for_news(tmp_path: Path) -> None:
    told: list[int] = []
    with serving(tmp_path, Limits(poll=60)) as client:
        game = client.begin()
        path = f"/api/games/{game}?seen={client.turn(game)['version']}"
        asker = Thread(target=lambda: told.append(client.get(path)[0]))
        asker.start()
        time.sleep(0.2)
        start = time.monotonic()
    asker.join(10)
    assert told == [404]
    assert time.monotonic() - start < 5


def test_foreign_requests_are_refused(house: Client) -> None:
    body = b'{"environment": "retail", "role": "agent"}'
    rebound = f"evil.example:{house.port}"
    assert house.raw("GET", "/", Host=rebound)[0] == 421
    assert house.raw("GET", "/", Host="127.0.0.1:1")[0] == 421
    assert house.raw("GET", "/", Host=f"localhost:{house.port}")[0] == 200
    for headers, status in (
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Host": rebound}, 421),
        ({"Origin": house.address.rstrip("/"), "Sec_Fetch_Site": "same-origin"}, 201),
    ):
        assert house.raw("POST", "/api/games", body, **headers)[0] == status, headers


def test_the_page_needs_nothing_but_itself(house: Client) -> None:
    for path in ("/", "/games/x", "/play.js", "/play.css", "/report.css"):
        status, headers, body = house.raw("GET", path)
        assert status == 200
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        assert b"http://" not in body and b"https://" not in body


def test_what_is_offered(house: Client) -> None:
    _, offer = house.get("/api/offer")
    described = {each["name"]: each for each in offer["environments"]}
    assert described["retail"]["levels"] == [1, 2, 3, 4, 5]
    assert {name: each["talks"] for name, each in described.items()} == {
        "function": False, "retail": True, "telepathy": True,
    }  # fmt: skip
    assert offer["agents"] == ["expert", "random"]


def test_everyone_gets_another_task_of_the_level_asked_for() -> None:
    given = dealer()
    dealt = [given.deal("retail", 4) for _ in range(10)]
    assert {task.level for task in dealt} == {4}
    assert len({task.id for task in dealt}) == 10
