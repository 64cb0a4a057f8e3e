"""Only pages of this server, on this machine, may ask it for anything.

A page of another site that the person visits could send requests here (cross-site request forgery),
or have its own name point here (DNS rebinding). So the Host must be a name of this machine; what
changes something must be JSON, which a foreign page cannot send without being allowed to, and must
not name a foreign origin.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NAMES = ("127.0.0.1", "localhost")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Guard:
    """Refuses foreign requests, and adds headers to all answers."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}" for name in NAMES}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        wrong = self._wrong(scope["method"], Headers(scope=scope))
        app = JSONResponse({"error": wrong[1]}, wrong[0]) if wrong else self._app
        await app(scope, receive, guarded)

    def _wrong(self, method: str, headers: Headers) -> tuple[int, str] | None:
        """Status and reason of a refusal."""
        if headers.getlist("host") != [headers.get("host", "")] or (
            headers.get("host", "").lower() not in self._hosts
        ):
            return 421, "This server answers to 127.0.0.1 and localhost alone."
        if method in {"GET", "HEAD"}:
            return None
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        if origin not in {None, *self._origins} or site not in {"same-origin", "none"}:
            return 403, "Requests from other sites are refused."
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return 415, "Requests that change something must be JSON."
        return None
