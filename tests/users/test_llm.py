"""The LLM user against a real server of the OpenAI protocol on loopback."""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from progrl.agent.seats import ExpertAgent
from progrl.dialogue.trajectories import End, Trajectory, record
from progrl.dialogue.users import GoalChange, UserReply
from progrl.errors import ConfigurationError, UserFault
from progrl.users import llm_endpoint
from progrl.users.llm import LlmUser
from tests.rollout.desk import Notes, WatchedRetail, specs, tasks, world
from tests.users.desk import CANCEL, PLAIN, answer, conversation, view
from tests.users.llm_server import FAULTS, Proxy, Reply, Server, helpful, serving, settings

LEAVE = json.dumps({"act": "clarify", "text": "never mind , bye", "done": True})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_endpoint, "BACK_OFF", 0.01)
    monkeypatch.setattr(llm_endpoint, "PAUSE", 0.2)


@pytest.fixture
def able() -> Iterator[Server]:
    """A server whose model follows its prompt."""
    server = Server(helpful)
    with serving(server):
        yield server


def users(base_url: str, folder: Path, **changes: Any) -> LlmUser:
    return LlmUser(settings(base_url, **changes), folder)


def served(reply: Reply, folder: Path, question: str, **changes: Any) -> tuple[Any, LlmUser, int]:
    """The reply (or the fault) to one question, the user, and the requests that came."""
    server = Server(reply)
    with serving(server):
        user = users(server.base_url, folder, **changes)
        try:
            told: Any = answer(conversation(question), view(CANCEL), PLAIN, user)
        except UserFault as fault:
            told = fault
        user.close()
    return told, user, len(server.asked)


def test_an_expert_solves_its_tasks_with_it(able: Server, tmp_path: Path) -> None:
    user = users(able.base_url, tmp_path)
    played = world(user=user).play(specs(tasks()), ExpertAgent())
    assert all(t.success for t in played)
    assert {turn.act for t in played for turn in t.turns} > {"inform", "confirm"}
    assert any(turn.act == "change_goal" for t in played for turn in t.turns)
    spent = user.spent()
    assert spent["answers"] == spent["replies"] == len(able.asked) == spent["requests"]
    assert (spent["tokens_in"], spent["tokens_out"]) == able.tokens()
    assert spent["cost"] == pytest.approx(
        (able.tokens()[0] * 2.0 + able.tokens()[1] * 10.0) / 1e6, rel=1e-12
    )
    assert {name: spent[name] for name in ("cached", "lost", "broken_forms", "early_leaves")} == {
        "cached": 0, "lost": 0, "broken_forms": 0, "early_leaves": 0,
    }  # fmt: skip
    assert able.most_at_once() <= 8
    # Every request says what the configuration says, with a seed of its own.
    assert {(b["model"], b["temperature"], b["max_tokens"]) for b in able.asked} == {
        ("able", 0.7, 100)
    }
    assert len({b["seed"] for b in able.asked}) > len(able.asked) / 2
    user.close()


def test_a_rerun_costs_nothing_and_is_the_same(able: Server, tmp_path: Path) -> None:
    def unsteady(body: dict[str, Any]) -> str:
        reply = json.loads(helpful(body))
        return json.dumps({**reply, "text": f"{reply['text']} ({len(able.asked)})"})

    able.reply = unsteady
    first = users(able.base_url, tmp_path)
    given = specs(tasks(12))
    played = world(user=first).play(given, ExpertAgent())
    first.close()
    asked = len(able.asked)
    again = users(able.base_url, tmp_path)
    assert [record(t) for t in world(user=again).play(given, ExpertAgent())] == [
        record(t) for t in played
    ]
    again.close()
    assert len(able.asked) == asked
    spent = again.spent()
    assert spent["cached"] == spent["answers"] == asked
    assert (spent["requests"], spent["tokens_in"], spent["cost"]) == (0, 0, 0)
    # An answer that was damaged on the disk is asked for again.
    files = sorted(tmp_path.glob("answers/*/*.json"))
    assert len(files) == asked
    files[0].write_text("{")
    world(user=users(able.base_url, tmp_path)).play(given, ExpertAgent())
    assert len(able.asked) > asked
    assert json.loads(files[0].read_text())["content"]


def test_a_group_hears_one_answer_to_the_same_words(able: Server, tmp_path: Path) -> None:
    """So the tree of a group's episodes parts at what the agent wrote alone."""
    count = iter(range(10_000))

    def unsteady(body: dict[str, Any]) -> str:
        time.sleep(0.02)
        reply = json.loads(helpful(body))
        return json.dumps({**reply, "text": f"{reply['text']} ({next(count)})"})

    able.reply = unsteady
    user = users(able.base_url, tmp_path)
    played = world(user=user).play(specs(tasks(6), each=5), ExpertAgent())
    for at in range(0, len(played), 5):
        assert len({str(t.history()) for t in played[at : at + 5]}) == 1
    assert user.spent()["cached"] == 4 * len(able.asked)
    user.close()


def test_a_broken_reply_is_asked_for_once_more(tmp_path: Path) -> None:
    replies = iter(["ok!", json.dumps({"act": "unknown", "text": "no idea", "done": False})])
    seen: list[dict[str, Any]] = []

    def reply(body: dict[str, Any]) -> str:
        seen.append(body)
        return next(replies)

    told, user, _ = served(reply, tmp_path, "what is your age ?")
    assert told == UserReply("no idea", "unknown")
    assert [m["role"] for m in seen[1]["messages"]] == ["system", "user", "assistant", "user"]
    assert "it is not one JSON object" in seen[1]["messages"][-1]["content"]
    assert user.spent()["broken_forms"] == 1
    assert user.spent()["given_up"] == 0


def test_a_reply_that_stays_broken_is_a_fault(tmp_path: Path) -> None:
    told, user, requests = served(lambda body: "ok!", tmp_path, "what is your age ?")
    assert isinstance(told, UserFault)
    assert "cannot be used: it is not one JSON object" in str(told)
    assert requests == 2
    assert (user.spent()["broken_forms"], user.spent()["given_up"]) == (2, 1)


def test_it_leaves_by_rule_alone_and_early_leaves_are_counted(tmp_path: Path) -> None:
    told, user, requests = served(lambda body: LEAVE, tmp_path, "what is your age ?")
    assert told == UserReply("never mind , bye", "clarify", leaves=False)
    assert (requests, user.spent()["early_leaves"]) == (2, 2)


def test_a_change_of_the_goal_is_announced_in_the_tasks_own_words(tmp_path: Path) -> None:
    change = GoalChange(1, "sorry , i changed my mind", view())
    user = users("http://127.0.0.1:9/v1", tmp_path)
    told = answer(conversation("hello ."), view(CANCEL, change=change), PLAIN, user)
    assert told == UserReply("sorry , i changed my mind", "change_goal")
    assert user.spent()["requests"] == 0


def test_a_refusal_is_not_repeated_and_the_key_is_told_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PROGRL_TEST_KEY", "sk-very-secret")
    server = Server(helpful, key="sk-another")
    with caplog.at_level(logging.DEBUG), serving(server):
        user = users(server.base_url, tmp_path, key_variable="PROGRL_TEST_KEY", retries=5)
        with pytest.raises(UserFault, match=r"refused \(status 401\).*\[key\]") as caught:
            answer(conversation("what is your age ?"), view(CANCEL), PLAIN, user)
        assert user.spent()["requests"] == 1
        server.key = "sk-very-secret"
        assert answer(conversation("what is your age ?"), view(CANCEL), PLAIN, user).text
    user.close()
    kept = "".join(path.read_text() for path in tmp_path.rglob("*.json"))
    for text in (str(caught.value), caplog.text, kept, repr(user), json.dumps(user.spent())):
        assert "very-secret" not in text


def test_a_key_that_is_not_set_is_told_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROGRL_TEST_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="PROGRL_TEST_KEY is not set"):
        users("http://127.0.0.1:9/v1", tmp_path, key_variable="PROGRL_TEST_KEY")


def test_tokens_that_an_endpoint_does_not_count_are_known_to_be_missing(tmp_path: Path) -> None:
    server = Server(helpful)
    server.usage = False
    with serving(server):
        user = users(server.base_url, tmp_path)
        answer(conversation("what is your age ?"), view(CANCEL), PLAIN, user)
        user.close()
    assert (user.spent()["unmetered"], user.spent()["tokens_in"]) == (1, 0)


def assert_as_undisturbed(played: list[Trajectory], alone: list[Trajectory], notes: Notes) -> int:
    """Lost episodes have a cause, all others are as if nothing had happened; steps are done once.

    Returns how many were lost.
    """
    lost = 0
    for trajectory, other in zip(played, alone, strict=True):
        assert notes.actions[trajectory.task_id] == [turn.action for turn in trajectory.turns]
        if trajectory.valid:
            assert record(trajectory) == record(other)
            continue
        lost += 1
        assert trajectory.end is End.FAULT
        assert trajectory.fault.startswith("UserFault: the user's model at http://127.0.0.1:")
        assert " gave no answer in " in trajectory.fault
        assert (trajectory.turns[-1].observation, trajectory.turns[-1].act) == ("", "")
        assert len(notes.heard.get(trajectory.task_id, [])) < len(other.turns)
    return lost


def play(user: LlmUser, count: int) -> tuple[list[Trajectory], Notes]:
    notes = Notes()
    watched = world(WatchedRetail(notes), user)
    return watched.play(specs(tasks(count)), ExpertAgent()), notes


CAUSES = {
    "drop": "connection",
    "truncated": "connection",
    "429": "status_429",
    "500": "status_500",
    "garbage": "garbage",
    "never": "timeout",
    "slow": "",
}


def test_every_fault_has_a_test() -> None:
    assert set(CAUSES) == set(FAULTS)


@pytest.mark.parametrize(("kind", "cause"), CAUSES.items())
def test_a_failed_request_is_counted_by_its_cause(
    kind: str, cause: str, able: Server, tmp_path: Path
) -> None:
    proxy = Proxy(able, rate=1.0)
    proxy.kinds = (kind,)
    with serving(proxy):
        user = users(proxy.base_url, tmp_path, retries=1, timeout=0.3 if kind == "never" else 30.0)
        if cause:
            with pytest.raises(UserFault, match="gave no answer in 2 tries"):
                answer(conversation("what is your age ?"), view(CANCEL), PLAIN, user)
        else:
            assert answer(conversation("what is your age ?"), view(CANCEL), PLAIN, user).text
        user.close()
    assert failures(user) == (Counter({cause: 2}) if cause else Counter())


def failures(user: LlmUser) -> Counter[str]:
    """Requests that failed, by their cause."""
    spent = user.spent().items()
    return Counter({k.removeprefix("failures/"): int(v) for k, v in spent if "failures/" in k})


@pytest.mark.parametrize(("retries", "most_lost"), [(6, 0.02), (0, 0.95)])
def test_with_three_requests_in_ten_failing_rollouts_go_on(
    able: Server, tmp_path: Path, retries: int, most_lost: float
) -> None:
    count = 48
    calm = users(able.base_url, tmp_path / "calm")
    alone, _ = play(calm, count)
    calm.close()
    able.asked.clear()
    proxy = Proxy(able, rate=0.3)
    with serving(proxy):
        user = users(proxy.base_url, tmp_path, retries=retries, timeout=2.0, concurrency=32)
        played, notes = play(user, count)
        lost = assert_as_undisturbed(played, alone, notes)
        user.close()
    spent, done = user.spent(), proxy.done
    assert lost == spent["lost"] <= most_lost * count
    assert (retries == 0) == (lost > 0)
    assert set(done) == {*FAULTS, "none"}
    # Every request ended in one way, and a machine that stalls only makes time-outs of others.
    ended = failures(user) + Counter(answers=int(spent["answers"]))
    due = Counter[str]()
    for kind, number in done.items():
        due[CAUSES.get(kind) or "answers"] += number
    assert spent["requests"] == ended.total() == due.total()
    assert set(ended - due) <= {"timeout"}
    # What was answered but never arrived is not paid for here: nobody counted it.
    assert spent["tokens_out"] < able.tokens()[1]


def test_a_call_that_blocks_holds_up_no_other(able: Server, tmp_path: Path) -> None:
    count, pause = 24, 0.4
    slow = max(tasks(count), key=lambda task: task.expert_turns).query

    def reply(body: dict[str, Any]) -> str:
        time.sleep(pause if slow in body["messages"][1]["content"] else 0.05)
        return helpful(body)

    able.reply = reply
    user = users(able.base_url, tmp_path, concurrency=6)
    ended: list[float] = []
    start = time.monotonic()
    played = world(user=user).play(
        specs(tasks(count)),
        ExpertAgent(),
        done=lambda number: ended.append(time.monotonic() - start),
    )
    user.close()
    assert all(t.success for t in played)
    blocked = pause * sum(slow in body["messages"][1]["content"] for body in able.asked)
    assert blocked >= 3 * pause
    # The others are long done; all waits together are much longer than the time that passed.
    assert ended[-1] >= blocked
    assert sum(moment < blocked for moment in ended) == count - 1
    assert able.most_at_once() == 6
    assert sum(end - begin for begin, end in able.spans) > ended[-1]


def test_a_busy_caller_makes_no_request_late(able: Server, tmp_path: Path) -> None:
    """An engine's step holds the caller's loop: requests go on meanwhile, none times out."""
    user = users(able.base_url, tmp_path, timeout=2.0, retries=0)

    async def talk() -> list[UserReply]:
        asked = [
            asyncio.create_task(user.reply(conversation(f"what is {n} ?"), view(CANCEL), PLAIN))
            for n in range(8)
        ]
        await asyncio.sleep(0)
        time.sleep(2.5)
        return await asyncio.gather(*asked)

    assert len(asyncio.run(talk())) == 8
    assert user.spent()["lost"] == 0
    user.close()


def test_the_circuit_opens_and_closes(able: Server, tmp_path: Path) -> None:
    proxy = Proxy(able, rate=1.0)
    proxy.kinds = ("500",)
    with serving(proxy):
        user = users(proxy.base_url, tmp_path, retries=3, concurrency=4)
        played, _ = play(user, 24)
        talked = [t for t in played if not t.valid]
        assert talked
        tried = proxy.done["500"]
        # Of four tries a call most were held back.
        assert tried < 2 * len(talked)
        assert user.spent()["circuit_opened"] == 1
        assert any("no request was sent after" in t.fault for t in talked)
        proxy.rate = 0.0
        again, _ = play(user, 24)
        assert all(t.success for t in again)
        user.close()
