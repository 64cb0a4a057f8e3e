"""Work in the background: what it returns and raises, and how it is stopped."""

import asyncio
import threading

import pytest

from progrl.rollout import Ahead


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "ahead"]


def test_it_goes_on_in_a_thread_of_its_own_while_its_maker_works() -> None:
    made, let = list[str](), threading.Event()

    async def work() -> int:
        await asyncio.to_thread(let.wait)
        made.append(threading.current_thread().name)
        return 7

    ahead = Ahead(work(), lambda: made.append(threading.current_thread().name))
    assert threads() == ["ahead"]
    let.set()
    assert ahead.result() == 7
    assert made == ["ahead", "ahead"]
    assert threads() == []


def test_what_it_raises_is_raised_where_its_result_is_asked_for() -> None:
    error = KeyError("lost")

    async def work() -> None:
        await asyncio.sleep(0)
        raise error

    ahead = Ahead(work())
    with pytest.raises(KeyError) as found:
        ahead.result()
    assert found.value is error
    ahead.stop()  # and nothing is left to stop
    assert threads() == []


def test_stopped_it_lets_go_of_what_it_holds() -> None:
    begun, told = threading.Event(), list[str]()

    async def wait() -> None:
        try:
            begun.set()
            await asyncio.sleep(1000)
        finally:
            told.append("let go")

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait())
            group.create_task(wait())

    ahead = Ahead(work())
    assert begun.wait(10)
    ahead.stop()
    assert told == ["let go", "let go"]
    assert threads() == []
