"""The template's HTTP APIs on one address: requests become events, as API Gateway makes them."""

from __future__ import annotations

import base64
import itertools
import json
import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from steponce.aws.errors import error_code
from steponce.local.template.plan import DEFAULT_ROUTE, RoutePlan

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

LONGEST_BODY = 10 * 2**20
"""Bytes that API Gateway takes. Source: Quotas for HTTP APIs."""

# API Gateway's `{name}` and `{name+}`.
_VARIABLE = re.compile(r"\{([^{}+]+)(\+?)\}")

_TEXT = ("text/", "application/json", "application/javascript", "application/xml")


_NO_AUTHORIZERS = (
    "Unauthorized: on AWS this route is for callers that {kind} lets in, and the local stack has no "
    "authorizers. Start it with the parameter HttpAccess=open."
)


class HttpApi:
    """Routes requests to functions; before `deploy` there is nothing to find."""

    def __init__(self) -> None:
        self._map = Map()
        self._default: RoutePlan | None = None
        self._lambda: LambdaClient

    def deploy(self, routes: list[RoutePlan], lambda_client: LambdaClient) -> None:
        """Serve these routes; the functions are behind the given client."""
        rules = [
            Rule(_pattern(route.path), methods=_methods(route.method), endpoint=route)
            for route in sorted(routes, key=lambda route: route.method == "ANY")
            if route.path != DEFAULT_ROUTE
        ]
        for rule in rules:
            if rule.methods and rule.endpoint.method != "HEAD":
                rule.methods.discard("HEAD")  # which werkzeug adds to GET
        self._default = next((route for route in routes if route.path == DEFAULT_ROUTE), None)
        self._lambda, self._map = lambda_client, Map(rules)

    def answer(self, request: Request) -> Response:
        """Answer one request."""
        try:
            route, values = self._map.bind_to_environ(request.environ).match()
        except HTTPException:
            if self._default is None:
                return _message(404, "Not Found")
            route, values = self._default, {}
        if route.authorization != "NONE":
            return _message(401, _NO_AUTHORIZERS.format(kind=route.authorization))
        request.max_content_length = LONGEST_BODY
        try:
            event = _event(request, route, _parameters(route.path, values))
            answer = self._lambda.invoke(FunctionName=route.function, Payload=json.dumps(event))
        except RequestEntityTooLarge:
            return _message(413, "Request Entity Too Large")
        except ClientError as error:
            if error_code(error) == "RequestTooLargeException":  # what a smaller body may become
                return _message(413, "Request Entity Too Large")
            if error_code(error) == "TooManyRequestsException":  # every worker of the function is busy
                return _message(503, "Service Unavailable")
            raise
        if "FunctionError" in answer:
            return _message(500, "Internal Server Error")
        return _response(json.loads(answer["Payload"].read()))


def _pattern(path: str) -> str:
    """The path in werkzeug's words, which has no hyphens and dots in names: so `v0`, `v1` and so on."""
    numbers = itertools.count()
    return _VARIABLE.sub(lambda found: f"<{'path:' if found[2] else ''}v{next(numbers)}>", path)


def _parameters(path: str, values: Mapping[str, str]) -> dict[str, str]:
    """The path parameters under their own names."""
    return {found[1]: values[f"v{number}"] for number, found in enumerate(_VARIABLE.finditer(path))}


def _methods(method: str) -> list[str] | None:
    return None if method == "ANY" else [method]


def _event(request: Request, route: RoutePlan, parameters: Mapping[str, str]) -> dict[str, Any]:
    """An event of payload format 2.0. Bodies that are no text, and forms, come in base64."""
    body = request.get_data()
    is_text = (request.mimetype.startswith(_TEXT) or not request.mimetype) and _is_utf8(body)
    http = {
        "method": request.method,
        "path": request.path,
        "protocol": "HTTP/1.1",
        "sourceIp": request.remote_addr,
        "userAgent": request.headers.get("User-Agent", ""),
    }
    event = {
        "version": "2.0",
        "routeKey": route.key,
        "rawPath": request.path,
        "rawQueryString": request.query_string.decode(),
        "headers": {name.lower(): value for name, value in request.headers.items()},
        "queryStringParameters": {name: ",".join(values) for name, values in request.args.lists()},
        "pathParameters": dict(parameters),
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "local",
            "domainName": request.host,
            "http": http,
            "requestId": uuid.uuid4().hex,
            "routeKey": route.key,
            "stage": "$default",
        },
        "isBase64Encoded": not is_text,
    }
    if body:
        event["body"] = body.decode() if is_text else base64.b64encode(body).decode()
    return event


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _response(answer: Any) -> Response:
    if not isinstance(answer, dict) or "statusCode" not in answer:
        return Response(json.dumps(answer), mimetype="application/json")
    body = answer.get("body") or ""
    content = base64.b64decode(body) if answer.get("isBase64Encoded") else body
    response = Response(content, answer["statusCode"], answer.get("headers", {}))
    for cookie in answer.get("cookies", []):
        response.headers.add("Set-Cookie", cookie)
    return response


def _message(status: int, text: str) -> Response:
    return Response(json.dumps({"message": text}), status, mimetype="application/json")
