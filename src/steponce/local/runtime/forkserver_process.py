"""The engine's side of the fork server: start a worker, end it, hear of its end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steponce.local.runtime.child_process import ChildProcess


class ForkServerProcess:
    """
    The child process that forks workers.

    Args:
        clock: The file of the stack's time, if that can be moved.
    """

    def __init__(self, log: Path, clock: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._on_end: dict[int, Callable[[int], None]] = {}
        self._last_id = 0
        self._process = ChildProcess("steponce.local.runtime.forkserver", [str(clock)] if clock else [], log)
        threading.Thread(target=self._receive, daemon=True).start()

    def start_worker(self, order: dict[str, Any], on_end: Callable[[int], None]) -> int:
        """Fork a worker; `on_end` is called with its exit code, negative for a signal."""
        with self._lock:
            self._last_id += 1
            self._on_end[self._last_id] = on_end
            self._process.send(json.dumps({"id": self._last_id, **order}))
            return self._last_id

    def kill_worker(self, worker_id: int) -> None:
        """Kill one worker, if it lives."""
        with self._lock:
            self._process.send(json.dumps({"kill": worker_id}))

    def stop(self) -> None:
        """End the fork server, and with it every worker."""
        with self._lock:
            self._process.stop()

    def _receive(self) -> None:
        while line := self._process.receive():
            report = json.loads(line)
            with self._lock:
                on_end = self._on_end.pop(report["id"], None)
            if on_end:
                # Closing a server waits for its last request, so never on this thread.
                threading.Thread(target=on_end, args=(report["exit"],), daemon=True).start()
