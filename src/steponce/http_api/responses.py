"""The answers to callers: a request's state, or a problem (RFC 9457)."""

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.event_handler import Response

from steponce.http_api.callers_requests import Found
from steponce.request.receipt import Receipt
from steponce.workflow import MISMATCH

RETRY_AFTER_SECONDS = 5

UNSETTLED = (
    "The execution of this request is closed, and how it ended is not on record yet. That is being settled; "
    "ask again later."
)
MAY_RUN_AGAIN = "This answer is not final. The same POST starts the next attempt."
WAITS_FOR_PERSON = "This answer may change. A person decides what becomes of the request; ask again later."
TURNED_AWAY = (
    "The request with this business key has another payload than this key was sent with. A POST with that "
    "payload gets its answer."
)
PROBLEMS = {
    "key-malformed": (HTTPStatus.BAD_REQUEST, "The Idempotency-Key is missing or malformed"),
    "payload-malformed": (HTTPStatus.BAD_REQUEST, "The body cannot be used as a payload"),
    "caller-unknown": (HTTPStatus.FORBIDDEN, "It is not known who calls"),
    "request-unknown": (HTTPStatus.NOT_FOUND, "There is no such request of yours"),
    "still-running": (HTTPStatus.CONFLICT, "The request is still running"),
    "key-exhausted": (HTTPStatus.CONFLICT, "The request was attempted too often"),
    "payload-too-large": (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The payload is too large"),
    "payload-encoded": (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The body is compressed"),
    "payload-mismatch": (HTTPStatus.UNPROCESSABLE_ENTITY, "The key was used with another payload"),
    "key-mismatch": (HTTPStatus.UNPROCESSABLE_ENTITY, "The key was used with another business key"),
    "record-unreadable": (HTTPStatus.INTERNAL_SERVER_ERROR, "The request's record cannot be read"),
    "result-unreadable": (HTTPStatus.INTERNAL_SERVER_ERROR, "The request's result cannot be read"),
    "result-too-large": (HTTPStatus.INTERNAL_SERVER_ERROR, "The request's result is too large for this API"),
    "rate-limited": (HTTPStatus.TOO_MANY_REQUESTS, "The rate limit is used up"),
    "throttled": (HTTPStatus.TOO_MANY_REQUESTS, "Too many requests at the moment"),
    "unavailable": (HTTPStatus.SERVICE_UNAVAILABLE, "The service does not answer at the moment"),
    "nothing-happened": (HTTPStatus.SERVICE_UNAVAILABLE, "The request could not be worked on"),
}
"""Every problem: its status and its title."""

LONGEST_ANSWER = 6_000_000
"""Bytes that Lambda lets a function answer with. Quotes and backslashes of a body count twice there."""

PROBLEM_TYPE = "urn:steponce:problem:"

_COMMON = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_CUT_REPORT = re.compile(r'\{(?:"errorType": ?"[^"]*", ?)?"errorMessage": ?"((?:[^"\\]|\\.)*+)', re.DOTALL)
"""The beginning of Lambda's report, also of one that was cut: a cause has 32,768 characters at most."""

_ARN = re.compile(r"\barn:[^\s\"'<>]+")


def answer(
    status: HTTPStatus, key: str, found: Found, headers: Mapping[str, str] | None = None
) -> Response[str]:
    """A request's state. `key` is the caller's own. It shows no lock token and no ARN."""
    receipt = found.receipt
    body: dict[str, Any] = {
        "requestId": key,
        "status": receipt.status,
        "replayed": receipt.duplicate,
        "attempt": receipt.attempt,
    }
    if (receipt.kept_bytes or 0) > LONGEST_ANSWER:
        return _too_large(receipt.duplicate)
    if receipt.status == "COMPLETED":
        body["result"] = receipt.result
    if receipt.status == "FAILED":
        body |= {"error": receipt.error, "cause": _cause(receipt)}
    if is_turned_away(receipt):
        body["detail"] = TURNED_AWAY
    if receipt.waits_for_person:
        body["detail"] = WAITS_FOR_PERSON
    if receipt.may_run_again:
        body["detail"] = MAY_RUN_AGAIN
    if found.unsettled:
        body["detail"] = UNSETTLED
    return _reply(status, "application/json", body, headers or {})


def is_turned_away(receipt: Receipt) -> bool:
    """Whether the workflow has found another payload on record. With a record it is the work's own error."""
    return receipt.error == MISMATCH and receipt.attempt == 0 and not receipt.may_run_again


def problem(
    name: str, detail: str, *, replayed: bool = False, headers: Mapping[str, str] | None = None
) -> Response[str]:
    """One of PROBLEMS. Those that pass by themselves say when to come again."""
    status, title = PROBLEMS[name]
    headers = dict(headers or {})
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        headers.setdefault("Retry-After", str(RETRY_AFTER_SECONDS))
    if status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
        headers["Accept-Encoding"] = "identity"
    body = {
        "type": PROBLEM_TYPE + name,
        "title": title,
        "status": status.value,
        "detail": detail,
        "replayed": replayed,
    }
    return _reply(status, "application/problem+json", body, headers)


def _reply(status: HTTPStatus, kind: str, body: dict[str, Any], headers: Mapping[str, str]) -> Response[str]:
    text = json.dumps(body)
    if len(json.dumps(text)) > LONGEST_ANSWER:
        return _too_large(body["replayed"])
    replayed = {"Idempotent-Replayed": "true" if body["replayed"] else "false"}
    return Response(status.value, kind, text, headers=_COMMON | replayed | dict(headers))


def _too_large(replayed: bool) -> Response[str]:
    return problem(
        "result-too-large",
        "The request is completed, and no answer of this API can carry its result. Ask the operator of this "
        "service for it.",
        replayed=replayed,
    )


def _cause(receipt: Receipt) -> str | None:
    """The cause without what a caller must not see: stack traces, ARNs and the lock token."""
    cause = receipt.cause
    if cause is None:
        return None
    try:
        report = json.loads(cause)
    except (ValueError, RecursionError):
        cut = _CUT_REPORT.match(cause)
        report = {"errorMessage": _unescaped(cut[1])} if cut else None
    if isinstance(report, dict) and isinstance(report.get("errorMessage"), str):
        cause = report["errorMessage"]  # Lambda's report of an exception has its stack trace beside
    if token := receipt.lock_token:
        quoted = {json.dumps(token), json.dumps(token, ensure_ascii=False), repr(token)}
        for form in [*(text[1:-1] for text in quoted), token]:  # as an error's text may have it
            cause = cause.replace(form, "…")
    return _ARN.sub("…", cause)


def _unescaped(text: str) -> str:
    """What stands between the quotes of JSON; as it is, if it was cut within an escape."""
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text
