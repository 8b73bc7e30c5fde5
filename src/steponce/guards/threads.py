"""Blocking calls of asynchronous code."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from steponce.errors import NotRecorded
from steponce.guards.texts import without_text

T = TypeVar("T")

_logger = logging.getLogger(__name__)

_THREADS = 32


def has_running_loop() -> bool:
    """Whether an event loop runs in this thread, so that something can be awaited."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def in_thread(call: Callable[[], T]) -> T:
    """
    Make a blocking call in a thread of our own. A cancelled task waits until the call has ended.

    The threads of `asyncio.to_thread` may all be taken by long jobs, while a lease goes on.

    A request that was sent cannot be taken back. Without the wait it would take effect after the task's end.

    If the call fails, its error is the `__cause__` of the CancelledError: it may have the work's result.

    If no thread can be started, as when the interpreter ends, this thread makes the call, since an outcome
    must be recorded.
    """
    once = _once(call)
    try:
        # A future and not a task, because the end of `asyncio.run` cancels all tasks.
        running = asyncio.get_running_loop().run_in_executor(
            own_threads(), contextvars.copy_context().run, once
        )
    except RuntimeError:
        return once()
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:  # anyio repeats it until the task ends
            cancelled = error
    # Its executor was shut down, or has failed to start another thread, before it was made.
    is_unmade = running.cancelled() or isinstance(running.exception(), BrokenExecutor)
    ended = once if is_unmade else running.result
    if cancelled is None:
        return ended()
    try:
        ended()
    except Exception as error:
        lock_token = error.lock_token if isinstance(error, NotRecorded) else None
        _logger.warning("A cancelled call failed: %s, lock %s", without_text(error).error, lock_token)
        cancelled.__cause__ = error
    try:
        raise cancelled
    finally:
        del cancelled  # the error has this frame, so both would keep the task's objects until the next gc


def own_threads() -> Executor:
    """The threads of this process. A forked one has none of its parent's."""
    return _threads_of(os.getpid())


@cache
def _threads_of(_process: int) -> Executor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="steponce")


def _once(call: Callable[[], T]) -> Callable[[], T]:
    """A call that is made by one thread only. An executor that can start no thread keeps it for later."""
    making, made = threading.Lock(), Future[T]()

    def make() -> T:
        with making:
            if not made.done():
                try:
                    result = call()
                except BaseException as error:
                    made.set_exception(error)
                else:
                    made.set_result(result)
        return made.result()

    return make
