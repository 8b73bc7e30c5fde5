"""A burst of events above the quota of StartExecution: the queue holds what cannot start yet."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from steponce.request.names import name_of
from tests.fakes.errors import client_error
from tests.unit.triggers.world import Context, World, function, received

EVENT = json.loads((Path(__file__).parents[3] / "events" / "start_from_event.json").read_text())
BURST, PER_ROUND = 1_300, 150


class Bucket:
    """The quota of StartExecution: a bucket of tokens that is filled by rounds, not by a clock."""

    def __init__(self) -> None:
        self.tokens = BURST
        self._lock = threading.Lock()

    def take(self, operation: str, _about: str) -> None:
        """Take a token for a start, or refuse it."""
        if operation != "start_execution":
            return
        with self._lock:
            if self.tokens == 0:
                raise client_error("ThrottlingException")
            self.tokens -= 1


@dataclass
class Queue:
    """Hands out ten messages at a time; what comes back waits for the next round."""

    waiting: deque[dict[str, Any]] = field(default_factory=deque)
    receives: dict[str, int] = field(default_factory=dict)

    def deliver(self, module: Any) -> None:
        back = []
        for _ in range(len(self.waiting) // 10 + 1):
            batch = [self.waiting.popleft() for _ in range(min(10, len(self.waiting)))]
            if not batch:
                break
            for record in batch:
                self.receives[record["messageId"]] = self.receives.get(record["messageId"], 0) + 1
            failed = module.handler({"Records": batch}, Context())["batchItemFailures"]
            ids = {one["itemIdentifier"] for one in failed}
            back += [record for record in batch if record["messageId"] in ids]
            if len(ids) == len(batch):  # nothing passes any more in this round
                break
        self.waiting.extend(back)


@pytest.mark.parametrize("events", [2_000, pytest.param(5_000, marks=pytest.mark.full)])
def test_a_burst_of_events_loses_none_and_lays_none_aside(events: int, monkeypatch: pytest.MonkeyPatch):
    """Each of them starts once, and none goes round so often that its queue gives it up."""
    world, queue, bucket = World(), Queue(), Bucket()
    world.sfn.before_call = bucket.take
    ids = [f"event-{n}" for n in range(events)]
    with function("start_from_event", world) as bus, function("start_from_queue", world) as trigger:
        monkeypatch.setattr(bus, "logger", Mock())  # most of the time would go into nine thousand lines
        monkeypatch.setattr(trigger, "logger", Mock())
        for request_id in ids:
            bus.start(EVENT | {"id": request_id})
        assert events - BURST == len(world.resent())
        queue.waiting.extend(received(one, f"m-{n}") for n, one in enumerate(world.resent()))
        for _ in range(events):
            if not queue.waiting:
                break
            bucket.tokens = PER_ROUND
            queue.deliver(trigger)
    assert {name_of(one) for one in ids} == set(world.sfn.names())
    assert ([], events - BURST) == (world.dead(), len(world.sent))
    assert max(queue.receives.values()) < 100
    assert {0} == {one["redelivery"]["tries"] for one in world.inputs()}
