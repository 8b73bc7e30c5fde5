"""
The real code of the functions and of the client, wired to whichever installation is present.

A function makes its clients when it is imported, and a client keeps its own. So they are imported once, and
their clients pass each call on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from steponce.request.settings import RequestRules
from tests.rules.renderings import definitions_with
from tests.simulation.machine import MACHINE
from tests.simulation.work import WORK_TIMEOUT_SECONDS
from tests.unit.shared_clients import shared
from tests.unit.triggers.world import function

if TYPE_CHECKING:
    from tests.simulation.installation import Installation

LOCKS, STEPS, LIMITS = "linted-LocksTable", "linted-AwaitingStepsTable", "linted-LimitsTable"
"""As `definitions_with` names them."""

RULES = RequestRules(
    key_prefix="shop",
    expected_seconds=300,
    retention_seconds=30 * 86_400,
    open_shards=1,
    work_timeout_seconds=WORK_TIMEOUT_SECONDS,
)
LIMITED = replace(RULES, rate_limit=1, rate_limit_window="600", rate_limit_path="user")
"""The same with a rate limit: one request of a user in ten minutes."""

SETTINGS = {
    "POWERTOOLS_SERVICE_NAME": "simulation",  # whose logger is silent; other tests read the functions' lines
    "POWERTOOLS_LOG_LEVEL": "CRITICAL",
    "RunOnceStateMachineArn": MACHINE,
    "LocksTable": LOCKS,
    "AwaitingStepsTable": STEPS,
    "KeyPrefix": RULES.key_prefix,
    "RetentionSeconds": str(RULES.retention_seconds),
    "ExpectedSeconds": str(RULES.expected_seconds),
    "OpenShards": str(RULES.open_shards),
    "WorkTimeoutSeconds": str(WORK_TIMEOUT_SECONDS),
    "DescribesPerSecond": "100000",
    "QueueRequestIdPath": "body.id",
    "QueueLockTokenPath": "body.token",
    "QueuePayloadPath": "body.payload",
    "CallbackKey": "callback-key",
    "CallbacksUrl": "https://callbacks",
    "ResendTries": "3",
    "ResendBaseSeconds": "30",
}
FUNCTIONS = (
    "check_owner",
    "close_execution",
    "find_missed_ends",
    "find_overdue",
    "prepare_request",
    "record_awaiting_step",
    "resend_request",
    "resolve_awaiting_step",
    "start_from_queue",
)


class Line:
    """
    A client of boto3 whose calls go to the present installation, each in a turn of its own.

    Args:
        installation: Returns it.
        service: As boto3 names it.
        mortal: Whether the caller may die at a call.
    """

    def __init__(
        self, installation: Callable[[], Installation], service: str, *, mortal: bool = True
    ) -> None:
        self._installation, self._service, self._mortal = installation, service, mortal
        self.meta = shared("dynamodb").meta  # of a client that sends nothing

    def __getattr__(self, name: str) -> Any:
        here = self._installation()
        found = getattr(here.services[self._service], name)
        if name == "get_paginator":
            return lambda operation: SimpleNamespace(paginate=self._pages(found(operation), operation))
        if not callable(found):
            return found
        return lambda **arguments: here.faults.call(name, found, arguments, mortal=self._mortal)

    def _pages(self, paginator: Any, operation: str) -> Callable[..., Iterator[Any]]:
        def paginate(**arguments: Any) -> Iterator[Any]:
            pages = iter(paginator.paginate(**arguments))
            call = self._installation().faults.call
            while (page := call(operation, lambda: next(pages, None), {}, mortal=self._mortal)) is not None:
                yield page

        return paginate


class Wiring:
    """Stands in for boto3 and for a Session, while functions and clients are made."""

    region_name = "us-east-1"
    present: Installation | None = None

    def client(self, service: str, **_options: Any) -> Any:
        return Line(self._present, service)

    def _present(self) -> Installation:
        assert self.present is not None
        return self.present


WIRING: Any = Wiring()


@cache
def functions(when_outcome_unknown: str, rules: RequestRules) -> Mapping[str, ModuleType]:
    """The functions' modules, with settings as the template gives them."""
    settings = SETTINGS | _limit_of(rules) | {"WhenOutcomeUnknown": when_outcome_unknown}
    found: dict[str, ModuleType] = {}
    shared("dynamodb")  # while boto3 is still itself
    with ExitStack() as loading:
        for name in FUNCTIONS:
            found[name] = loading.enter_context(function(name, WIRING, **settings))
    return found


@cache
def definition(when_completed: str, rules: RequestRules = RULES) -> Mapping[str, Any]:
    """The definition as it is deployed."""
    given = {
        "WorkTimeoutSeconds": str(WORK_TIMEOUT_SECONDS),
        "WhenCompleted": when_completed,
        "ConfirmationHeartbeatSeconds": "90",
        "ConfirmationExtensionSeconds": "210",
    }
    return dict(json.loads(definitions_with(**given, **_limit_of(rules))[0]))


def _limit_of(rules: RequestRules) -> dict[str, str]:
    return {
        "RateLimit": str(rules.rate_limit),
        "RateLimitWindow": rules.rate_limit_window,
        "RateLimitPath": rules.rate_limit_path or "",
    }
