"""
EventBridge rules on the default bus: from the template to the targets of each event that matches.

Rules on other buses are left out. Targets are functions and queues; others get nothing here.
"""

from __future__ import annotations

import datetime
import json
import logging
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from steponce.local.made import Made
from steponce.local.physical import ACCOUNT, RULE
from steponce.local.plan import RulePlan, TargetPlan

_log = logging.getLogger(__name__)

Event = dict[str, Any]
Deliver = Callable[[RulePlan, Event], None]

_DEFAULT_BUS = "default"


def read_rules(made: Made) -> list[RulePlan]:
    """The rules that are enabled."""
    found = []
    for _, name, properties in made.of_kind(RULE):
        bus = str(properties.get("EventBusName", _DEFAULT_BUS)).rpartition("/")[2]
        if bus != _DEFAULT_BUS or properties.get("State") == "DISABLED":
            continue
        pattern = properties.get("EventPattern")
        found.append(
            RulePlan(
                name=name,
                arn=made.names.arn(RULE, name),
                pattern=None if pattern is None else json.dumps(pattern),
                schedule=properties.get("ScheduleExpression"),
                targets=[_target(target) for target in properties.get("Targets", [])],
            )
        )
    return found


def _target(target: Mapping[str, Any]) -> TargetPlan:
    transformer = target.get("InputTransformer", {})
    return TargetPlan(
        arn=str(target["Arn"]),
        constant=target.get("Input"),
        paths=dict(transformer.get("InputPathsMap", {})),
        template=transformer.get("InputTemplate"),
        group_id=target.get("SqsParameters", {}).get("MessageGroupId"),
    )


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
    """The default bus: hands an event to the rules that it matches, by moto's matcher."""

    def __init__(self, rules: list[RulePlan], deliver: Deliver) -> None:
        # Whoever only reads a template need not have moto's events.
        from moto.events.models import EventPattern

        self._deliver = deliver
        self._rules = [(rule, EventPattern.load(rule.pattern)) for rule in rules if rule.pattern]
        self._pool = ThreadPoolExecutor(1)

    def put(self, event: Event) -> None:
        """Take an event; it is matched later, so that nothing of that disturbs whoever puts it."""
        self._pool.submit(self._match, event)

    def _match(self, event: Event) -> None:
        for rule, pattern in self._rules:
            try:
                if pattern.matches_event(event):
                    self._deliver(rule, event)
            except Exception as error:  # moto's matcher met what it does not expect
                _log.error("Rule %s could not match event %s: %s", rule.name, event["id"], error)
