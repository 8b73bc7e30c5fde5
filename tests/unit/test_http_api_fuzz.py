"""The HTTP API against its own OpenAPI document: whatever comes in, what goes out is documented."""

from __future__ import annotations

import io
import json
from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance, unsupported_method
from werkzeug.wrappers import Request, Response

from steponce.http_api.address import key_in
from steponce.http_api.callers import Scope
from steponce.http_api.callers_requests import CallersRequests
from steponce.http_api.headers import idempotency_key
from steponce.local.delivery.http_api import HttpApi
from steponce.local.template.plan import RoutePlan
from tests.unit.http_api import DOCUMENT, Api

ENDS = (
    {},
    {"status": "COMPLETED", "result": [1, None]},
    {"status": "FAILED", "error": "CardDeclined", "cause": None},
)


class Gateway:
    """The local stack's gateway before the function's routes, and one caller who is let in."""

    def __init__(self) -> None:
        self.routes = Api()
        self.api = HttpApi()
        routes = [("POST", "/requests"), ("GET", "/requests/{requestId}")]
        self.api.deploy([RoutePlan(method, path, "http_api") for method, path in routes], self)

    def invoke(self, *, Payload: str, **_: Any) -> dict[str, Any]:
        """As boto3's Lambda client does; every request that is started has an end of its own."""
        event = json.loads(Payload)
        event["requestContext"]["authorizer"] = {"jwt": {"claims": {"sub": "acme"}, "scopes": None}}
        self._start_some(event.get("pathParameters", {}).get("requestId", ""))
        starts = self.starts
        answer = self.routes.app.resolve(event, None)
        if self.starts > starts:
            key = idempotency_key(event["headers"].get("idempotency-key"))
            assert f"acme/{key}" in [request_id for _, request_id, _ in self.routes.client.asked]
        for number, (request_id, token) in enumerate(self.routes.client.tokens.items()):
            if self.routes.client.receipts[token].attempt == 0:
                self.routes.client.end(request_id, **ENDS[number % len(ENDS)])
        return {"Payload": io.BytesIO(json.dumps(answer).encode())}

    def _start_some(self, segment: str) -> None:
        """Half of all requests that somebody reads have been started."""
        mine = CallersRequests(self.routes.client, Scope("acme/"))
        if len(segment) % 2:
            mine.start(key_in(segment), {})

    @property
    def starts(self) -> int:
        """How many calls of StartExecution there were."""
        return sum(method == "start" for method, _, _ in self.routes.client.asked)

    @Request.application
    def application(self, request: Request) -> Response:
        """WSGI, with the document at its own address."""
        if request.path == "/openapi.json":
            return Response(json.dumps(DOCUMENT), mimetype="application/json")
        return self.api.answer(request)


UNFIT = [
    unsupported_method,  # wants 405; API Gateway says 404
    positive_data_acceptance,  # what fits the schemas can still be a key with another payload
]

gateway = Gateway()
schema = schemathesis.openapi.from_wsgi("/openapi.json", gateway.application)


@schema.parametrize()
@settings(suppress_health_check=list(HealthCheck))
def test_whatever_comes_in_the_answer_is_documented(case: schemathesis.Case):
    """Status, headers and body are the document's, none is a 5xx, and nothing starts without an id."""
    case.call_and_validate(excluded_checks=UNFIT)
