"""
A clock that tests move: what has ended by then, ended an hour ago. And executions that are not as they seem.

An owner's work may go on after its execution was stopped, and its outcome is unknown only when the time of
the work is over. Functions ask Step Functions when an execution ended; here they hear an earlier time.
"""

from __future__ import annotations

import json
import time

from steponce.local import LocalStack
from tests.workflow.relay import Answer, Relay, serve

HOUR = 3600.0


class Clock:
    """When the hour passed, and the address at which functions ask."""

    def __init__(self) -> None:
        self._passed_at = 0.0
        self.url = ""
        self.instead: dict[str, dict[str, object]] = {}
        """What functions hear of an execution, by its ARN: a child whose stop did not arrive, for example."""

    def let_an_hour_pass(self) -> None:
        """Whatever has ended before this call, ended an hour before."""
        self._passed_at = time.time()

    def serve_before(self, upstream: str) -> str:
        """Start a proxy before Step Functions."""
        self.url = serve(_relay(self, upstream))
        return self.url

    def as_later(self, described: dict[str, object]) -> dict[str, object]:
        """What DescribeExecution says, an hour later if the hour has passed since the execution's end."""
        other = self.instead.get(str(described.get("executionArn")))
        if other is not None:
            return {key: value for key, value in (described | other).items() if value is not None}
        stopped = described.get("stopDate")
        if not isinstance(stopped, int | float) or stopped > self._passed_at:
            return described
        return described | {"stopDate": stopped - HOUR}


class ClockedStack(LocalStack):
    """A stack whose functions ask Step Functions by the clock's proxy; so do the scene's clients."""

    clock: Clock

    def _worker_endpoints(self) -> dict[str, str]:
        direct = super()._worker_endpoints()
        return direct | {"AWS_ENDPOINT_URL_SFN": self.clock.serve_before(direct["AWS_ENDPOINT_URL_SFN"])}


def _relay(clock: Clock, upstream: str) -> type[Relay]:
    class Proxy(Relay):
        def answer(self, body: bytes) -> Answer:
            said = self.forward(upstream, body)
            if not self.headers.get("X-Amz-Target", "").endswith(".DescribeExecution") or said.status != 200:
                return said
            return Answer(200, said.headers, json.dumps(clock.as_later(json.loads(said.body))).encode())

    return Proxy
