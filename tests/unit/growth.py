"""
How the time of a call grows with its input, told apart reliably on a machine that does other things, too.

Eight times the input takes about 8 times as long if the time is linear, and 64 times if it is quadratic.
What counts is this process's own processor time, the shortest of several runs, and the comparison is made
again before it counts as a failure: other work can make one run slower, but no run quicker than it is.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

STEP = 8
MOST = 24
"""Between the 8 of linear growth and the 64 of quadratic growth, nearer to neither."""

NEGLIGIBLE_SECONDS = 0.005
"""What takes no longer harms nobody, and cannot be measured well."""

_RUNS = 2
_TRIES = 4


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
        if not any(_is_in_proportion(run, small, large) for _ in range(_TRIES)):
            return False
    return True


def _is_in_proportion(run: Callable[[Any], object], small: Any, large: Any) -> bool:
    of_large = _seconds(run, large)
    return of_large < NEGLIGIBLE_SECONDS or of_large < MOST * _seconds(run, small)


def _seconds(run: Callable[[Any], object], given: Any) -> float:
    """The shortest of several runs, without the collector of garbage, which looks at everything there is."""
    times = []
    gc.disable()
    try:
        for _ in range(_RUNS):
            began = time.process_time()
            with suppress(Exception):  # a refusal takes its time as well
                run(given)
            times.append(time.process_time() - began)
            if times[-1] < NEGLIGIBLE_SECONDS:
                break
    finally:
        gc.enable()
    return min(times)
