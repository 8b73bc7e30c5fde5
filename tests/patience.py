"""
The one place where tests wait: for a condition, never for time.

The limit is one that only a hang reaches, however slow and busy the machine is; no test may lean on it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_SECONDS = 100
LONGEST_PAUSE_SECONDS = 0.3  # asking costs processor time, which what is waited for needs as well

T = TypeVar("T")


def eventually(question: Callable[[], T], told: Callable[[], object] = lambda: "", pause: float = 0.02) -> T:
    """Ask again and again, ever more seldom, until the answer is true; `told` is what the failure adds."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (answer := question()):
        assert time.monotonic() < end, f"it has not come true in time {told()}"
        time.sleep(pause)
        pause = max(pause, min(1.3 * pause, LONGEST_PAUSE_SECONDS))
    return answer


async def turn() -> None:
    """Let each task that is ready take its next step. This waits for no time."""
    await asyncio.sleep(0)


def signs_of_life(send: Callable[[], bool], *, limit: float) -> bool:
    """
    Send three signs of life, which span more than their limit; False if one was refused.

    A machine that is busy may be late with one, and such a try says nothing: ask `eventually`.
    """
    for _ in range(3):
        time.sleep(limit / 2)
        if not send():
            return False
    return True
