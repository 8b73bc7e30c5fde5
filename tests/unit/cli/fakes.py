"""A request's receipts, and a client and a stack that answer with them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from steponce import Receipt
from steponce.request.settings import RequestRules

Run = Callable[..., tuple[int, dict[str, Any]]]
Answer = Callable[[], dict[str, Any]]

PAYLOAD = {"orderId": "1", "amount": 500, "card": "tok_secret"}
RUNNING = Receipt.running("order-1", "m/order-1", "arn:execution:order-1", duplicate=False)
COMPLETED = replace(RUNNING, status="COMPLETED", result={"chargeId": "ch_1"}, attempt=1)
FAILED = replace(RUNNING, status="FAILED", error="CardDeclined", cause="The bank says no.", attempt=1)
ENDPOINTS = dict.fromkeys(("states", "dynamodb", "lambda", "aws", "http"), "http://127.0.0.1:9")
FACTS = {"name": "n", "region": "r", "pid": os.getpid(), "endpoints": ENDPOINTS, "outputs": {}, "logs": "l"}
"""Of a local stack that does not answer."""


class FakeClient:
    """Answers every call with what the test gave it, and remembers the calls."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"start": COMPLETED, "status": COMPLETED, "wait": COMPLETED}
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        locks = SimpleNamespace(table="locks", get=lambda _token: None)
        self.rules = RequestRules("m")
        self.machine = SimpleNamespace(locks=locks, rules=self.rules)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls.append((name, arguments, options))
            if isinstance(self.answers[name], BaseException):
                raise self.answers[name]
            return self.answers[name]

        return call


class FakeStack:
    """A stack with one client for everything, and without any Output."""

    name = "s"

    def __init__(self, client: FakeClient) -> None:
        self.outputs: dict[str, str] = {}
        self._client = client

    def client(self) -> FakeClient:
        return self._client


def in_a_pipe(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The one object on standard output."""
    out = capsys.readouterr().out
    assert 1 == out.count("\n")
    answer = json.loads(out)
    assert isinstance(answer, dict)
    return answer
