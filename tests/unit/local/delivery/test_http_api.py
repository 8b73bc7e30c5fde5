"""What the local gateway does with bodies of any size: the same as API Gateway."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response

from steponce.local.delivery.http_api import LONGEST_BODY, HttpApi
from steponce.local.template.plan import RoutePlan


class Function:
    """Answers with the length of the body that it got."""

    def __init__(self) -> None:
        self.invoked = 0

    def invoke(self, **_: Any) -> dict[str, Any]:
        self.invoked += 1
        return {"Payload": io.BytesIO(b'{"statusCode": 200, "body": ""}')}


@pytest.mark.parametrize(
    ("status", "size", "told"),
    [
        (200, LONGEST_BODY, LONGEST_BODY),
        (413, LONGEST_BODY + 1, LONGEST_BODY + 1),
        (413, 1, LONGEST_BODY + 1),
        (413, LONGEST_BODY + 1, None),
    ],
)
def test_a_body_above_the_gateway_s_limit_is_a_413(status: int, size: int, told: int | None):
    """Whether the Content-Length says so, or none is given; no function is invoked."""
    function, api = Function(), HttpApi()
    api.deploy([RoutePlan("POST", "/requests", "http_api")], function)
    client = Client(Request.application(lambda request: api.answer(request)), Response)
    environ: dict[str, Any] = {"wsgi.input_terminated": told is None}
    if told is not None:
        environ["CONTENT_LENGTH"] = str(told)
    answer = client.post("/requests", input_stream=io.BytesIO(b"x" * size), environ_overrides=environ)
    assert (status, int(status == 200)) == (answer.status_code, function.invoked)


class Refuses:
    """A Lambda that takes no call."""

    def __init__(self, code: str) -> None:
        self.code = code

    def invoke(self, **_: Any) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": self.code}}, "Invoke")


def post_to(function: Refuses) -> Any:
    api = HttpApi()
    api.deploy([RoutePlan("POST", "/requests", "http_api")], function)
    return Client(Request.application(lambda request: api.answer(request)), Response).post("/requests")


def test_a_function_that_is_busy_is_a_503():
    """A client sends the same again. A 500 would tell it that the request cannot be answered."""
    answer = post_to(Refuses("TooManyRequestsException"))
    assert (503, {"message": "Service Unavailable"}) == (answer.status_code, answer.json)


def test_an_event_above_lambda_s_limit_is_a_413():
    """Lambda takes six megabytes, and escapes make an event larger than its body."""
    answer = post_to(Refuses("RequestTooLargeException"))
    assert (413, {"message": "Request Entity Too Large"}) == (answer.status_code, answer.json)


def test_another_refusal_of_lambda_is_not_hidden():
    """It is a fault of the local stack."""
    with pytest.raises(ClientError):
        post_to(Refuses("ResourceNotFoundException"))


class Told:
    """A Lambda that keeps the events it gets."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def invoke(self, *, Payload: str, **_: Any) -> dict[str, Any]:
        self.events.append(json.loads(Payload))
        return {"Payload": io.BytesIO(b'{"statusCode": 200, "body": ""}')}


@pytest.mark.parametrize(
    ("key", "parameters", "method", "path"),
    [
        ("GET /a/{order-id}", {"order-id": "7"}, "GET", "/a/7"),
        ("POST /a/{1.x}/b/{rest+}", {"1.x": "7", "rest": "c/d"}, "POST", "/a/7/b/c/d"),
        ("ANY /any/{proxy+}", {"proxy": "c"}, "PUT", "/any/c"),
        ("$default", {}, "GET", "/"),
        ("$default", {}, "POST", "/a/7"),
        ("$default", {}, "GET", "/any"),
        ("$default", {}, "HEAD", "/a/7"),
        ("PUT /both", {}, "PUT", "/both"),
        ("ANY /both", {}, "HEAD", "/both"),
    ],
)
def test_a_route_is_found_as_on_api_gateway(key: str, parameters: dict[str, str], method: str, path: str):
    """Names of parameters may have hyphens and dots. `$default` and ANY take what no other route does."""
    function, api = Told(), HttpApi()
    paths = [("GET", "/a/{order-id}"), ("POST", "/a/{1.x}/b/{rest+}"), ("ANY", "/any/{proxy+}")]
    paths += [("ANY", "/both"), ("PUT", "/both")]
    api.deploy([RoutePlan(*one, "f") for one in [("ANY", "$default"), *paths]], function)
    Client(Request.application(lambda request: api.answer(request)), Response).open(path, method=method)
    (event,) = function.events
    assert (key, key) == (event["routeKey"], event["requestContext"]["routeKey"])
    assert parameters == event["pathParameters"]
