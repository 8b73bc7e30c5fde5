"""
New connections and free locks for a forked process.

A forked child inherits its parent's open connections. If both use one, each may read the other's answer, and
a guard could enter a block whose lock another process holds. boto3's guide says not to share clients between
processes. But multiprocessing forks, and some web servers load the application before they fork.

A child also inherits locks as they are, but only the thread that forked. A lock that another thread of the
parent holds stays held in the child for ever.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, TypeVar

Client = TypeVar("Client")

_ONCE = "steponce-own-connections"
"""The id by which botocore registers a function of a client once."""


class OwnLock:
    """
    A lock that is free in a forked child, even if a thread of the parent holds it.

    The child may find a change half made. So each step of a change must leave the data usable.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _every.add(self)

    @property
    def here(self) -> threading.Lock:
        """
        The lock of this process, for one `with`.

        Python's own lock: a signal's handler that raises cannot come between taking it and giving it back.
        """
        return self._lock

    def _free(self) -> None:
        self._lock = threading.Lock()


_every: weakref.WeakSet[OwnLock] = weakref.WeakSet()


def _free_all() -> None:
    for lock in _every:
        lock._free()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_free_all)


def own_connections(client: Client) -> Client:
    """
    Let a boto3 client open new connections in a process other than the one that uses it now.

    Args:
        client: A client that was just made. It is changed, and returned.
    """
    made: Any = client
    process, closing = os.getpid(), OwnLock()

    def before_send(**_request: object) -> None:
        nonlocal process
        if os.getpid() == process:
            return
        with closing.here:  # a second close would take the pool away from a thread that has just got it
            if os.getpid() != process:
                made.close()  # here alone: the parent keeps its end
                process = os.getpid()

    made.meta.events.register("before-send", before_send, unique_id=_ONCE)
    return client
