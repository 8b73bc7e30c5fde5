"""What work may return in the place of its result: a coroutine, a future or a `map`, which has to run."""

from __future__ import annotations

import asyncio
import inspect
from concurrent.futures import Future
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

_LAZY = (map, filter, zip, enumerate)


def is_unfinished(result: object) -> bool:
    """
    Whether a result is a coroutine, a generator or a future that is not at its end, another awaitable, or a
    `map` or the like, which work when they are read. Other iterators, such as a cursor, may be done.

    So is a list, tuple or dict that has nothing else in it: somebody has forgotten to await them.
    """
    if type(result) in (list, tuple, dict) and result:
        held: Any = result.values() if isinstance(result, dict) else result
        return all(map(_has_to_run, held))
    return _has_to_run(result)


def expect_run(result: object) -> None:
    """
    Refuse a coroutine or a generator that `serialize` has not run: the JSON would be that of the object.

    Raises:
        TypeError: nothing of it has run.
    """
    if _state(result) in (inspect.CORO_CREATED, inspect.GEN_CREATED):
        raise TypeError(f"This {type(result).__name__} has not run.")


def _has_to_run(result: object) -> bool:
    if isinstance(result, Future | asyncio.Future):
        return not result.done()
    state = _state(result)
    if state is not None:
        return state not in (inspect.CORO_CLOSED, inspect.GEN_CLOSED)
    kind = type(result)
    return kind in _LAZY or getattr(kind, "__module__", None) == "itertools" or hasattr(kind, "__await__")


def _state(result: object) -> str | None:
    """The state of a coroutine or a generator. Of an async one only the end can be seen."""
    if type(result) is CoroutineType:
        return inspect.getcoroutinestate(result)
    if type(result) is GeneratorType:
        return inspect.getgeneratorstate(result)
    if type(result) is AsyncGeneratorType:
        return inspect.GEN_CLOSED if result.ag_frame is None else inspect.GEN_CREATED
    return None
