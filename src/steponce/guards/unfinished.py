"""What work may return in the place of its result: a coroutine or a generator, which still has to run."""

from __future__ import annotations

import inspect
from types import AsyncGeneratorType, CoroutineType, GeneratorType


def is_unfinished(result: object) -> bool:
    """Whether a result is a coroutine or a generator that is not at its end."""
    return _state(result) not in (None, inspect.CORO_CLOSED, inspect.GEN_CLOSED)


def expect_run(result: object) -> None:
    """
    Refuse a coroutine or a generator that `serialize` has not run: the JSON would be that of the object.

    Raises:
        TypeError: nothing of it has run.
    """
    if _state(result) in (inspect.CORO_CREATED, inspect.GEN_CREATED):
        raise TypeError(f"This {type(result).__name__} has not run.")


def _state(result: object) -> str | None:
    """The state of a coroutine or a generator. Of an async one only the end can be seen."""
    if type(result) is CoroutineType:
        return inspect.getcoroutinestate(result)
    if type(result) is GeneratorType:
        return inspect.getgeneratorstate(result)
    if type(result) is AsyncGeneratorType:
        return inspect.GEN_CLOSED if result.ag_frame is None else inspect.GEN_CREATED
    return None
