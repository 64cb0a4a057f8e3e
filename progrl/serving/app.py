"""The server: a page, and what the page asks for."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from progrl.errors import ProgrlError
from progrl.serving.dealer import Dealer
from progrl.serving.games import Game, Games, Limits, Rating, Refusal
from progrl.serving.guard import Guard
from progrl.serving.requests import Rated, Said, Start, given
from progrl.serving.saved import delete, save
from progrl.serving.state import state_of

_PAGE = files("progrl.serving") / "page"
_STYLE = files("progrl.reporting") / "templates" / "report.css"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_Handler = Callable[[Request], Awaitable[Response]]


def make_app(dealer: Dealer, folder: Path, port: int, limits: Limits | None = None) -> Starlette:
    """The application, for the server that listens on `port`; saved games go to `folder`."""
    house = _House(dealer, folder, limits or Limits())
    routes = [
        Route("/", _static("play.html")),
        Route("/games/{id}", _static("play.html")),
        *(Route(f"/{name}", _static(name)) for name in ("play.css", "play.js")),
        Route("/report.css", _static("report.css")),
        Route("/api/offer", house.offer),
        Route("/api/games", house.start, methods=["POST"]),
        Route("/api/games/{id}", house.show),
        Route("/api/games/{id}/say", house.say, methods=["POST"]),
        Route("/api/games/{id}/rate", house.rate, methods=["POST"]),
        Route("/api/games/{id}/end", house.end, methods=["POST"]),
        Route("/api/saved/{name}/delete", house.delete, methods=["POST"]),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, port=port)],
        exception_handlers={ProgrlError: _explained, 404: _nothing, 405: _nothing},
    )
    app.state.games = house.games
    return app


class _Server(uvicorn.Server):
    """Ends all games before it waits for requests to be answered: some wait for news of a game."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.app.state.games.close()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def make_server(app: Starlette) -> uvicorn.Server:
    """A server to be run on a socket; it keeps no log of requests: their paths are secrets."""
    return _Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=256,
            timeout_graceful_shutdown=1,
            ws="none",
        )
    )


def _static(name: str) -> _Handler:
    source = _STYLE if name == "report.css" else _PAGE / name
    content, kind = source.read_bytes(), _KINDS[Path(name).suffix]

    async def send(request: Request) -> Response:
        return Response(content, media_type=kind)

    return send


async def _explained(request: Request, error: Exception) -> Response:
    status = error.status if isinstance(error, Refusal) else 400
    return JSONResponse({"error": str(error)}, status)


async def _nothing(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "There is nothing here."}, 404)


class _House:
    """What the routes do."""

    def __init__(self, dealer: Dealer, folder: Path, limits: Limits) -> None:
        self._dealer, self._folder, self._limits = dealer, folder, limits
        self.games = Games(limits)

    async def offer(self, request: Request) -> Response:
        """What can be played."""
        offer = await asyncio.to_thread(lambda: self._dealer.offer)
        limits = {"message": self._limits.message, "folder": str(self._folder)}
        return JSONResponse({**offer, **limits})

    async def start(self, request: Request) -> Response:
        """A new game."""
        asked, dealer = await given(request, Start, self._limits), self._dealer
        if asked.role == "user" and asked.agent not in dealer.agents:
            raise Refusal(400, f"agent: there is no {asked.agent!r} here.")
        task = await asyncio.to_thread(dealer.deal, asked.environment, asked.level)
        agent = dealer.agents[asked.agent] if asked.role == "user" else None
        user = None if agent else await asyncio.to_thread(dealer.user, asked.environment)
        spec = dealer.spec(task, asked.role, asked.agent)
        game = Game(spec, dealer.domains[asked.environment], asked.role)
        self.games.add(game)
        game.start(agent, user)
        return JSONResponse({"id": game.id}, 201)

    async def show(self, request: Request) -> Response:
        """The game as it stands; with `seen`, as soon as there is something newer."""
        game = self.games.find(request.path_params["id"])
        seen = request.query_params.get("seen", "")
        if seen.isdecimal() and len(seen) < 10:
            await game.news(int(seen), self._limits.poll)
        return self._state(self.games.find(game.id))

    async def say(self, request: Request) -> Response:
        """The person's turn."""
        said = await given(request, Said, self._limits)
        game = self.games.find(request.path_params["id"], acts=True)
        game.answer(said.asked, said.line(game.role))
        return self._state(game)

    async def rate(self, request: Request) -> Response:
        """A rating, and the game saved where the person asks for that."""
        rated = await given(request, Rated, self._limits)
        game = self.games.find(request.path_params["id"], acts=True)
        if not game.over or game.trajectory is None:
            raise Refusal(409, "The game is not over.")
        if game.rating is not None:
            raise Refusal(409, "This game has been rated already.")
        game.rating = Rating(rated.stars, rated.words.strip())
        game.trajectory.tags |= {"rating": game.rating.stars, "words": game.rating.words}
        try:
            if rated.save:
                game.saved = save(self._folder, game.trajectory)
        except ProgrlError:
            game.rating = None
            raise
        game.touch()
        return self._state(game)

    async def end(self, request: Request) -> Response:
        """Give a game up, or put it away."""
        await given(request, None, self._limits)
        self.games.remove(request.path_params["id"])
        return JSONResponse({})

    async def delete(self, request: Request) -> Response:
        """Delete a saved game."""
        await given(request, None, self._limits)
        name = request.path_params["name"]
        if not delete(self._folder, name):
            raise Refusal(404, "There is no such saved game (any more).")
        self.games.unsaved(name)
        return JSONResponse({})

    def _state(self, game: Game) -> Response:
        state: dict[str, Any] = state_of(game, self._dealer)
        return JSONResponse(state)
