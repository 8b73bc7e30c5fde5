"""Blocking calls of asynchronous code."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

_logger = logging.getLogger(__name__)


def has_running_loop() -> bool:
    """Whether an event loop runs in this thread, so that something can be awaited."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def in_thread(call: Callable[[], T]) -> T:
    """
    Make a blocking call in a thread. A cancelled task waits until the call has ended.

    A request that was sent cannot be taken back. Without the wait it would take effect after the task's end.

    If the loop's executor is shut down, or can start no thread, this thread makes the call, since an outcome
    must be recorded.
    """
    once = _once(call)
    try:
        # A future and not a task, because the end of `asyncio.run` cancels all tasks.
        running = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, once)
    except RuntimeError:
        return once()
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):  # cancelled again: anyio repeats it until the task ends
                await asyncio.wait([running])
        if running.cancelled():  # as its executor was shut down, before it was made
            once()
        elif running.exception() is not None:
            _logger.warning("A cancelled call failed: %s", running.exception())
        raise


def _once(call: Callable[[], T]) -> Callable[[], T]:
    """A call that is made by one thread only. An executor that can start no thread keeps it for later."""
    making, made = threading.Lock(), Future[T]()

    def make() -> T:
        with making:
            if not made.done():
                try:
                    made.set_result(call())
                except BaseException as error:
                    made.set_exception(error)
        return made.result()

    return make
