"""The default bus of EventBridge: its events, and the rules that they match."""

from __future__ import annotations

import datetime
import json
import logging
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from steponce.local.template.event_patterns import Pattern
from steponce.local.template.physical_names import ACCOUNT
from steponce.local.template.plan import RulePlan

_log = logging.getLogger(__name__)

Event = dict[str, Any]
Deliver = Callable[[RulePlan, Event], None]


def make_event(
    source: str,
    detail_type: str,
    detail: Any,
    *,
    region: str,
    resources: list[str],
    time: datetime.datetime | None = None,
    event_id: str | None = None,
) -> Event:
    """
    An event as its targets get it.

    Source: EventBridge User Guide, "Events"; times are whole seconds.
    """
    moment = (time or datetime.datetime.now(datetime.UTC)).astimezone(datetime.UTC)
    return {
        "version": "0",
        "id": event_id or str(uuid.uuid4()),
        "detail-type": detail_type,
        "source": source,
        "account": ACCOUNT,
        "time": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": region,
        "resources": resources,
        "detail": detail,
    }


class Bus:
    """The default bus. A thread of its own hands each event to the rules whose patterns it matches."""

    def __init__(self, rules: list[RulePlan], deliver: Deliver) -> None:
        self._deliver = deliver
        self._rules = [(rule, Pattern(json.loads(rule.pattern))) for rule in rules if rule.pattern]
        self._pool = ThreadPoolExecutor(1)

    def put(self, event: Event) -> None:
        """Accept an event. It is matched later, so that no rule disturbs its sender."""
        self._pool.submit(self._match, event)

    def _match(self, event: Event) -> None:
        for rule, pattern in self._rules:
            try:
                if pattern.matches(event):
                    self._deliver(rule, event)
            except Exception as error:  # the target or a detail that is nested too deep
                _log.error("Rule %s could not match event %s: %s", rule.name, event["id"], error)
