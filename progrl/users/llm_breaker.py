"""A circuit breaker: an endpoint that is down is not asked again and again."""

import asyncio
import time


class CircuitOpen(Exception):
    """No request is sent: the endpoint has failed many times running, and still does."""


class Breaker:
    """Opens after `limit` failures running; then one try at a time, `pause` seconds apart, is let
    through, until one succeeds. For the tasks of one event loop.
    """

    def __init__(self, limit: int, pause: float) -> None:
        self._limit, self._pause = limit, pause
        self._failures, self._until = 0, 0.0
        self._cause = ""
        self._probe: asyncio.Event | None = None
        self.opened = 0

    @property
    def is_open(self) -> bool:
        """Requests are held back."""
        return self._failures >= self._limit

    async def admit(self) -> None:
        """Return when a request may be sent.

        Raises:
            CircuitOpen: the pause is over, and the endpoint has failed once more.
        """
        if not self.is_open:
            return
        await asyncio.sleep(max(0.0, self._until - time.monotonic()))
        if not self.is_open:
            return
        if self._probe is None:
            self._probe = asyncio.Event()
            return
        await self._probe.wait()
        if self.is_open:
            raise CircuitOpen(
                f"no request was sent after {self._failures} failures running, "
                f"the last: {self._cause}"
            )

    def succeeded(self) -> None:
        """A request was answered: the circuit is closed."""
        self._failures = 0
        self._verdict()

    def failed(self, cause: str) -> None:
        """A request failed."""
        self._failures += 1
        self._cause = cause
        if self.is_open:
            self.opened += self._failures == self._limit
            self._until = time.monotonic() + self._pause
        self._verdict()

    def _verdict(self) -> None:
        if self._probe is not None:
            self._probe.set()
            self._probe = None
