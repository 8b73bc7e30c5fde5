"""
New connections for a forked process.

A forked child inherits its parent's open connections. If both use one, each may read the other's answer, and
a guard could enter a block whose lock another process holds. boto3's guide says not to share clients between
processes. But multiprocessing forks, and some web servers load the application before they fork.
"""

from __future__ import annotations

import os
import threading
from typing import Any, TypeVar

Client = TypeVar("Client")

_ONCE = "steponce-own-connections"
"""The id by which botocore registers a function of a client once."""


def own_connections(client: Client) -> Client:
    """
    Let a boto3 client open new connections in a process other than the one that uses it now.

    Args:
        client: A client that was just made. It is changed, and returned.
    """
    made: Any = client
    process, closing = os.getpid(), threading.Lock()

    def before_send(**_request: object) -> None:
        nonlocal process
        if os.getpid() == process:
            return
        with closing:  # a second close would take the pool away from a thread that has just got it
            if os.getpid() != process:
                made.close()  # here alone: the parent keeps its end
                process = os.getpid()

    made.meta.events.register("before-send", before_send, unique_id=_ONCE)
    return client
