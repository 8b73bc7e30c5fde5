"""Guards in threads and tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from steponce import (
    CompletionRefused,
    RetryLater,
)
from steponce.workflow import FAILED, RELEASED
from tests.patience import PATIENCE_SECONDS, turn
from tests.unit.guards.charging import ORDER, CardDeclined
from tests.unit.guards.world import KEY, World


def test_of_many_threads_one_does_the_work(world: World) -> None:
    """The others wait for its result, on one guard."""
    guard, calls, together = world.guard(), [], threading.Barrier(8)

    @guard.idempotent(lock_token="key", wait_seconds=PATIENCE_SECONDS)
    def charge(key: str) -> str:
        calls.append(key)
        return f"ch_{key}"

    def race(key: str) -> str:
        together.wait(PATIENCE_SECONDS)
        return charge(key)

    with ThreadPoolExecutor(8) as pool:
        for number in range(3):
            assert {f"ch_{number}"} == set(pool.map(race, [str(number)] * 8))
    assert ["0", "1", "2"] == calls


def test_of_many_who_take_over_one_does(world: World) -> None:
    """The dead owner's lock goes to one of them."""
    guard, calls = world.guard(when_outcome_unknown="take-over", wait_seconds=PATIENCE_SECONDS), []
    dead = guard.begin(KEY, ORDER, lease_seconds=9)
    dead.__enter__()
    world.pass_by(10)

    def work(number: int) -> Any:
        with guard.begin(KEY, ORDER) as run:
            if not run.replayed:
                calls.append(run.attempt)
                run.complete(number)
            return run.result

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(work, range(8)))
    assert (1, [2]) == (len(answers), calls)
    with pytest.raises(CompletionRefused):
        dead.complete("late")


def test_async_blocks_and_their_errors(world: World) -> None:
    """As with `with`."""
    guard = world.guard(final=(CardDeclined,))

    async def work(key: str, error: Exception | None) -> Any:
        async with guard.begin(key, ORDER) as run:
            if error is not None:
                raise error
            if not run.replayed:
                run.complete(key)
            return run.result

    assert ["a", "a"] == [asyncio.run(work("a", None)) for _ in range(2)]
    for key, error, status in (("b", CardDeclined(), FAILED), ("c", RetryLater(), RELEASED)):
        with pytest.raises(type(error)):
            asyncio.run(work(key, error))
        assert status == world.lock(key).status


def test_a_task_that_is_cancelled_in_its_work_is_held(world: World) -> None:
    """Its work may have taken effect."""
    guard = world.guard()

    async def cancel() -> None:
        begun = asyncio.Event()

        @guard.idempotent(lock_token="key", name="")
        async def work(key: str) -> None:
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(work(KEY))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert (FAILED, "CancelledError") == (world.lock().status, world.lock().failure.error)


def test_a_task_that_is_cancelled_while_it_begins_gives_the_lock_back(world: World) -> None:
    """What was sent cannot be taken back, so it is undone."""
    guard = world.guard()

    async def cancel() -> None:
        loop, sent, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def slow(_arguments: dict[str, Any], forward: Callable[[], Any]) -> Any:
            world.fault = None
            loop.call_soon_threadsafe(sent.set)
            assert go_on.wait(PATIENCE_SECONDS)
            return forward()

        world.fault = slow

        async def work() -> None:
            async with guard.begin(KEY, ORDER):
                pytest.fail("the block was entered")

        task = asyncio.create_task(work())
        await sent.wait()
        task.cancel()
        await turn()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert RELEASED == world.lock().status
