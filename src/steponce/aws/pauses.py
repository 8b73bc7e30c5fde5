"""The pauses between tries of a call that met others at the same item."""

from __future__ import annotations

import random
from collections.abc import Iterator

_random = random.SystemRandom()  # not seeded alike in forked processes


def pauses(first_seconds: float, longest_seconds: float) -> Iterator[float]:
    """
    Pauses without an end, in seconds: random, so that those who met do not meet again.

    Args:
        first_seconds: The most that the first pause lasts; each next one may last twice as long.
        longest_seconds: The most that any pause lasts.
    """
    longest = first_seconds
    while True:
        yield _random.uniform(0, longest)
        longest = min(2 * longest, longest_seconds)
