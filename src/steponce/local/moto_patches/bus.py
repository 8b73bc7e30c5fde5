"""PutEvents, whose events moto takes to no function."""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Callable
from typing import Any

from moto.events.models import EventsBackend

# The entry with its detail as an object, its id, and its time where it has one.
Listener = Callable[[dict[str, Any], str, datetime.datetime | None], None]


def listen(listener: Listener) -> None:
    """Tell this listener of every event that the default bus takes from now on."""
    EventsBackend.put_events = _heard(EventsBackend.put_events, listener)


def _heard(put_events: Any, listener: Listener) -> Any:
    @functools.wraps(put_events)
    def put_and_tell(backend: EventsBackend, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = put_events(backend, events)
        for entry, answer in zip(events, answers, strict=False):
            bus = (entry.get("EventBusName") or "default").rpartition("/")[2]
            if "EventId" in answer and bus == "default":
                detail = json.loads(entry["Detail"])
                listener({**entry, "Detail": detail}, answer["EventId"], _moment(entry.get("Time")))
        return answers

    return put_and_tell


def _moment(time: Any) -> datetime.datetime | None:
    if time is None or isinstance(time, datetime.datetime):
        return time
    return datetime.datetime.fromtimestamp(float(time), datetime.UTC)
