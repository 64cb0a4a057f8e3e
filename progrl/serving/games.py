"""Games in progress: an episode that waits for a person whenever it is their turn."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from progrl.agent.seats import Agent, HumanAgent
from progrl.dialogue.messages import Message, ToolSpec
from progrl.dialogue.trajectories import Trajectory
from progrl.environments.contracts import Domain
from progrl.errors import ProgrlError
from progrl.rollout import Clock, EpisodeSpec, play
from progrl.serving.dealer import Role
from progrl.users.contracts import UserSimulator
from progrl.users.human import Goal, HumanUser


class Refusal(ProgrlError):
    """A request that cannot be met; `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the server.

    Attributes:
        games: most games at a time.
        idle: seconds without a word from the person after which a game is forgotten.
        message: most characters of a message, or of an argument of a call.
        body: most bytes of a request.
        poll: seconds after which a question for news is answered though there is none.
    """

    games: int = 32
    idle: float = 3600.0
    message: int = 2000
    body: int = 32_768
    poll: float = 25.0


@dataclass(frozen=True, slots=True)
class Rating:
    """What a person thinks of the other side: 1 to 5 stars, and words or none."""

    stars: int
    words: str


class Game:
    """One episode with a person in it; lives on the event loop that `start` was called on.

    Attributes:
        id: names the game to its player, and to nobody else: it cannot be guessed.
        version: grows with whatever there is to be seen.
        asked: how many times the person was asked; names the question that an answer is for.
        trajectory: as far as the episode has come.
        tools: of the agent, as they stand.
        goal: of the user; it may have changed.
        change: words that announce a change of the goal with the next reply, or "".
        rating: the person's, after the end.
        saved: the name by which the saved game can be deleted, "" while there is none.
    """

    def __init__(self, spec: EpisodeSpec, domain: Domain, role: Role) -> None:
        self.id = secrets.token_urlsafe(24)
        self.spec, self.domain, self.role = spec, domain, role
        self.version = 0
        self.asked = 0
        self.trajectory: Trajectory | None = None
        self.tools: Sequence[ToolSpec] = domain.tools
        self.goal = Goal(domain.user_view(spec.task))
        self.change = ""
        self.rating: Rating | None = None
        self.saved = ""
        self.over = False
        self.used = time.monotonic()
        self._changed = asyncio.Event()
        self._line: asyncio.Future[str] | None = None
        self._episode: asyncio.Task[None] | None = None

    @property
    def waits(self) -> bool:
        """It is the person's turn."""
        return self._line is not None

    def start(self, agent: Agent | None, user: UserSimulator | None) -> None:
        """Play against `agent`, or against `user`; None is the person's own place."""
        seat, other = agent or HumanAgent(self._as_agent), user or HumanUser(self._as_user)
        self._episode = asyncio.create_task(self._play(seat, other))

    def answer(self, asked: int, line: str) -> None:
        """Take the person's line for question `asked`.

        Raises:
            Refusal: that question is not open: answered already, from another window perhaps.
        """
        if self._line is None or asked != self.asked:
            raise Refusal(409, "It is not your turn, or this was answered already.")
        line_is, self._line = self._line, None
        line_is.set_result(line)
        self.touch()

    async def news(self, seen: int, seconds: float) -> None:
        """Return when `version` is another than `seen`, or after `seconds`."""
        if self.version == seen:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)

    def touch(self) -> None:
        """There is something new to be seen."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def stop(self) -> None:
        """Give the episode up; idempotent."""
        if self._episode is not None:
            self._episode.cancel()
        self.touch()

    async def _play(self, agent: Agent, user: UserSimulator) -> None:
        self.trajectory = await play(self.spec, self.domain, agent, user, Clock(), self._told)
        self.over, self.change = True, ""
        self.touch()

    def _told(self, trajectory: Trajectory) -> None:
        self.trajectory = trajectory
        self.touch()

    async def _as_user(self, said: str) -> str:
        self.change = self.goal.turn()
        return await self._ask()

    async def _as_agent(self, history: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
        self.tools = tools
        return await self._ask()

    async def _ask(self) -> str:
        self._line = asyncio.get_running_loop().create_future()
        self.asked += 1
        self.touch()
        return await self._line


class Games:
    """All games of a server, by their ids."""

    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._now = limits, now
        self._games: dict[str, Game] = {}

    def __len__(self) -> int:
        return len(self._games)

    def add(self, game: Game) -> None:
        """Take a game in; where the house is full, the one longest over goes.

        Raises:
            Refusal: all are in progress.
        """
        self._sweep()
        if len(self._games) >= self._limits.games:
            over = [other for other in self._games.values() if other.over]
            if not over:
                raise Refusal(503, f"{self._limits.games} games are in progress: try again later.")
            self.remove(min(over, key=lambda other: other.used).id)
        game.used = self._now()
        self._games[game.id] = game

    def find(self, id_: str, acts: bool = False) -> Game:
        """A game by its id; `acts` says that its player does something with it.

        Raises:
            Refusal: there is none, or none any more.
        """
        self._sweep()
        game = self._games.get(id_)
        if game is None:
            raise Refusal(404, "This game is not here any more: start another.")
        if acts:
            game.used = self._now()
        return game

    def remove(self, id_: str) -> None:
        """Stop a game and forget it; idempotent."""
        game = self._games.pop(id_, None)
        if game is not None:
            game.stop()

    def unsaved(self, name: str) -> None:
        """The saved game of that name was deleted."""
        for game in self._games.values():
            if game.saved == name:
                game.saved = ""
                game.touch()

    def close(self) -> None:
        """Stop and forget all."""
        for id_ in list(self._games):
            self.remove(id_)

    def _sweep(self) -> None:
        oldest = self._now() - self._limits.idle
        for id_ in [game.id for game in self._games.values() if game.used < oldest]:
            self.remove(id_)
