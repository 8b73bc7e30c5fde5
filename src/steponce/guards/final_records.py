"""An in-memory cache of final records, which never change."""

from __future__ import annotations

from collections import OrderedDict

from steponce.aws import times
from steponce.aws.forks import OwnLock
from steponce.locks.record import Lock
from steponce.workflow import COMPLETED, FAILED


class FinalRecords:
    """
    A cache of the most recently used final records. Safe in threads, and in forked processes.

    Args:
        size: How many records to keep. 0 keeps none.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = OwnLock()
        self._records: OrderedDict[str, Lock] = OrderedDict()

    def get(self, lock_token: str) -> Lock | None:
        """Return a cached record that has not expired, else None."""
        with self._lock.here:
            record = self._records.get(lock_token)
            if record is None:
                return None
            if record.is_reusable(times.now_text()):
                del self._records[lock_token]
                return None
            self._records.move_to_end(lock_token)
            return record

    def keep(self, record: Lock) -> None:
        """Cache a record if it is final: COMPLETED, or FAILED and not on the open index."""
        if not self._size or record.status not in (COMPLETED, FAILED) or record.open_status is not None:
            return
        if record.is_of_powertools:  # which that layer may run again
            return
        with self._lock.here:
            self._records[record.lock_token] = record
            self._records.move_to_end(record.lock_token)
            while len(self._records) > self._size:
                self._records.popitem(last=False)
