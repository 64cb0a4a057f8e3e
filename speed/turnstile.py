"""A gate for trainers that run their steps one after another by themselves."""

import threading
from collections.abc import Callable


class Turnstile:
    """Lets a trainer that runs in a thread take one step at a time, and measures each."""

    def __init__(self) -> None:
        self._may = threading.Semaphore(0)
        self._done = threading.Semaphore(0)
        self._error: BaseException | None = None

    def wait(self) -> None:
        """In the trainer: before a step."""
        self._done.release()
        self._may.acquire()

    def start(self, train: Callable[[], object]) -> None:
        """Run `train` in a thread up to its first step."""

        def run() -> None:
            try:
                train()
            except BaseException as error:
                self._error = error
            self._done.release()

        threading.Thread(target=run, daemon=True).start()
        self._next()

    def step(self) -> None:
        """Let one step be taken, and wait for its end."""
        self._may.release()
        self._next()

    def _next(self) -> None:
        self._done.acquire()
        if self._error is not None:
            raise self._error
