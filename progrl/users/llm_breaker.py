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

    async def admit(self) -> bool:
        """Return when a request may be sent; whether it is the one that is let through.

        Raises:
            CircuitOpen: the pause is over, and the endpoint has failed once more.
        """
        if not self.is_open:
            return False
        until = self._until
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        if self.is_open and self._probe is None and self._until == until:
            self._probe = asyncio.Event()
            return True
        if self._probe is not None:
            await self._probe.wait()
        self.check(probe=False)
        return False

    def check(self, probe: bool) -> None:
        """Raise CircuitOpen if it has opened since this request was admitted."""
        if self.is_open and not probe:
            raise CircuitOpen(
                f"no request was sent after {self._failures} failures running, the last: "
                f"{self._cause}"
            )

    def succeeded(self) -> None:
        """A request was answered: the circuit is closed."""
        self._failures = 0
        self._verdict()

    def failed(self, cause: str) -> None:
        """A request failed."""
        self._failures += 1
        self._cause = cause
        self.opened += self._failures == self._limit
        if self._failures == self._limit or self._probe is not None:
            self._until = time.monotonic() + self._pause
        self._verdict()

    def close(self) -> None:
        """Forget the failures, and whatever is under way."""
        self.succeeded()

    def _verdict(self) -> None:
        if self._probe is not None:
            self._probe.set()
            self._probe = None
