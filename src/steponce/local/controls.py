"""Controls of a stack for tests: faults in chosen states, the stack's time, and rest between two tests."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

_ANSWER_SECONDS = 120.0


class Controls:
    """
    The controls of a running stack; the engine has them if the stack was made with `controls=True`.

    Args:
        url: Where the engine serves them.
    """

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc

    def plan_fault(self, **fields: Any) -> str:
        """Plan a fault. Returns its id. The fields are those of `moto_patches.faults.Fault`."""
        return str(self._send("POST", "/faults", fields)["id"])

    def drop_fault(self, fault_id: str) -> int:
        """Withdraw a fault. Returns how often it has happened."""
        return int(self._send("DELETE", f"/faults/{fault_id}")["reached"])

    def ahead_seconds(self) -> float:
        """How far the stack's time is ahead of this machine's."""
        return float(self._send("GET", "/time")["aheadSeconds"])

    def let_pass(self, seconds: float) -> float:
        """Let this much time pass in the stack. Returns how far it is ahead now."""
        return float(self._send("POST", "/time", {"seconds": seconds})["aheadSeconds"])

    def empty_queues(self) -> None:
        """Delete the messages of all queues."""
        self._send("DELETE", "/messages")

    def quiet(self, patience_seconds: float) -> int:
        """
        Return when no task, function or delivery runs.

        Functions that still run after `patience_seconds` are killed. The number that is returned grows if
        anything has begun since the last time.
        """
        return int(self._send("POST", "/quiet", {"patienceSeconds": patience_seconds})["begun"])

    def _send(self, method: str, path: str, fields: dict[str, Any] | None = None) -> dict[str, Any]:
        connection = HTTPConnection(self._address, timeout=_ANSWER_SECONDS)
        try:
            connection.request(method, path, None if fields is None else json.dumps(fields))
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {text!r}")  # never: both sides are ours
        said: dict[str, Any] = json.loads(text)
        return said
