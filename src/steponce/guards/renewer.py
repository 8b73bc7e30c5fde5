"""Extends a lease while its work runs."""

from __future__ import annotations

import logging
import os
import threading
import weakref

from steponce.guards.holder import Holder

_logger = logging.getLogger(__name__)


class Renewer:
    """
    A thread that extends a lease, three times within the lease's length, from `start` until `stop`.

    Args:
        run: The guarded call. If it is gone without an end, as with a coroutine that is closed without a
            running loop, nobody works any more, and the lease ends.
        holder: Extends the lease.
        lease_seconds: The lease's length.
    """

    def __init__(self, run: object, holder: Holder, lease_seconds: float) -> None:
        self._run = weakref.ref(run)
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._process = os.getpid()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="steponce-lease", daemon=True)

    def start(self) -> None:
        """
        Start the thread.

        Raises:
            RuntimeError: the process has no more threads.
        """
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, if it was started. It extends nothing after this returns."""
        if self._process != os.getpid():
            return  # a forked child does not have the thread, which may hold the event's lock for ever
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _renew(self) -> None:
        pause = min(self._lease_seconds / 3, threading.TIMEOUT_MAX)
        while not self._stopped.wait(pause) and self._run() is not None:
            try:
                if self._holder.extend(self._lease_seconds) is not None:
                    return  # the lock is lost; the completion reports it
            except Exception as error:  # the next try may succeed
                _logger.warning("The lease of %r was not extended: %s", self._holder.lock_token, error)
