"""
Rules that fire regularly: `rate(5 minutes)`, with minutes, hours or days.

As on AWS the first time is one period after the rule was made. `cron(…)` expressions never fire here;
send their event yourself, with PutEvents or by invoking the function.
"""

from __future__ import annotations

import re
import threading
import time
from typing import NoReturn

from steponce.local.delivery.event_bus import Deliver, make_event
from steponce.local.template.plan import RulePlan

_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_SECONDS = {"minute": 60.0, "hour": 3600.0, "day": 86400.0}


def seconds_between(expression: str) -> float | None:
    """The period of a rate; None for what is no rate."""
    rate = _RATE.fullmatch(expression)
    return int(rate.group(1)) * _SECONDS[rate.group(2)] if rate else None


class Schedule:
    """Fires one rule every so many seconds."""

    def __init__(self, rule: RulePlan, seconds: float, region: str, deliver: Deliver) -> None:
        self._rule = rule
        self._seconds = seconds
        self._region = region
        self._deliver = deliver

    def start(self) -> None:
        """Fire from now on, until the process ends."""
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> NoReturn:
        while True:
            time.sleep(self._seconds)
            event = make_event(
                "aws.events", "Scheduled Event", {}, region=self._region, resources=[self._rule.arn]
            )
            self._deliver(self._rule, event)
