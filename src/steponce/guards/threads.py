"""Blocking calls of asynchronous code."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable
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
    """
    # A future and not a task, because the end of `asyncio.run` cancels all tasks.
    running = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, call)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):  # cancelled again: anyio repeats it until the task ends
                await asyncio.wait([running])
        if not running.cancelled() and running.exception() is not None:
            _logger.warning("A cancelled call failed: %s", running.exception())
        raise
