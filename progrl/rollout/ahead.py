"""Playing in the background: a coroutine in a thread of its own, with an event loop of its own."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from threading import Thread
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """Runs `work` from now on, while whoever made it does something else.

    Args:
        prepare: called first in the new thread, for settings that each thread has of its own.
    """

    def __init__(
        self, work: Coroutine[Any, Any, T], prepare: Callable[[], object] = lambda: None
    ) -> None:
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        self._future: Future[T] = Future()
        self._thread = Thread(target=self._run, args=(work, prepare), name="ahead")
        self._thread.start()

    def result(self) -> T:
        """What `work` has returned, once it has; what it has raised is raised here."""
        wait([self._future])
        self._thread.join()
        return self._future.result()

    def stop(self) -> None:
        """Cancel `work` and wait until it has let go of all; its result is lost."""
        with suppress(RuntimeError):  # it has ended already
            self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join()

    def _run(self, work: Coroutine[Any, Any, T], prepare: Callable[[], object]) -> None:
        try:
            with self._runner:
                prepare()
                self._future.set_result(self._runner.run(work))
        except BaseException as error:  # the thread has nobody else to tell
            self._future.set_exception(error)

    def _cancel(self) -> None:
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
