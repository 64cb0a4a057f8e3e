"""`progrl rollout` and `progrl play` with a language model as the user."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.users.llm_server import Server, helpful, serving

TINY = ("--profile", "tiny", "--quiet", "--json")


@pytest.fixture
def user(tmp_path: Path) -> Iterator[tuple[Server, list[str]]]:
    """A server, and the options that make it the user."""
    server = Server(helpful)
    keys = {
        "kind": "llm", "family": "a", "base_url": server.base_url, "model": "able",
        "key_variable": "''", "temperature": 0, "max_tokens": 100, "concurrency": 8, "timeout": 5,
        "retries": 1, "cache": str(tmp_path / "answers"), "price_in": 1, "price_out": 2,
    }  # fmt: skip
    with serving(server):
        yield server, [part for k, v in keys.items() for part in ("--set", f"user.{k}={v}")]


def test_a_rollout_with_the_llm_user(run: Run, user: tuple[Server, list[str]]) -> None:
    server, options = user
    done = run("rollout", *TINY, *options, "--environment", "retail", "--episodes", "8")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert (told["episodes"], told["success"], told["faults"]) == (8, 1.0, 0)
    assert told["user/requests"] == len(server.asked) > 0
    assert told["user/tokens_in"] == server.tokens()[0]
    assert told["user/cost"] == (server.tokens()[0] + 2 * server.tokens()[1]) / 1e6
    again = json.loads(run("rollout", *TINY, *options, "--user", "llm", "--episodes", "8").stdout)
    assert (again["success"], again["user/requests"]) == (1.0, 0)


def test_an_endpoint_that_is_down_is_a_fault_of_the_episodes(
    run: Run, user: tuple[Server, list[str]]
) -> None:
    _, options = user
    dead = [*options, "--set", "user.base_url=http://127.0.0.1:9/v1", "--set", "user.retries=0"]
    done = run("rollout", *TINY, *dead, "--episodes", "8")
    told = json.loads(done.stdout)
    assert told["faults"] == told["user/lost"] == 6  # the others need no answer
    assert done.exit_code == 2
    assert "6 of 8 episodes were lost to faults, more than the 25% allowed" in done.stderr
    assert "6 of them to: UserFault: " in done.stderr
    assert "127.0.0.1:9" in done.stderr


def test_a_rollout_with_some_faults_is_one(run: Run, user: tuple[Server, list[str]]) -> None:
    server, options = user
    requests = count()

    def breaks_once(body: dict[str, Any]) -> str:
        if next(requests) == 0:
            raise ConnectionError
        return helpful(body)

    server.reply = breaks_once
    done = run("rollout", *TINY, *options, "--set", "user.retries=0", "--episodes", "8")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["faults"] == 1


def test_an_llm_user_that_is_not_configured_is_refused(run: Run) -> None:
    done = run("rollout", *TINY, "--user", "llm")
    assert done.exit_code == 2
    assert "names no endpoint" in done.stderr


@pytest.mark.parametrize(
    "address", ["127.0.0.1:80", "ftp://x/v1", "http://me:key@x/v1", "http://x?key=1"]
)
def test_an_address_that_is_none_or_holds_a_key_is_refused(
    address: str, run: Run, user: tuple[Server, list[str]]
) -> None:
    done = run("rollout", *TINY, *user[1], "--set", f"user.base_url={address}")
    assert done.exit_code == 2
    assert "base_url" in done.stderr
