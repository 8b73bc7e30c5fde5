"""The HTTP API's routes without a stack: a client that keeps its records in memory, and events for it."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from steponce import Receipt
from steponce.errors import LockTokenMismatch, PayloadMismatch, RequestNotFound, WaitTimeout
from steponce.http_api.callers import Callers
from steponce.http_api.routes import routes
from steponce.request.envelope import Envelope
from steponce.request.names import name_of
from steponce.request.settings import RequestRules

ROOT = Path(__file__).parents[2]
POSTED = json.loads((ROOT / "events" / "http_api.json").read_text())
READ = json.loads((ROOT / "events" / "read_request.json").read_text())
DOCUMENT = json.loads((ROOT / "src" / "steponce" / "http_api" / "openapi.json").read_text())
PAYLOAD = {"orderId": "1", "amount": 500, "card": "tok_visa"}
ARN = "arn:aws:states:us-east-1:123456789012:execution:steponce-run-once:"


class MemoryClient:
    """
    Answers as `Client` does, as long as nobody dies.

    Attributes:
        raises: What the next calls raise, by the method's name.
        ends: How the next waits end: a receipt's fields.
        asked: The arguments of every call that reached AWS.
        waited_with: The payload of the last wait.
    """

    def __init__(self, rules: RequestRules) -> None:
        self.rules = rules
        self.receipts: dict[str, Receipt] = {}
        self.payloads: dict[str, Mapping[str, Any]] = {}
        self.tokens: dict[str, str] = {}
        self.raises: dict[str, Exception] = {}
        self.ends: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str, Any]] = []
        self.waited_with: Mapping[str, Any] | None = None

    def start(self, request_id: str, payload: Mapping[str, Any], *, lock_token: str) -> Receipt:
        Envelope.make(name_of(request_id), payload, self.rules, lock_token=lock_token)
        self._ask("start", request_id, lock_token)
        if self.tokens.setdefault(request_id, lock_token) != lock_token:
            raise LockTokenMismatch(f"{request_id} has another lock token than {lock_token}")
        if lock_token in self.receipts:
            if self.payloads[lock_token] != payload:
                raise PayloadMismatch(f"{lock_token} has another payload than {payload}")
            return self.receipts[lock_token].as_duplicate(True)
        receipt = Receipt.running(request_id, lock_token, ARN + name_of(request_id), duplicate=False)
        self.receipts[lock_token], self.payloads[lock_token] = receipt, payload
        return receipt

    def status(self, request_id: str, *, lock_token: str | None = None) -> Receipt:
        self._ask("status", request_id, lock_token)
        token = self.tokens.get(request_id)
        if token is None or lock_token not in (None, token):
            raise RequestNotFound(f"no {request_id} with {lock_token}")
        return self.receipts[token].as_duplicate(False)

    def wait(
        self,
        request_id: str,
        *,
        timeout_seconds: float,
        lock_token: str | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> Receipt:
        self.waited_with = payload
        self._ask("wait", request_id, timeout_seconds)
        receipt = self.status(request_id, lock_token=lock_token)
        if receipt.status == "RUNNING" and self.ends:
            self.end(request_id, **self.ends.pop(0))
        receipt = self.receipts[receipt.lock_token]
        if receipt.status == "RUNNING":
            raise WaitTimeout(f"{request_id} still runs")
        return receipt

    def end(self, request_id: str, **fields: Any) -> None:
        """A request ends like this, by default with a record."""
        token = self.tokens[request_id]
        self.receipts[token] = replace(self.receipts[token], **{"attempt": 1} | fields)

    def _ask(self, method: str, request_id: str, argument: Any) -> None:
        self.asked.append((method, request_id, argument))
        if method in self.raises:
            raise self.raises[method]


@dataclass(frozen=True)
class Answer:
    """What came back, its body read."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]


class Api:
    """The routes with a client in memory. Every answer is held against the OpenAPI document."""

    def __init__(
        self, http_access: str = "jwt", caller_path: str = "", business_key: str | None = None
    ) -> None:
        rules = RequestRules(key_prefix="steponce-run-once", lock_token_path=business_key)
        self.client = MemoryClient(rules)
        self.counted: list[Receipt] = []
        self.app = routes(self.client, Callers.by_parameters(http_access, caller_path), self.counted.append)

    def post(
        self,
        key: str | None = '"order-1"',
        payload: object = PAYLOAD,
        *,
        caller: str | None = "acme",
        prefer: str | None = None,
        **changes: Any,
    ) -> Answer:
        """POST /requests; `changes` are fields of the event."""
        headers = {"idempotency-key": key, "prefer": prefer}
        return self.send(POSTED, headers, caller, {"body": json.dumps(payload)} | changes)

    def get(self, segment: str, *, caller: str | None = "acme", prefer: str | None = None) -> Answer:
        """GET /requests/…, the last part decoded as by the gateway."""
        path = {"rawPath": f"/requests/{segment}", "pathParameters": {"requestId": segment}}
        return self.send(READ, {"prefer": prefer}, caller, path)

    def send(
        self, example: dict[str, Any], headers: dict[str, str | None], caller: str | None, changes: Any
    ) -> Answer:
        """Send one of the examples, changed."""
        event = copy.deepcopy(example) | changes
        event["headers"] |= headers
        event["headers"] = {name: value for name, value in event["headers"].items() if value is not None}
        claims = {} if caller is None else {"sub": caller}
        event["requestContext"]["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
        raw = self.app.resolve(event, None)
        answer = Answer(raw["statusCode"], raw["headers"], json.loads(raw["body"]))
        assert [] == complaints(event["requestContext"]["routeKey"], answer)
        return answer


def complaints(route: str, answer: Answer) -> list[str]:
    """Where an answer is not what the OpenAPI document says."""
    method, _, path = route.partition(" ")
    response = DOCUMENT["paths"][path][method.lower()]["responses"].get(str(answer.status))
    if response is None:
        return [f"{route} answers {answer.status}"]
    found = []
    (kind, content), *_ = response["content"].items()
    headers = {**answer.headers}
    found += [f"is {headers.pop('Content-Type', None)}"] * (answer.headers.get("Content-Type") != kind)
    headers.pop("Content-Type", None)
    for name, header in response["headers"].items():
        value = headers.pop(name, None)
        if value is None:
            found += [f"has no {name}"] * header.get("required", False)
        else:
            found += [f"{name}: {error.message}" for error in _validator(header["schema"]).iter_errors(value)]
    found += [f"has {name}" for name in headers]
    found += [error.message for error in _validator(content["schema"]).iter_errors(answer.body)]
    replayed = {True: "true", False: "false"}[answer.body["replayed"]]
    return found + ["header and body differ"] * (answer.headers["Idempotent-Replayed"] != replayed)


def _validator(schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator(schema | {"components": DOCUMENT["components"]})
