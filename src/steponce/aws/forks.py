"""
Connections of a process stay its own.

A forked child has its parent's open connections. Of two processes on one connection each may read the other's
answer, so a guard could enter a block whose lock another one holds. boto3's guide says that clients are not
for several processes, but programs fork where nobody sees it: in multiprocessing, and in servers that load
the application before they fork.
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
