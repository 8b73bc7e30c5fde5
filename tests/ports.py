"""Ports for servers that must be told theirs before they start."""

from __future__ import annotations

import random
import socket

# Below what any system gives to those who ask for a free port or connect out: such a one may be
# given away again between our look and the server's start.
_NOT_GIVEN_AWAY = range(10_000, 32_000)


def free_port() -> int:
    """A free port of 127.0.0.1, outside of the range that the system gives away."""
    for port in random.SystemRandom().sample(_NOT_GIVEN_AWAY, 100):
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
    raise OSError(f"None of 100 ports in {_NOT_GIVEN_AWAY} is free.")
