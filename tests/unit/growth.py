"""
How the time of a call grows with its input, told apart reliably on a machine that does other things, too.

A linear call takes about as long for one input as for 32 inputs of a 32nd of its size, and a quadratic one 32
times as long. So wide a step leaves room for caches, and for what other programs take from the processor.
What counts is this process's own processor time, the shortest of several runs that take turns: other work can
make a run slower, but none quicker than it is, and it seldom hits only the one kind. Before it counts as a
failure, the comparison goes on for some more turns.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

STEP = 32
MOST = 8
"""Between 1 (linear; up to 2.5 where a large input overflows the caches) and 32 (quadratic)."""

NEGLIGIBLE = range(150_000)
"""What takes no longer than to add these up harms nobody, and cannot be measured well."""

_TURNS_TO_PASS = 2
_TURNS_TO_FAIL = 6


def is_linear(run: Callable[[Any], object], make: Callable[[int], Any], largest: int) -> bool:
    """
    Whether the time of a call grows in proportion to its input, up to the largest input that it may get.

    Args:
        run: The call. What it raises is its own business.
        make: Makes an input of a size.
        largest: The size to stop at. Smaller ones come first, so that a quadratic call costs little time.
    """
    for size in (largest // STEP**2, largest // STEP):
        small, large = make(size), make(STEP * size)
        if not _is_in_proportion(run, small, large):
            return False
    return True


def _is_in_proportion(run: Callable[[Any], object], small: Any, large: Any) -> bool:
    of_small, of_large = [], []
    for turn in range(1, _TURNS_TO_FAIL + 1):
        of_large.append(_seconds(run, large, times=1))
        if of_large[-1] < _negligible_seconds():
            return True
        of_small.append(_seconds(run, small, times=STEP))
        if turn >= _TURNS_TO_PASS and min(of_large) < MOST * min(of_small):
            return True
    return False


@cache
def _negligible_seconds() -> float:
    """On this machine, so that a quicker one finds what a slower one finds."""
    return min(_seconds(sum, NEGLIGIBLE, times=1) for _ in range(9))


def _seconds(run: Callable[[Any], object], given: Any, times: int) -> float:
    """Without the collector of garbage, which looks at everything there is."""
    gc.disable()
    try:
        began = time.process_time()
        for _ in range(times):
            with suppress(Exception):  # a refusal takes its time as well
                run(given)
        return time.process_time() - began
    finally:
        gc.enable()
