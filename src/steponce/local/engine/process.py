"""The owner's side of the engine: start it, tell it what to do, end it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from steponce.local.engine.instructions import ENGINE_LOG, PROBLEM, Instructions
from steponce.local.errors import LocalStackError
from steponce.local.runtime.child_process import ChildProcess

_START_SECONDS = 60.0


class EngineProcess:
    """The child process that serves the embedded endpoints."""

    def __init__(
        self, services: set[str], logs: Path, *, keep_logs: bool, has_controls: bool = False, apis: int = 1
    ) -> None:
        self._log = logs / ENGINE_LOG
        arguments = ["--serve", ",".join(sorted(services)), "--logs", str(logs), "--apis", str(apis)]
        if not keep_logs:
            arguments.append("--forget-logs")  # the engine also ends when we are killed
        if has_controls:
            arguments.append("--controls")
        self._process = ChildProcess("steponce.local.engine", arguments, self._log)

    def addresses(self) -> dict[str, str]:
        """Wait until it serves; the answer is the address of each service."""
        return self._receive()

    def instruct(self, instructions: Instructions) -> None:
        """Tell it what to run, and wait until it is ready."""
        self._process.send(instructions.to_json())
        self._receive()

    def stop(self) -> None:
        """End it and everything that it started."""
        self._process.stop()
        self._process.close()

    def _receive(self) -> dict[str, Any]:
        watchdog = threading.Timer(_START_SECONDS, self._process.kill)
        watchdog.start()
        try:
            line = self._process.receive()
        finally:
            watchdog.cancel()
        if not line:
            last_words = "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])
            raise LocalStackError(f"The engine did not start. Its log ends:\n{last_words}")
        message: dict[str, Any] = json.loads(line)
        if PROBLEM in message:
            raise LocalStackError(f"The engine did not start. It ended with:\n{message[PROBLEM]}")
        return message
