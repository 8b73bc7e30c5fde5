"""A lease that goes on while its work runs."""

from __future__ import annotations

import logging
import threading

from steponce.guards.holder import Holder

_logger = logging.getLogger(__name__)


class Renewer:
    """A thread that extends a lease while its work runs, three times in its length."""

    def __init__(self, holder: Holder, lease_seconds: float) -> None:
        self._holder = holder
        self._lease_seconds = lease_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="steponce-lease", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No extension is made after this."""
        self._stopped.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._stopped.wait(self._lease_seconds / 3):
            try:
                if self._holder.extend(self._lease_seconds) is not None:
                    return  # lost: the completion will say so
            except Exception as error:  # the next try may come through
                _logger.warning("The lease of %r was not extended: %s", self._holder.lock_token, error)
