"""
A proxy between the states engine and what it calls, which makes one chosen call go wrong.

The engine does not know of it, so the same faults work on any engine. A call is known by the state that
makes it: its expressions, or its function, are looked up in the state machine's own text.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_SECONDS
from tests.workflow.relay import Answer, Relay, serve

ASL = Path(__file__).parents[2] / "statemachines" / "run_once.asl.json"


@dataclass(frozen=True)
class Call:
    """One call of the engine: the state that makes it, and its JSON body."""

    state: str
    body: dict[str, Any]


Fault = Callable[[Call, Callable[[], Answer]], Answer]

SERVER_ERROR = Answer(
    500,
    [("Content-Type", "application/x-amz-json-1.0"), ("x-amzn-RequestId", "lost")],
    json.dumps(
        {"__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "lost"}
    ).encode(),
)


def lose_the_answer(_call: Call, forward: Callable[[], Answer]) -> Answer:
    """The write takes effect, and its author hears of a server error."""
    forward()
    return SERVER_ERROR


def refuse(_call: Call, _forward: Callable[[], Answer]) -> Answer:
    """A server error, and nothing has happened."""
    return SERVER_ERROR


def first(action: Callable[[], object]) -> Fault:
    """Let something happen just before the call arrives."""

    def fault(_call: Call, forward: Callable[[], Answer]) -> Answer:
        action()
        return forward()

    return fault


@dataclass
class Hold:
    """Stop the call before it arrives, or after it took effect, until the test goes on."""

    after: bool = False
    reached: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    arrives: bool = True

    def __call__(self, _call: Call, forward: Callable[[], Answer]) -> Answer:
        answer = forward() if self.after else SERVER_ERROR
        self.reached.set()
        self.go_on.wait(PATIENCE_SECONDS)
        return forward() if self.arrives and not self.after else answer

    def wait(self) -> None:
        assert self.reached.wait(PATIENCE_SECONDS), "the call that was to be held has not come"


class Faults:
    """The faults that are planned; each happens once, or as often as `times` says."""

    def __init__(self) -> None:
        self._planned: list[tuple[str, str | None, Fault, int]] = []
        self._guard = threading.Lock()
        self.calls: list[Call] = []
        self._states = _writes_by_state()

    def plan(self, state: str, fault: Fault, *, key: str | None = None, times: int = 1) -> Fault:
        """Let the next calls of one state (for one lock token, if given) go wrong."""
        with self._guard:
            self._planned.append((state, key, fault, times))
        return fault

    def clear(self) -> None:
        with self._guard:
            for _, _, fault, _ in self._planned:
                if isinstance(fault, Hold):
                    fault.go_on.set()
            self._planned.clear()
            self.calls.clear()

    def take(self, call: Call) -> Fault | None:
        with self._guard:
            self.calls.append(call)
            text = json.dumps(call.body)
            for place, (state, key, fault, times) in enumerate(self._planned):
                if state == call.state and (key is None or key in text):
                    if times == 1:
                        del self._planned[place]
                    else:
                        self._planned[place] = (state, key, fault, times - 1)
                    return fault
        return None

    def state_of(self, target: str, path: str, body: dict[str, Any]) -> str:
        """The state that makes this call."""
        if "UpdateItem" in target:
            new = body.get("ExpressionAttributeValues", {}).get(":new", {}).get("S")
            written = (body.get("ConditionExpression"), body["UpdateExpression"], new)
            return self._states.get(written, "Other")
        if "GetItem" in target:
            return "ReadLock"
        for function, state in _FUNCTIONS:
            if function in path:
                return "ConfirmTakeover" if "redriveCount" in body and state == "CheckOwner" else state
        return "Other"

    def through(self, upstream: str) -> str:
        """Start a proxy in front of a server; it ends with this process."""
        return serve(_relay(self, upstream))


_FUNCTIONS = (
    ("PrepareRequest", "PrepareRequest"),
    ("ChargeCard", "DoWork"),
    ("CheckOwner", "CheckOwner"),
    ("RecordAwaitingStep", "AwaitConfirmation"),
)


def _writes_by_state() -> dict[tuple[str, str, str | None], str]:
    found = {}
    for name, state in json.loads(ASL.read_text())["States"].items():
        parameters = state.get("Parameters", {})
        if "UpdateExpression" in parameters:
            new = parameters["ExpressionAttributeValues"].get(":new", {}).get("S")
            found[(parameters["ConditionExpression"], parameters["UpdateExpression"], new)] = name
    return found


def _relay(faults: Faults, upstream: str) -> type[Relay]:
    class Proxy(Relay):
        def answer(self, body: bytes) -> Answer:
            content = json.loads(body or b"{}")
            state = faults.state_of(self.headers.get("X-Amz-Target", ""), self.path, content)
            call = Call(state, content)
            fault = faults.take(call)
            if fault is None:
                return self.forward(upstream, body)
            return fault(call, self.forwarding(upstream, body))

    return Proxy
