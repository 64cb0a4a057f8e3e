"""The real server on a free port, and a client."""

import asyncio
import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from progrl.agent.seats import ExpertAgent, RandomAgent
from progrl.config import load_config
from progrl.dialogue.tasks import Task
from progrl.environments.registry import domain
from progrl.rewards import episode_reward
from progrl.rollout import EpisodeSpec
from progrl.seeds import Seed
from progrl.serving import Dealer, Limits, Role, make_app, make_server
from progrl.users.contracts import UserSimulator
from progrl.users.profiles import profile
from progrl.users.scripted import ScriptedUser, own_user
from tests.conftest import ROOT
from tests.rollout.desk import memory

CONFIG = load_config(ROOT / "params.yaml", "tiny")
DOMAINS = {name: domain(name) for name in ("function", "retail", "telepathy")}
PLAIN = profile("plain")


def simulator(name: str) -> UserSimulator:
    return own_user(DOMAINS[name]) or ScriptedUser(memory())


def spec(task: Task, role: Role, agent: str) -> EpisodeSpec:
    who = "human" if role == "agent" else agent
    return EpisodeSpec(task, Seed(task.id), 1, 20, PLAIN, {"agent": who, "person": role})


def dealer() -> Dealer:
    """Three domains without a model."""
    return Dealer(
        DOMAINS,
        {"expert": ExpertAgent(), "random": RandomAgent()},
        lambda played: played.tasks("validation", 1),
        simulator,
        spec,
        lambda trajectory: episode_reward(trajectory, CONFIG.reward),
    )


@dataclass
class Client:
    """Sends requests as a page of the server's would, unless told otherwise."""

    port: int
    folder: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def raw(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, Any]:
        status, _, body = self.raw("GET", path)
        return status, json.loads(body)

    def post(self, path: str, value: Any = None, **headers: str) -> tuple[int, Any]:
        status, _, body = self.raw("POST", path, json.dumps(value or {}).encode(), **headers)
        return status, json.loads(body)

    def begin(self, environment: str = "retail", level: int = 3, role: Role = "user") -> str:
        """The id of a new game."""
        asked = {"environment": environment, "level": level, "role": role}
        status, told = self.post("/api/games", {**asked, "agent": "expert"})
        assert status == 201, told
        return str(told["id"])

    def turn(self, game: str) -> dict[str, Any]:
        """The game, as soon as it is the person's turn or over."""
        _, state = self.get(f"/api/games/{game}")
        while state["status"] == "theirs":
            _, state = self.get(f"/api/games/{game}?seen={state['version']}")
        return dict(state)

    def say(self, game: str, **said: Any) -> dict[str, Any]:
        """Take the person's turn; the game at the next one."""
        status, told = self.post(
            f"/api/games/{game}/say", {"asked": self.turn(game)["asked"], **said}
        )
        assert status == 200, told
        return self.turn(game)


@contextmanager
def serving(folder: Path, limits: Limits | None = None) -> Iterator[Client]:
    """The server in a thread; it ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = make_server(make_app(dealer(), folder, port, limits))
        thread = Thread(target=asyncio.run, args=(server.serve(sockets=[listener]),))
        thread.start()
        try:
            yield Client(port, folder)
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()
